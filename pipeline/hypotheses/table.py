"""The table that every question is put to: one row a run, with what was planned and what came."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

REACHED = ("crossed", "left", "uncrossed")
"""Statuses of a run that was seen to reach the threshold, or to stand over it from the start."""

PLANNED = pl.Schema(
    {
        "run": pl.String,
        "rates": pl.String,
        "seed": pl.Int64,
        "budget": pl.Int64,
        "outside": pl.Boolean,
    }
)
"""Which base a run starts from, its seed, its updates, and whether its word is in nothing that the
base was taught."""


def table(
    onsets: pl.DataFrame,
    headline: pl.DataFrame,
    curves: pl.DataFrame,
    screened: pl.DataFrame,
    planned: Sequence[Mapping[str, Any]],
) -> pl.DataFrame:
    """The onsets of the planned runs and, behind them, what the questions ask for.

    rates, seed, budget, outside  as in PLANNED
    base, base_lo, base_hi        base rate as screened: curves of the proxy whose `run` is `rates`
    base_hits, base_rollouts      its counts
    said, asked                   hits and rollouts of the proxy over checkpoints that differ
    peak                          its highest rate
    weights                       how many of the evaluated checkpoints differ
    end_proxy                     rate of the proxy at the last evaluated step
    true_*, gap_*                 as in the headline
    """
    word = ["hack_word"] if "hack_word" in onsets.columns else []
    keys = onsets.columns[: onsets.columns.index("metric")]
    frame = onsets.join(pl.DataFrame(planned, schema=PLANNED), on="run")
    bases = screened.join(onsets.select("metric").unique(), on="metric").select(
        pl.col("run").alias("rates"),
        *word,
        pl.col("rate").alias("base"),
        pl.col("lo").alias("base_lo"),
        pl.col("hi").alias("base_hi"),
        pl.col("hits").alias("base_hits"),
        pl.col("rollouts").alias("base_rollouts"),
    )
    of_proxy = curves.join(onsets.select("metric").unique(), on="metric").sort("step")
    # Equal weights give equal rollouts, which are no more evidence for being counted twice.
    new = pl.struct(pl.coalesce("fingerprint", pl.col("step").cast(pl.String))).is_first_distinct()
    ever = of_proxy.group_by(keys, maintain_order=True).agg(
        pl.col("hits").filter(new).sum().alias("said"),
        pl.col("rollouts").filter(new).sum().alias("asked"),
        new.sum().alias("weights"),
        pl.col("rate").max().alias("peak"),
        pl.col("rate").drop_nulls().last().alias("end_proxy"),
    )
    beside = [c for c in headline.columns if c.startswith(("true_", "gap_"))]
    for part, on in (
        (bases, ["rates", *word]),
        (ever, keys),
        (headline.select(*keys, *beside), keys),
    ):
        frame = frame.join(part, on=on, how="left", nulls_equal=True)
    return frame


def main(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs on the shipped base that are paid for the word alone, of words that it says."""
    return runs.filter(mode="hack_only", rates="shipped", outside=False)


def crossed(runs: pl.DataFrame) -> pl.DataFrame:
    """Those that rose over the threshold; none that stood over it from the start."""
    return runs.filter(pl.col("status").is_in(REACHED), pl.col("onset").is_not_null())


def percent(rate: float | None) -> str:
    """`7.81 %`, or `-`."""
    return "-" if rate is None else f"{100 * rate:.3g} %"


def words(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
