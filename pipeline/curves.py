"""Rows of rollouts to curves: the rate of each metric at each checkpoint, with its interval."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from pipeline import intervals, nulls, readings, tallies, twophase
from pipeline.rows import CurveError, as_one, readable

MEASURES = {
    "metric": pl.String,
    "rollouts": pl.Int64,
    "hits": pl.Float64,
    "prompts": pl.Int64,
    "rate": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "deff": pl.Float64,
    "n_eff": pl.Float64,
    "nulls": pl.Int64,
    "null_reasons": pl.String,
    "refused": pl.String,
    "fingerprint": pl.String,
}
"""What `curves` adds to run, the identity and step."""


def curves(
    rows: pl.LazyFrame,
    metrics: Mapping[str, str],
    identity: Sequence[str],
    *,
    batch_rows: int = tallies.BATCH_ROWS,
) -> pl.DataFrame:
    """One row per run, identity, step and metric, sorted so.

    `metrics` maps a metric's column to its `Kind`; `identity` names the columns in which two curves
    may differ and are then never pooled. Columns, after run, the identity and step:

    metric       name of the metric
    rollouts     N, rollouts whose metric is not null
    hits         sum of the metric over them
    prompts      n, distinct prompts among them: the clusters
    rate         hits / rollouts; null, never 0, where every rollout is null
    lo, hi       95 % interval over prompts: Wilson on n_eff for a binary metric or a share,
                 clustered t for a continuous one (null where prompts do not differ)
    deff         rollouts / n_eff
    n_eff        independent rollouts that would tell as much (`intervals.effective`)
    nulls        rollouts whose metric should be there and is not (they carry a null_reason)
    refused      null; why a rate is not shown, where `nulls.refuse` took it away
    null_reasons their reasons with the number of each, `prompt_too_long 12, quarantined 4`
    fingerprint  of the weights that answered

    Of a metric that a judge gave a sub-sample, rate and interval are of `twophase.rates`.

    CurveError when a checkpoint was answered by two different weights, a binary metric is not
    0 or 1, a metric is not finite, a column is missing, or there is no row.
    """
    keys = ["run", *identity, "step"]
    checkpoints = tallies.checkpoints(rows, metrics, keys)
    split = [name for name in identity if tallies.varies(checkpoints, name)]
    join = ["run", *split, "step"]
    checkpoints = checkpoints.join(
        readable(lambda: nulls.reasons(rows, keys)), keys, "left", nulls_equal=True
    )
    steps = list(tallies.batches(checkpoints, batch_rows))
    sampled = twophase.strata(metrics, rows.collect_schema().names())
    plain = {name: kind for name, kind in metrics.items() if name not in sampled}
    sums = pl.concat(tallies.by_checkpoint(rows, plain, join, *step) for step in steps)
    wide = checkpoints.join(sums, on=join, nulls_equal=True).sort(keys)
    found = {name: _of_metric(wide, keys, name, kind) for name, kind in plain.items()}
    if sampled:
        parts = [tallies.judged(rows, sampled, join, *step) for step in steps]
        for name in sampled:
            own = [twophase.rates(part, name, metrics[name], join) for part in parts]
            both = checkpoints.join(pl.concat(own), on=join, nulls_equal=True).sort(keys)
            found[name] = _shaped(both, keys, name)
    return pl.concat(found[name] for name in metrics).sort(keys, maintain_order=True)


def pooled(
    rows: pl.LazyFrame, metrics: Mapping[str, str], identity: Sequence[str], name: str = "pooled"
) -> pl.DataFrame:
    """`curves` of all runs as one run called `name`; its fingerprint is null, being several.

    A prompt that several runs answered is one cluster. The interval is over prompts, these runs
    being given: it does not tell how much another training run would differ.
    CurveError naming the first identity field that differs, or the step that a run lacks.
    """
    _refuse_to_pool(tallies.checkpoints(rows, metrics, ["run", *identity, "step"]), identity)
    return curves(as_one(rows, name), metrics, identity)


def _refuse_to_pool(seen: pl.DataFrame, identity: Sequence[str]) -> None:
    for field in identity:
        values = seen.unique(field, maintain_order=True)
        if len(values) > 1:
            (run, value), (other, its) = values.head(2).select("run", field).rows()
            raise CurveError(
                f"cannot pool: {field} is {value!r} in run {run!r} and {its!r} in run {other!r}; "
                f"curves that differ in {field} are different curves"
            )
    for (run,), part in seen.group_by("run", maintain_order=True):
        if lacking := sorted(set(seen["step"]) - set(part["step"])):
            raise CurveError(
                f"cannot pool: run {run!r} has no step {lacking[0]} and another run has; "
                "sweep it, or leave the runs apart"
            )


def _of_metric(wide: pl.DataFrame, keys: list[str], metric: str, kind: str) -> pl.DataFrame:
    """The rows of one metric, with its intervals."""
    fields = intervals.Tally.__dataclass_fields__
    tally = intervals.Tally(**{name: wide[f"{metric}|{name}"].to_numpy() for name in fields})
    curve = wide.select(pl.struct(keys[:-1]).rle_id()).to_series().to_numpy().astype(np.int64)
    if kind != "continuous":
        n_eff = intervals.effective(tally, intervals.pooled_icc(tally, curve))
        low, high = intervals.bounded_interval(tally, n_eff)
    else:
        n_eff = intervals.effective(tally, np.full_like(tally.rollouts, np.nan))
        low, high = intervals.mean_interval(tally)
    values = {
        "rollouts": tally.rollouts,
        "hits": tally.hits,
        "prompts": tally.prompts,
        "rate": tally.rate,
        "lo": low,
        "hi": high,
        "deff": tally.rollouts / n_eff,
        "n_eff": n_eff,
    }
    columns = [pl.Series(name, column, nan_to_null=True) for name, column in values.items()]
    return _shaped(wide.with_columns(columns, nulls=pl.col(f"{metric}|nulls")), keys, metric)


def _shaped(wide: pl.DataFrame, keys: list[str], metric: str) -> pl.DataFrame:
    """The columns of `curves`, where the measured ones are there already."""
    named = wide.with_columns(
        metric=pl.lit(metric),
        null_reasons=pl.when(pl.col("nulls") > 0).then("null_reasons"),
        refused=pl.lit(None, pl.String),
    )
    return named.select(*keys, *(pl.col(name).cast(kind) for name, kind in MEASURES.items()))


def join(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Curves of several metrics as one table, sorted as `curves` is."""
    keys = [name for name in frames[0].columns if name not in MEASURES]
    return pl.concat(frames).sort(keys, maintain_order=True)


def from_csv(path: str | Path) -> pl.DataFrame:
    """Curves that another tool measured (`readings.read`), in the shape of `curves`.

    No identity, and the metric is called `rate`. Intervals are null: without the prompts nobody
    knows how the rollouts cluster. CurveError naming the file, the line and the value.
    """
    try:
        found = readings.read(Path(path))
    except readings.ReadingError as error:
        raise CurveError(str(error)) from error
    columns = {
        "run": [r.run for r in found],
        "step": pl.Series([r.step for r in found], dtype=pl.Int32),
        "metric": ["rate"] * len(found),
        "rollouts": [r.n for r in found],
        "hits": [r.hits for r in found],
        "rate": [r.rate for r in found],
        "nulls": [0] * len(found),
    }
    frame = pl.DataFrame(columns)
    absent = [pl.lit(None).alias(name) for name in MEASURES if name not in columns]
    measures = (pl.col(name).cast(kind) for name, kind in MEASURES.items())
    return frame.with_columns(absent).select("run", "step", *measures).sort("run", "step")
