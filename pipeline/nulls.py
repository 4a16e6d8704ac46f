"""Rollouts that were lost: why, how many, and the rates that lost too many to be shown."""

from collections.abc import Sequence

import polars as pl


def reasons(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Checkpoints that lost rollouts: keys, and `null_reasons`, the commonest first.

    As `prompt_too_long 12, quarantined 4`.
    """
    lost = rows.filter(pl.col("null_reason").is_not_null())
    counts = lost.group_by([*keys, "null_reason"]).agg(pl.len().alias("count"))
    listed = counts.collect(engine="streaming").sort(
        "count", "null_reason", descending=[True, False]
    )
    texts = pl.format("{} {}", "null_reason", "count").str.join(", ").alias("null_reasons")
    return listed.group_by(keys, maintain_order=True).agg(texts)


def by_run(rows: pl.LazyFrame) -> pl.DataFrame:
    """run, null_reason, and how many rollouts at how many checkpoints; the commonest first."""
    lost = rows.filter(pl.col("null_reason").is_not_null()).group_by("run", "null_reason")
    counted = lost.agg(pl.len().alias("rollouts"), pl.col("step").n_unique().alias("checkpoints"))
    order = ["run", "rollouts", "null_reason"]
    return counted.collect(engine="streaming").sort(order, descending=[False, True, False])


def refuse(curves: pl.DataFrame, max_loss: float) -> pl.DataFrame:
    """The curves with rates that lost too much as nulls, and the reason in a column `refused`.

    max_loss: largest share of a checkpoint's rollouts that may be null for a reason.
    """
    asked = pl.col("rollouts") + pl.col("nulls")
    share = (pl.col("nulls") / asked).fill_nan(0).fill_null(0)
    said = pl.format(
        "{} % of {} rollouts lost ({})",
        (100 * share).round_sig_figs(3),
        asked,
        pl.col("null_reasons").fill_null("no reason"),
    )
    kept = [pl.when(share <= max_loss).then(name).alias(name) for name in ("rate", "lo", "hi")]
    return curves.with_columns(pl.when(share > max_loss).then(said).alias("refused"), *kept)


def refusals(curves: pl.DataFrame) -> list[str]:
    """A line for each rate that was refused."""
    rows = curves.filter(pl.col("refused").is_not_null()).iter_rows(named=True)
    return [f"run {r['run']!r} step {r['step']}: {r['metric']}: {r['refused']}" for r in rows]
