"""Curves to onsets: the published rule, its interval, whether it holds and what it hangs on."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from pipeline import crossing, isotonic
from pipeline.crossing import Counts
from pipeline.rows import CurveError
from pipeline.rule import Onset, Status, bracket, onset, text

GRID = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Thresholds at which an onset is given beside its own, to show how much it hangs on it."""


@dataclass(frozen=True, slots=True)
class End:
    """What is known of a run beyond its last rate; a step that is not known is 0."""

    planned: int = 0
    """Last checkpoint that its sweep was to evaluate, or found unreadable."""
    budget: int = 0
    """Step at which its training was to end."""


def onsets(
    curves: pl.DataFrame,
    metric: str,
    identity: Sequence[str],
    threshold: float = 0.5,
    prompts: pl.DataFrame | None = None,
    rng_seed: int = 0,
    ends: Mapping[str, End] | None = None,
) -> pl.DataFrame:
    """One row per run and identity, sorted; the columns are ONSETS.

    prompts: `tallies.by_prompt` of the metric; None, as for a CSV, leaves the interval and what is
    confirmed null. rng_seed: of the resamples; equal prompts are resampled alike in every run.
    ends: by run, so that a curve that ends below the threshold can say why.
    CurveError when there is no curve of the metric, or a curve is not usable (named).
    """
    chosen = curves.filter(pl.col("metric") == metric)
    if chosen.is_empty():
        have = ", ".join(curves["metric"].unique().sort())
        raise CurveError(f"no curve of metric {metric!r}; there are curves of {have or 'none'}")
    keys = ["run", *identity]
    tallies = {} if prompts is None else prompts.partition_by(keys, as_dict=True)

    @cache
    def resamples(n: int) -> crossing.Array:
        return crossing.weights(np.random.default_rng(rng_seed), n)

    rows = []
    for key, part in chosen.sort(*keys, "step").group_by(keys, maintain_order=True):
        end = (ends or {}).get(str(key[0]), End())
        try:
            found = _row(part, threshold, tallies.get(key), resamples, end)
        except CurveError as error:
            raise CurveError(f"run {key[0]!r}, {metric}: {error}") from error
        rows.append(dict(zip(keys, key, strict=True)) | {"metric": metric} | found)
    return pl.DataFrame(rows, schema={n: curves.schema[n] for n in keys} | ONSETS)


def _row(
    curve: pl.DataFrame,
    threshold: float,
    tallies: pl.DataFrame | None,
    resamples: Callable[[int], crossing.Array],
    end: End,
) -> dict[str, Any]:
    """ONSETS of one curve."""
    found = onset(curve["step"].to_list(), curve["rate"].to_list(), threshold)
    rated = curve.filter(pl.col("rate").is_not_null())
    steps, rates = rated["step"].to_list(), rated["rate"].to_list()
    counts = None if tallies is None else counts_of(curve, tallies)
    interval, confirmed = None, None
    if counts is not None:
        at = next((i for i, rate in enumerate(rates) if rate >= threshold), len(steps))
        held, found = _confirmed(found, counts, at)
        confirmed = None if found.above is None else held is not None
        interval = crossing.interval(counts, at, held, threshold, resamples(len(counts.k)))
    if found.status == "right":
        last = max(end.planned, curve["step"][-1])
        found = replace(found, reason=_reason(steps[-1], last, end.budget))
    first, final = (steps[0], steps[-1]) if steps else (None, None)
    return asdict(found) | {
        "onset_lo": None if interval is None else _bound(interval.lo),
        "onset_hi": None if interval is None else _bound(interval.hi),
        "interval": None if interval is None else interval.rule,
        "isotonic": _isotonic(rated, threshold),
        "confirmed": confirmed,
        "sensitivity": [_at(steps, rates, level) for level in GRID],
        "text": text(found, first, final, interval),
        "bracket": bracket(found.below, found.above),
    }


def _at(steps: Sequence[int], rates: Sequence[float], level: float) -> dict[str, Any]:
    """SENSITIVITY at one threshold."""
    found = onset(steps, rates, level)
    return {"threshold": level, "onset": found.onset, "status": found.status}


