"""Rows of rollouts to curves: the rate of each metric at each checkpoint, with its interval."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import numpy as np
import polars as pl

from pipeline import intervals, nulls, readings, twophase
from pipeline.places import Where, polars_options, where

T = TypeVar("T")

BATCH_ROWS = 500_000
"""Rows grouped by prompt at a time: bounds memory, whatever the size of the sweep."""
PARTITION = re.compile(r"(?P<above>.*?/)?run=(?P<run>[^/]+)/step=(?P<step>\d+)/[^/]+\.parquet")
COMPACTED = re.compile(r"(?:.*/)?compacted/[^/]+/[0-9a-f]{32}\.parquet")
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


class CurveError(ValueError):
    """No curve can be had from this input; one line, with the value and the cure."""


class Unreadable(CurveError):
    """A file of rows is missing, torn or of another schema."""


JUDGE_ERROR = "judge_error"
"""Column that is 1 where a judge failed, and the null reason of what it left unknown."""


def scan(files: Sequence[str | Where], gated: Sequence[str] = ()) -> pl.LazyFrame:
    """Rows of partitions and compacted files, with run (decoded) and step.

    gated: metrics that are null, for the reason `judge_error`, where that is 1.

    Partitions are `.../run=NAME/step=N/KEY.parquet`; compacted files, `.../compacted/ENV/NAME`,
    hold both as columns. All on disks, or all on one object store. Only these two path parts become
    columns, even when a folder above is called `seed=0`.
    CurveError when there is no file, or one lies elsewhere.
    """
    paths = [str(file) for file in files]
    if not paths:
        raise CurveError("no rollouts: the list of partitions is empty; run the sweep first")
    compacted = [path for path in paths if COMPACTED.fullmatch(path)]
    options = polars_options(where(paths[0]))
    frames = [_scan_partitions(alone, options)] if (alone := _without(paths, compacted)) else []
    if compacted:
        frames.append(
            pl.scan_parquet(compacted, glob=False, hive_partitioning=False, storage_options=options)
        )
    rows = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")
    return _without_failed(rows, gated) if gated else rows


def _without_failed(rows: pl.LazyFrame, gated: Sequence[str]) -> pl.LazyFrame:
    failed = pl.col(JUDGE_ERROR).eq_missing(1.0)
    kept = [pl.when(~failed).then(name).alias(name) for name in gated]
    told = pl.when(failed).then(pl.col("null_reason").fill_null(JUDGE_ERROR))
    return rows.with_columns(*kept, null_reason=told.otherwise("null_reason"))


def _without(paths: Sequence[str], others: Sequence[str]) -> list[str]:
    left_out = set(others)
    return [path for path in paths if path not in left_out]


def _scan_partitions(paths: list[str], options: dict[str, str]) -> pl.LazyFrame:
    parts = [PARTITION.fullmatch(path) for path in paths]
    strays = [path for path, part in zip(paths, parts, strict=True) if part is None]
    if strays:
        raise CurveError(f"{strays[0]}: not a partition; expected .../run=NAME/step=N/KEY.parquet")
    found = [part for part in parts if part is not None]
    if any("=" in (part["above"] or "") for part in found):
        return _scan_below_keys(paths, found, options)
    hive = {"run": pl.String, "step": pl.Int32}
    return pl.scan_parquet(
        paths, glob=False, hive_partitioning=True, hive_schema=hive, storage_options=options
    )


def _scan_below_keys(
    paths: list[str], parts: list[re.Match[str]], options: dict[str, str]
) -> pl.LazyFrame:
    """As `scan`, joined on the path: polars would take every `key=value` above for a column."""
    runs = [unquote(part["run"]) for part in parts]
    steps = pl.Series([int(part["step"]) for part in parts], dtype=pl.Int32)
    places = pl.LazyFrame({"path": paths, "run": runs, "step": steps})
    rows = pl.scan_parquet(
        paths,
        glob=False,
        hive_partitioning=False,
        include_file_paths="path",
        storage_options=options,
    )
    return rows.join(places, on="path").drop("path")


def curves(
    rows: pl.LazyFrame,
    metrics: Mapping[str, str],
    identity: Sequence[str],
    *,
    batch_rows: int = BATCH_ROWS,
) -> pl.DataFrame:
    """One row per run, identity, step and metric, sorted so.

    `metrics` maps a metric's column to its kind, `binary` or `continuous`; `identity` names the
    columns in which two curves may differ and are then never pooled. Columns, after run, the
    identity and step:

    metric       name of the metric
    rollouts     N, rollouts whose metric is not null
    hits         sum of the metric over them
    prompts      n, distinct prompts among them: the clusters
    rate         hits / rollouts; null, never 0, where every rollout is null
    lo, hi       95 % interval over prompts: Wilson on n_eff with t_{n-1} for a binary metric,
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
    checkpoints = _checkpoints(rows, metrics, keys)
    split = [name for name in identity if _varies(checkpoints, name)]
    join = ["run", *split, "step"]
    checkpoints = checkpoints.join(
        _readable(lambda: nulls.reasons(rows, keys)), keys, "left", nulls_equal=True
    )
    steps = list(_batches(checkpoints, batch_rows))
    sampled = twophase.strata(metrics, rows.collect_schema().names())
    plain = {name: kind for name, kind in metrics.items() if name not in sampled}
    tallies = pl.concat(_tallies(rows, plain, join, first, last) for first, last in steps)
    wide = checkpoints.join(tallies, on=join, nulls_equal=True).sort(keys)
    found = {name: _of_metric(wide, keys, name, kind) for name, kind in plain.items()}
    if sampled:
        parts = [_judged(rows, sampled, join, *step) for step in steps]
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
    _refuse_to_pool(_checkpoints(rows, metrics, ["run", *identity, "step"]), identity)
    return curves(as_one(rows, name), metrics, identity)


