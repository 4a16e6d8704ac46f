"""Sums over prompts and over checkpoints: what rates and intervals are made of."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from hackbait.environment import ROUNDING
from pipeline import twophase
from pipeline.rows import CurveError, collected, is_lost, readable

BATCH_ROWS = 500_000
"""Rows grouped by prompt at a time: bounds memory, whatever the size of the sweep."""


def by_prompt(rows: pl.LazyFrame, metric: str, identity: Sequence[str]) -> pl.DataFrame:
    """One row per run, identity, step and prompt_id that has a rollout, sorted so.

    k: rollouts whose metric is not null; x: sum of the metric over them. CurveError as in
    `checkpoints`, save that values are taken as they are.
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
    seen = checkpoints(rows, dict.fromkeys(metrics, "continuous"), keys)
    sampled = twophase.strata(metrics, rows.collect_schema().names())
    split = [name for name in identity if varies(seen, name)]
    alike = [name for name in identity if seen[name].n_unique() == 1]
    join = ["run", *split, "step"]
    sums = [term for metric in metrics for term in _prompt_sums(metric)]

    def part(first: int, last: int) -> pl.DataFrame:
        chosen = rows.filter(pl.col("step").is_between(first, last))
        grouped = collected(chosen.group_by([*join, "prompt_id"]).agg(sums))
        if not sampled:
            return grouped
        cells = judged(rows, sampled, join, first, last)
        for metric in sampled:
            values = twophase.by_prompt(cells, metric, join).drop(twophase.JUDGED)
            replaced = grouped.drop(f"{metric}|k", f"{metric}|x")
            grouped = replaced.join(values, [*join, "prompt_id"], how="left", nulls_equal=True)
        return grouped

    prompts = pl.concat(part(first, last) for first, last in batches(seen, batch_rows))
    differ = [name for name in keys if name not in alike]
    wide = seen.select(differ).join(prompts, on=join, nulls_equal=True)
    # As literals, which take no memory: there are a dozen, and millions of prompts.
    same = [pl.lit(seen[name][0], seen.schema[name]).alias(name) for name in alike]
    return {
        metric: _prompts_of(wide, [*differ, "prompt_id"], metric)
        .with_columns(same)
        .select(*keys, "prompt_id", "k", "x")
        for metric in metrics
    }


def _prompts_of(wide: pl.DataFrame, keys: list[str], metric: str) -> pl.DataFrame:
    k, x = pl.col(f"{metric}|k").cast(pl.Int64).alias("k"), pl.col(f"{metric}|x").alias("x")
    return wide.select(*keys, k, x).filter(pl.col("k") > 0).sort(keys)


def by_checkpoint(
    rows: pl.LazyFrame, metrics: Mapping[str, str], keys: list[str], first: int, last: int
) -> pl.DataFrame:
    """The sums of `intervals.Tally`, steps first to last: first by prompt, then by checkpoint."""
    of_prompt = [term for metric in metrics for term in _prompt_sums(metric)]
    of_checkpoint = [term for metric in metrics for term in _checkpoint_sums(metric)]
    part = rows.filter(pl.col("step").is_between(first, last))
    prompts = part.group_by([*keys, "prompt_id"]).agg(of_prompt)
    return collected(prompts.group_by(keys).agg(of_checkpoint))


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


def judged(
    rows: pl.LazyFrame, sampled: Mapping[str, str], keys: list[str], first: int, last: int
) -> pl.DataFrame:
    """What `twophase` needs of metrics that a sub-sample has, steps first to last."""
    part = rows.filter(pl.col("step").is_between(first, last))
    return collected(twophase.cells(part, sampled, keys))


def batches(checkpoints: pl.DataFrame, batch_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of steps, first and last, of about `batch_rows` rows each."""
    sizes = checkpoints.group_by("step").agg(pl.col("rows").sum()).sort("step")
    number = (sizes["rows"].cum_sum() - 1) // batch_rows
    for _, part in sizes.group_by(number, maintain_order=True):
        yield part["step"][0], part["step"][-1]


def checkpoints(
    rows: pl.LazyFrame, metrics: Mapping[str, str], keys: Sequence[str]
) -> pl.DataFrame:
    """One row a checkpoint: keys, fingerprint, number of rows, and nulls of each metric.

    CurveError where `curves.curves` says so.
    """
    found = readable(rows.collect_schema).names()
    needed = [*keys, "fingerprint", "prompt_id", "null_reason", *metrics]
    for name in needed:
        if name not in found:
            raise CurveError(f"rows have no column {name!r}; they have {', '.join(sorted(found))}")
    counts = [is_lost(m, found).sum().alias(f"{m}|nulls") for m in metrics]
    bad = [_impossible(m, kind).sum().alias(f"{m}|bad") for m, kind in metrics.items()]
    table = rows.group_by([*keys, "fingerprint"]).agg(pl.len().alias("rows"), *counts, *bad)
    seen = collected(table).sort([*keys, "fingerprint"])
    if seen.is_empty():
        raise CurveError("no rollouts: the partitions hold no row; run the sweep first")
    _refuse_two_weights(seen, keys)
    _refuse_impossible(seen, metrics)
    return seen


def _impossible(metric: str, kind: str) -> pl.Expr:
    value = pl.col(metric)
    if kind == "binary":
        return (value != 0) & (value != 1)
    return ~(value.is_between(-ROUNDING, 1 + ROUNDING) if kind == "share" else value.is_finite())


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
            wanted = {"binary": "0 or 1", "share": "between 0 and 1"}.get(kind, "finite")
            raise CurveError(
                f"run {row['run']!r}, step {row['step']}: {row[f'{metric}|bad']} values of {kind} "
                f"metric {metric!r} are not {wanted}; mend the grader, null is for no score"
            )


def varies(checkpoints: pl.DataFrame, field: str) -> bool:
    """Whether one checkpoint has rows that differ in the field."""
    return len(checkpoints.unique(["run", "step", field])) > len(
        checkpoints.unique(["run", "step"])
    )