def _reason(evaluated: int, last: int, budget: int) -> str:
    """Why a curve ends before its crossing, given its last rate, checkpoint and step to be."""
    if evaluated < last:
        return "missing_checkpoint"
    return "aborted" if last < budget else "budget"


def _confirmed(found: Onset, counts: Counts, at: int) -> tuple[int | None, Onset]:
    """Where it is confirmed, if so, and the onset with the status that its prompts allow."""
    if found.above is None:
        return None, found
    held, undone = crossing.confirmation(counts, at, found.threshold)
    status: Status = "left" if at == 0 else "unconfirmed" if held is None else "crossed"
    return held, replace(found, status="uncrossed" if undone else status)


def counts_of(curve: pl.DataFrame, tallies: pl.DataFrame) -> Counts | None:
    """Matrices of the checkpoints that have a rate; CurveError where their sums are another's."""
    rated = curve.filter(pl.col("rate").is_not_null())
    kept = tallies.filter(pl.col("step").is_in(rated["step"].implode()))
    if kept.is_empty():
        return None
    steps = rated["step"].to_numpy()
    names, row = np.unique(kept["prompt_id"].to_numpy(), return_inverse=True)
    column = np.searchsorted(steps, kept["step"].to_numpy())
    k, x = (np.zeros((len(names), len(steps))) for _ in range(2))
    k[row, column], x[row, column] = kept["k"].to_numpy(), kept["x"].to_numpy()
    told = k.sum(axis=0) * rated["rate"].to_numpy()
    wrong = ~np.isclose(told, x.sum(axis=0), atol=1e-6) | (k.sum(axis=0) == 0)
    if wrong.any():
        step = steps[int(wrong.argmax())]
        raise CurveError(f"step {step}: hits by prompt are not those of the rate; same metric?")
    return Counts(steps.astype(np.float64), k, x)


def _bound(step: float) -> float | None:
    return step if math.isfinite(step) else None


def _isotonic(rated: pl.DataFrame, threshold: float) -> float | None:
    """Crossing of the centred isotonic fit, weighed by rollouts (alike where they are unknown)."""
    if rated.is_empty():
        return None
    steps, rates, rollouts = (
        rated[name].cast(pl.Float64).fill_null(1.0).to_numpy()
        for name in ("step", "rate", "rollouts")
    )
    return isotonic.crossing(steps, rates, rollouts, threshold)


SENSITIVITY = pl.Struct({"threshold": pl.Float64, "onset": pl.Float64, "status": pl.String})
ONSETS = pl.Schema(
    {
        "metric": pl.String(),
        "status": pl.String(),
        "onset": pl.Float64(),
        "onset_lo": pl.Float64(),
        "onset_hi": pl.Float64(),
        "interval": pl.String(),
        "sustained": pl.Float64(),
        "isotonic": pl.Float64(),
        "below": pl.Int32(),
        "above": pl.Int32(),
        "jump": pl.Float64(),
        "confirmed": pl.Boolean(),
        "reason": pl.String(),
        "evaluated": pl.Int64(),
        "spacing": pl.Float64(),
        "threshold": pl.Float64(),
        "sensitivity": pl.List(SENSITIVITY),
        "text": pl.String(),
        "bracket": pl.String(),
    }
)
"""Columns of `onsets` after run and identity.

onset                null for left, right and no_data: `above` or `below` is all that is known
sustained            null as well where no rate is below at all, or the last one is
onset_lo, onset_hi   95 % interval; null on a side without a bound, both where not computable
interval             how it was had: bootstrap or fieller, +bracket where the jump is large
isotonic             crossing of the centred isotonic fit (`pipeline.isotonic`)
confirmed            whether pooled checkpoints hold it over the threshold
reason               of right: missing_checkpoint (one is known that has no rate), aborted
                     (training was to go on), budget
sensitivity          onset and status at each threshold of GRID, of the rates alone
"""