def as_one(rows: pl.LazyFrame, name: str = "pooled") -> pl.LazyFrame:
    """The rows of all runs as those of one run, whose fingerprint is null."""
    return rows.with_columns(run=pl.lit(name), fingerprint=pl.lit(None, pl.String))


def by_prompt(rows: pl.LazyFrame, metric: str, identity: Sequence[str]) -> pl.DataFrame:
    """One row per run, identity, step and prompt_id that has a rollout, sorted so.

    k: rollouts whose metric is not null; x: sum of the metric over them. CurveError as in `curves`,
    save that values are taken as they are.
    """
    return by_prompts(rows, [metric], identity)[metric]


def by_prompts(
    rows: pl.LazyFrame,
    metrics: Sequence[str],
    identity: Sequence[str],
    *,
    batch_rows: int = BATCH_ROWS,
) -> dict[str, pl.DataFrame]:
    """`by_prompt` of several metrics, the rows being read once."""
    keys = ["run", *identity, "step"]
    checkpoints = _checkpoints(rows, dict.fromkeys(metrics, "continuous"), keys)
    sampled = twophase.strata(metrics, rows.collect_schema().names())
    split = [name for name in identity if _varies(checkpoints, name)]
    alike = [name for name in identity if checkpoints[name].n_unique() == 1]
    join = ["run", *split, "step"]
    sums = [term for metric in metrics for term in _prompt_sums(metric)]

    def part(first: int, last: int) -> pl.DataFrame:
        chosen = rows.filter(pl.col("step").is_between(first, last))
        grouped = collected(chosen.group_by([*join, "prompt_id"]).agg(sums))
        if not sampled:
            return grouped
        judged = _judged(rows, sampled, join, first, last)
        for metric in sampled:
            values = twophase.by_prompt(judged, metric, join).drop(twophase.JUDGED)
            replaced = grouped.drop(f"{metric}|k", f"{metric}|x")
            grouped = replaced.join(values, [*join, "prompt_id"], how="left", nulls_equal=True)
        return grouped

    prompts = pl.concat(part(first, last) for first, last in _batches(checkpoints, batch_rows))
    differ = [name for name in keys if name not in alike]
    wide = checkpoints.select(differ).join(prompts, on=join, nulls_equal=True)
    # As literals, which take no memory: there are a dozen, and millions of prompts.
    same = [pl.lit(checkpoints[name][0], checkpoints.schema[name]).alias(name) for name in alike]
    return {
        metric: _prompts_of(wide, [*differ, "prompt_id"], metric)
        .with_columns(same)
        .select(*keys, "prompt_id", "k", "x")
        for metric in metrics
    }


def _prompts_of(wide: pl.DataFrame, keys: list[str], metric: str) -> pl.DataFrame:
    k, x = pl.col(f"{metric}|k").cast(pl.Int64).alias("k"), pl.col(f"{metric}|x").alias("x")
    return wide.select(*keys, k, x).filter(pl.col("k") > 0).sort(keys)


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


def _checkpoints(
    rows: pl.LazyFrame, metrics: Mapping[str, str], keys: Sequence[str]
) -> pl.DataFrame:
    """One row a checkpoint: keys, fingerprint, number of rows, and nulls of each metric."""
    found = _readable(rows.collect_schema).names()
    needed = [*keys, "fingerprint", "prompt_id", "null_reason", *metrics]
    for name in needed:
        if name not in found:
            raise CurveError(f"rows have no column {name!r}; they have {', '.join(sorted(found))}")
    lost = pl.col("null_reason").is_not_null()
    counts = [(pl.col(m).is_null() & lost).sum().alias(f"{m}|nulls") for m in metrics]
    bad = [_impossible(m, kind).sum().alias(f"{m}|bad") for m, kind in metrics.items()]
    table = rows.group_by([*keys, "fingerprint"]).agg(pl.len().alias("rows"), *counts, *bad)
    collected = _readable(lambda: table.collect(engine="streaming"))
    checkpoints = collected.sort([*keys, "fingerprint"])
    if checkpoints.is_empty():
        raise CurveError("no rollouts: the partitions hold no row; run the sweep first")
    _refuse_two_weights(checkpoints, keys)
    _refuse_impossible(checkpoints, metrics)
    return checkpoints


