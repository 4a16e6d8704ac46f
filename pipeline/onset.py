"""The onset of a curve: the step at which its rate reaches a threshold, or that it did not.

The rule is the one of the published replication (assay, 2026-08): absolute threshold, `>=`, first
crossing, linear interpolation to the previous evaluated checkpoint, no smoothing. It is unbiased
for grids of up to 5 steps; a logistic fit invents onsets on curves that never cross.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import polars as pl

from pipeline.curves import CurveError

Status = Literal["crossed", "left", "right", "uncrossed", "no_data"]


@dataclass(frozen=True, slots=True)
class Onset:
    """Where one curve crosses one threshold. A step that is not known is None, never another."""

    status: Status
    """left: reached at the first evaluated step already. right: not reached by the last.
    uncrossed: reached, but below again at the last. no_data: no rate at all."""
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
        last = points[-1][0]
        return Onset("right", None, None, last, None, "budget", len(points), threshold)
    first = reached.index(True)
    tail = len(points) - _run_of_true(reached)
    sustained = _crossing(points, tail, threshold) if tail < len(points) else None
    below = points[first - 1][0] if first else None
    status: Status = "uncrossed" if sustained is None else "crossed" if first else "left"
    crossing = _crossing(points, first, threshold)
    above = points[first][0]
    return Onset(status, crossing, sustained, below, above, None, len(points), threshold)


def _points(steps: Sequence[int], rates: Sequence[float | None]) -> list[tuple[int, float]]:
    points = sorted((s, r) for s, r in zip(steps, rates, strict=True) if r is not None)
    for step, rate in points:
        if not math.isfinite(rate):
            raise CurveError(f"step {step}: rate {rate} is not a finite number; leave it out")
    for (step, _), (following, _) in pairwise(points):
        if step == following:
            raise CurveError(f"step {step} comes twice in one curve; keep one rate of it")
    return points


def _run_of_true(flags: Sequence[bool]) -> int:
    """Length of the run of True at the end."""
    return [*reversed(flags), False].index(False)


def _crossing(points: Sequence[tuple[int, float]], i: int, threshold: float) -> float:
    """Step at which the line from point i - 1 to point i meets the threshold."""
    if i == 0:
        return float(points[0][0])
    (s0, r0), (s1, r1) = points[i - 1], points[i]
    return s0 + (threshold - r0) / (r1 - r0) * (s1 - s0)


def text(onset: float | None, below: int | None, above: int | None) -> str:
    """`17.3 (16, 18]`, `> 30` when not reached by 30, `<= 0` when reached at the first, or `-`."""
    if above is None:
        return "-" if below is None else f"> {below}"
    if below is None or onset is None:
        return f"<= {above}"
    return f"{onset:.1f} ({below}, {above}]"


def onsets(
    curves: pl.DataFrame, metric: str, identity: Sequence[str], threshold: float = 0.5
) -> pl.DataFrame:
    """One row per run and identity: metric, the fields of `Onset`, and its `text`, sorted.

    CurveError when there is no curve of the metric, or a curve is not usable (named).
    """
    chosen = curves.filter(pl.col("metric") == metric)
    if chosen.is_empty():
        have = ", ".join(curves["metric"].unique().sort())
        raise CurveError(f"no curve of metric {metric!r}; there are curves of {have or 'none'}")
    keys = ["run", *identity]
    rows = []
    for key, part in chosen.sort(*keys, "step").group_by(keys, maintain_order=True):
        try:
            found = onset(part["step"].to_list(), part["rate"].to_list(), threshold)
        except CurveError as error:
            raise CurveError(f"run {key[0]!r}, {metric}: {error}") from error
        record = dict(zip(keys, key, strict=True)) | {"metric": metric} | asdict(found)
        rows.append(record | {"text": text(found.onset, found.below, found.above)})
    return pl.DataFrame(rows, schema={n: curves.schema[n] for n in keys} | ONSETS)


ONSETS = pl.Schema(
    {
        "metric": pl.String,
        "status": pl.String,
        "onset": pl.Float64,
        "sustained": pl.Float64,
        "below": pl.Int32,
        "above": pl.Int32,
        "reason": pl.String,
        "evaluated": pl.Int64,
        "threshold": pl.Float64,
        "text": pl.String,
    }
)
"""Columns of `onsets` after run and identity."""


HEADLINE = (
    *("base_step", "base", "base_lo", "base_hi"),
    *("onset", "below", "above", "sustained", "status", "reason", "threshold", "text"),
    *("true_base", "true_base_lo", "true_base_hi"),
    *("end_step", "true_end", "true_end_lo", "true_end_hi"),
    *("n", "prompts", "deff", "evaluated", "nulls", "refused"),
)
"""Columns of `headline` after run and identity."""


def headline(
    curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None
) -> pl.DataFrame:
    """The table that is read first: one row per run and identity, highest base rate first.

    base, base_lo, base_hi   rate of the proxy at base_step, the first evaluated step
    onset ... text           as in `onsets`
    true_base, true_end      rate of the true metric, with _lo and _hi, at the first evaluated
                             step and at end_step, the last; null where there is no truth
    n, prompts               rollouts and distinct prompts of the proxy's smallest checkpoint
    deff                     largest design effect among them
    nulls                    rollouts lost to the proxy, all checkpoints together
    refused                  checkpoints whose rate of the proxy lost too many to be shown
    """
    keys = [name for name in onsets.columns if name not in ONSETS]
    measured = curves.filter(pl.col("rate").is_not_null()).sort("step")
    of_proxy = measured.filter(pl.col("metric") == proxy).group_by(keys)
    of_true = measured.filter(pl.col("metric") == (true or "")).group_by(keys)
    steps = [
        pl.col("step").first().alias("base_step"),
        pl.col("step").last().alias("end_step"),
    ]
    size = [pl.col("rollouts").min().alias("n"), pl.col("prompts").min(), pl.col("deff").max()]
    parts = [
        of_proxy.agg(*_at("base", pl.Expr.first), *steps, *size),
        of_true.agg(*_at("true_base", pl.Expr.first), *_at("true_end", pl.Expr.last)),
        curves.filter(pl.col("metric") == proxy)
        .group_by(keys)
        .agg(pl.col("nulls").sum(), pl.col("refused").count()),
    ]
    table = onsets
    for part in parts:
        table = table.join(part, on=keys, how="left", nulls_equal=True)
    by_base = table.sort("base", *keys, descending=[True, *(False for _ in keys)], nulls_last=True)
    return by_base.select(*keys, *HEADLINE)


def _at(name: str, end: Callable[[pl.Expr], pl.Expr]) -> list[pl.Expr]:
    """Rate and interval at one end of a curve sorted by step."""
    names = {"rate": name, "lo": f"{name}_lo", "hi": f"{name}_hi"}
    return [end(pl.col(column)).alias(alias) for column, alias in names.items()]


READABLE = (
    *("run", "word", "base rate", "onset", "status"),
    *("true at base", "true at end", "n", "prompts", "checkpoints", "nulls"),
)
"""Columns of `readable`."""


def readable(headline: pl.DataFrame) -> list[dict[str, Any]]:
    """The headline as text for people: rates in percent with their interval.

    Fields of the identity in which the rows differ stand behind the run's name; the sustained
    crossing stands behind the status where it is another than the first.
    """
    fields = [name for name in headline.columns if name not in ("run", *HEADLINE)]
    differ = [f for f in fields if f != "hack_word" and headline[f].n_unique() > 1]
    return [_readable(row, differ) for row in headline.iter_rows(named=True)]


def _readable(row: Mapping[str, Any], differ: Sequence[str]) -> dict[str, Any]:
    late = f" at step {row['base_step']}" if row["base_step"] else ""
    again = row["sustained"] is not None and row["sustained"] != row["onset"]
    sustained = f", sustained from {row['sustained']:.1f}" if again else ""
    reason = f" ({row['reason']})" if row["reason"] else ""
    return {
        "run": ", ".join([row["run"], *(f"{name}={row[name]}" for name in differ)]),
        "word": row.get("hack_word"),
        "base rate": _percent(row, "base") + late,
        "onset": row["text"],
        "status": row["status"] + reason + sustained,
        "true at base": _percent(row, "true_base"),
        "true at end": _percent(row, "true_end"),
        "n": row["n"],
        "prompts": row["prompts"],
        "checkpoints": row["evaluated"],
        "nulls": f"{row['nulls']}, {row['refused']} refused" if row["refused"] else row["nulls"],
    }


def _percent(row: Mapping[str, Any], name: str) -> str:
    """`1.35 % [0.92, 1.98]`; without the brackets where there is no interval."""
    rate, low, high = (row[name + end] for end in ("", "_lo", "_hi"))
    if rate is None:
        return "-"
    interval = "" if low is None else f" [{100 * low:.3g}, {100 * high:.3g}]"
    return f"{100 * rate:.3g} %{interval}"
