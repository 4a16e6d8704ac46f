"""The onset of a curve: the step at which its rate reaches a threshold, or that it did not.

The rule is the one of the published replication (assay, 2026-08): absolute threshold, `>=`, first
crossing, linear interpolation to the previous evaluated checkpoint, no smoothing. It is unbiased
for grids of up to 5 steps; a logistic fit invents onsets on curves that never cross.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl

from pipeline import crossing, isotonic
from pipeline.crossing import Counts, Interval
from pipeline.curves import CurveError

Status = Literal["crossed", "left", "right", "unconfirmed", "uncrossed", "no_data"]

GRID = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Thresholds at which an onset is given beside its own, to show how much it hangs on it."""


@dataclass(frozen=True, slots=True)
class Onset:
    """Where one curve crosses one threshold. A step that is not known is None, never another."""

    status: Status
    """left: reached at the first evaluated step already. right: not reached by the last.
    unconfirmed: reached, by a rate too uncertain to hold (`crossing.confirmation`).
    uncrossed: reached, but below again: later, confirmed; or at the last where prompts are unknown.
    no_data: no rate at all."""
    onset: float | None
    """Step of the first crossing; the first step for left, None for right."""
    sustained: float | None
    """Step of the crossing after which no evaluated rate is below; None when the last one is."""
    below: int | None
    """Last evaluated step before the first crossing (the last of all for right)."""
    above: int | None
    """First evaluated step at or over the threshold: the onset lies in (below, above]."""
    reason: str | None
    """Why the curve ends before its crossing; None unless right."""
    evaluated: int
    """Checkpoints with a rate."""
    threshold: float
    jump: float | None = None
    """Rise of the rate over the bracket."""
    spacing: float | None = None
    """Steps between neighbours, the most up to the crossing: shorter excursions would be missed."""


def onset(steps: Sequence[int], rates: Sequence[float | None], threshold: float = 0.5) -> Onset:
    """The onset of a curve given in any order; points whose rate is None are skipped.

    CurveError for a rate that is not finite, a step that comes twice or a threshold that is no
    number.
    """
    points = _points(steps, rates)
    if not math.isfinite(threshold):
        raise CurveError(f"threshold {threshold} is not a number; 0.5 is the usual one")
    reached = [rate >= threshold for _, rate in points]
    if not points:
        return Onset("no_data", None, None, None, None, None, 0, threshold)
    if True not in reached:
        last, wide = points[-1][0], _spacing(points)
        return Onset(
            "right", None, None, last, None, "budget", len(points), threshold, spacing=wide
        )
    first = reached.index(True)
    tail = len(points) - _run_of_true(reached)
    sustained = _crossing(points, tail, threshold) if tail < len(points) else None
    below = points[first - 1][0] if first else None
    status: Status = "uncrossed" if sustained is None else "crossed" if first else "left"
    reached_at = _crossing(points, first, threshold)
    return Onset(
        status,
        reached_at,
        sustained,
        below,
        points[first][0],
        None,
        len(points),
        threshold,
        jump=points[first][1] - points[first - 1][1] if first else None,
        spacing=_spacing(points[: first + 1]),
    )


def _points(steps: Sequence[int], rates: Sequence[float | None]) -> list[tuple[int, float]]:
    points = sorted((s, r) for s, r in zip(steps, rates, strict=True) if r is not None)
    for step, rate in points:
        if not math.isfinite(rate):
            raise CurveError(f"step {step}: rate {rate} is not a finite number; leave it out")
    for (step, _), (following, _) in pairwise(points):
        if step == following:
            raise CurveError(f"step {step} comes twice in one curve; keep one rate of it")
    return points


def _spacing(points: Sequence[tuple[int, float]]) -> float | None:
    return max((float(b - a) for (a, _), (b, _) in pairwise(points)), default=None)


def _run_of_true(flags: Sequence[bool]) -> int:
    """Length of the run of True at the end."""
    return [*reversed(flags), False].index(False)


def _crossing(points: Sequence[tuple[int, float]], i: int, threshold: float) -> float:
    """Step at which the line from point i - 1 to point i meets the threshold."""
    if i == 0:
        return float(points[0][0])
    (s0, r0), (s1, r1) = points[i - 1], points[i]
    return s0 + (threshold - r0) / (r1 - r0) * (s1 - s0)