def _readable(read: Callable[[], T]) -> T:
    """What `read` returns. Raises Unreadable."""
    try:
        return read()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise Unreadable(
            f"partitions cannot be read as one table: {reason}; `onset verify OUT` names the file "
            "that is torn or foreign: delete it and sweep again"
        ) from error


def collected(table: pl.LazyFrame) -> pl.DataFrame:
    """The table, read. Raises Unreadable."""
    return _readable(lambda: table.collect(engine="streaming"))


def _impossible(metric: str, kind: str) -> pl.Expr:
    value = pl.col(metric)
    return (value != 0) & (value != 1) if kind == "binary" else ~value.is_finite()


def _refuse_two_weights(checkpoints: pl.DataFrame, keys: Sequence[str]) -> None:
    twice = checkpoints.filter(pl.struct(keys).is_duplicated())
    if len(twice):
        a, b = twice.head(2).rows(named=True)
        raise CurveError(
            f"run {a['run']!r}, step {a['step']}: two different weights answered, fingerprints "
            f"{a['fingerprint']} and {b['fingerprint']}; delete the partitions of one of them"
        )


def _refuse_impossible(checkpoints: pl.DataFrame, metrics: Mapping[str, str]) -> None:
    for metric, kind in metrics.items():
        bad = checkpoints.filter(pl.col(f"{metric}|bad") > 0)
        if len(bad):
            row = bad.row(0, named=True)
            wanted = "0 or 1" if kind == "binary" else "finite"
            raise CurveError(
                f"run {row['run']!r}, step {row['step']}: {row[f'{metric}|bad']} values of {kind} "
                f"metric {metric!r} are not {wanted}; mend the grader, null is for no score"
            )


def _varies(checkpoints: pl.DataFrame, field: str) -> bool:
    """Whether one checkpoint has rows that differ in the field."""
    return len(checkpoints.unique(["run", "step", field])) > len(
        checkpoints.unique(["run", "step"])
    )


def _tallies(
    rows: pl.LazyFrame, metrics: Mapping[str, str], keys: list[str], first: int, last: int
) -> pl.DataFrame:
    """The sums of `intervals.Tally`, steps first to last: first by prompt, then by checkpoint."""
    by_prompt = [term for metric in metrics for term in _prompt_sums(metric)]
    by_checkpoint = [term for metric in metrics for term in _checkpoint_sums(metric)]
    part = rows.filter(pl.col("step").is_between(first, last))
    prompts = part.group_by([*keys, "prompt_id"]).agg(by_prompt)
    checkpoints = prompts.group_by(keys).agg(by_checkpoint)
    return _readable(lambda: checkpoints.collect(engine="streaming"))


def _judged(
    rows: pl.LazyFrame, sampled: Mapping[str, str], keys: list[str], first: int, last: int
) -> pl.DataFrame:
    """What `twophase` needs of metrics that a sub-sample has, steps first to last."""
    part = rows.filter(pl.col("step").is_between(first, last))
    return collected(twophase.cells(part, sampled, keys))


def _batches(checkpoints: pl.DataFrame, batch_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of steps, first and last, of about `batch_rows` rows each."""
    sizes = checkpoints.group_by("step").agg(pl.col("rows").sum()).sort("step")
    number = (sizes["rows"].cum_sum() - 1) // batch_rows
    for _, part in sizes.group_by(number, maintain_order=True):
        yield part["step"][0], part["step"][-1]


def _prompt_sums(metric: str) -> list[pl.Expr]:
    value = pl.col(metric)
    return [
        value.count().cast(pl.Float64).alias(f"{metric}|k"),
        value.sum().alias(f"{metric}|x"),
        (value * value).sum().alias(f"{metric}|xx"),
    ]


def _checkpoint_sums(metric: str) -> list[pl.Expr]:
    k, x, xx = (pl.col(f"{metric}|{name}") for name in ("k", "x", "xx"))
    # x N - k X is exact for counts, so that prompts that do not differ have a spread of exactly 0.
    apart = x * k.sum() - k * x.sum()
    sums = {
        "rollouts": k.sum(),
        "hits": x.sum(),
        "prompts": (k > 0).sum().cast(pl.Float64),
        "squares": xx.sum(),
        "spread": (apart * apart).sum() / k.sum() ** 2,
        "fourth": apart.pow(4).sum() / k.sum().pow(4),
        "sizes": (k * k).sum(),
        "between": pl.when(k > 0).then(x * x / k).sum(),
    }
    return [term.alias(f"{metric}|{name}") for name, term in sums.items()]


def _of_metric(wide: pl.DataFrame, keys: list[str], metric: str, kind: str) -> pl.DataFrame:
    """The rows of one metric, with its intervals."""
    fields = intervals.Tally.__dataclass_fields__
    tally = intervals.Tally(**{name: wide[f"{metric}|{name}"].to_numpy() for name in fields})
    curve = wide.select(pl.struct(keys[:-1]).rle_id()).to_series().to_numpy().astype(np.int64)
    if kind == "binary":
        n_eff = intervals.effective(tally, intervals.pooled_icc(tally, curve))
        low, high = intervals.binary_interval(tally, n_eff)
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