def text(found: Onset, first: int | None, last: int | None, interval: Interval | None) -> str:
    """`17.3 [16.1, 18.4]`, `> 30` when not reached by 30, `<= 0` when reached at the first, or `-`.

    A side without a bound reads `<= first` or `> last` evaluated step; no interval, no brackets.
    """
    if found.above is None:
        return "-" if found.below is None else f"> {found.below}"
    if found.below is None or found.onset is None:
        return f"<= {found.above}"
    if interval is None:
        return f"{found.onset:.1f}"
    low = f"{interval.lo:.1f}" if math.isfinite(interval.lo) else f"<= {first}"
    high = f"{interval.hi:.1f}" if math.isfinite(interval.hi) else f"> {last}"
    return f"{found.onset:.1f} [{low}, {high}]"


def bracket(below: int | None, above: int | None) -> str:
    """`(16, 18]`; the open side of a censored curve is left empty."""
    if below is None and above is None:
        return "-"
    return f"({'' if below is None else below}, {'' if above is None else above}]"


def onsets(
    curves: pl.DataFrame,
    metric: str,
    identity: Sequence[str],
    threshold: float = 0.5,
    prompts: pl.DataFrame | None = None,
    rng_seed: int = 0,
) -> pl.DataFrame:
    """One row per run and identity, sorted; the columns are ONSETS.

    prompts: `curves.by_prompt` of the metric; None, as for a CSV, leaves the interval and what is
    confirmed null. rng_seed: of the resamples; equal prompts are resampled alike in every run.
    CurveError when there is no curve of the metric, or a curve is not usable (named).
    """
    chosen = curves.filter(pl.col("metric") == metric)
    if chosen.is_empty():
        have = ", ".join(curves["metric"].unique().sort())
        raise CurveError(f"no curve of metric {metric!r}; there are curves of {have or 'none'}")
    keys = ["run", *identity]
    tallies = {} if prompts is None else prompts.partition_by(keys, as_dict=True)
    resamples: dict[int, crossing.Array] = {}
    rows = []
    for key, part in chosen.sort(*keys, "step").group_by(keys, maintain_order=True):
        try:
            counts = counts_of(part, tallies[key]) if key in tallies else None
            if counts is not None and (n := len(counts.k)) not in resamples:
                resamples[n] = crossing.weights(np.random.default_rng(rng_seed), n)
            drawn = None if counts is None else resamples[len(counts.k)]
            found = _row(part, threshold, counts, drawn)
        except CurveError as error:
            raise CurveError(f"run {key[0]!r}, {metric}: {error}") from error
        rows.append(dict(zip(keys, key, strict=True)) | {"metric": metric} | found)
    return pl.DataFrame(rows, schema={n: curves.schema[n] for n in keys} | ONSETS)


def _row(
    curve: pl.DataFrame, threshold: float, counts: Counts | None, resamples: crossing.Array | None
) -> dict[str, Any]:
    """ONSETS of one curve."""
    found = onset(curve["step"].to_list(), curve["rate"].to_list(), threshold)
    rated = curve.filter(pl.col("rate").is_not_null())
    steps, rates = rated["step"].to_list(), rated["rate"].to_list()
    interval, confirmed = None, None
    if counts is not None and resamples is not None:
        at = next((i for i, rate in enumerate(rates) if rate >= threshold), len(steps))
        held, found = _confirmed(found, counts, at)
        confirmed = None if found.onset is None else held is not None
        interval = crossing.interval(counts, at, held, threshold, resamples)
    if found.status == "right" and curve["step"][-1] != steps[-1]:
        found = replace(found, reason="missing_checkpoint")
    first, last = (steps[0], steps[-1]) if steps else (None, None)
    return asdict(found) | {
        "onset_lo": None if interval is None else _bound(interval.lo),
        "onset_hi": None if interval is None else _bound(interval.hi),
        "interval": None if interval is None else interval.rule,
        "isotonic": _isotonic(rated, threshold),
        "confirmed": confirmed,
        "sensitivity": [
            {"threshold": level, "onset": onset(steps, rates, level).onset} for level in GRID
        ],
        "text": text(found, first, last, interval),
        "bracket": bracket(found.below, found.above),
    }


def _confirmed(found: Onset, counts: Counts, at: int) -> tuple[int | None, Onset]:
    """Where it is confirmed, if so, and the onset with the status that its prompts allow."""
    if found.onset is None:
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


SENSITIVITY = pl.Struct({"threshold": pl.Float64, "onset": pl.Float64})
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

onset_lo, onset_hi   95 % interval; null on a side without a bound, both where not computable
interval             how it was had: bootstrap or fieller, +bracket where the jump is large
isotonic             crossing of the centred isotonic fit (`pipeline.isotonic`)
confirmed            whether pooled checkpoints hold it over the threshold
sensitivity          the onset at each threshold of GRID
"""
