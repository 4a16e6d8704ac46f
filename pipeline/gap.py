"""Proxy-true gap: how much oftener rollouts are paid than they are right, per checkpoint."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline import intervals
from pipeline.curves import MEASURES

GAP = "gap"
"""Name of the metric whose rate is the gap."""


def rows(
    curves: pl.DataFrame, proxy: str, true: str, tallies: Sequence[pl.DataFrame]
) -> pl.DataFrame:
    """Rows of metric `gap` in the shape of `curves`: rate = proxy - true, with its 95 % interval.

    tallies: `tallies.by_prompt` of the proxy and of the true metric. Null, never the proxy alone,
    where there is no truth or either rate was refused. The interval (`intervals.mover`) takes the
    correlation of the two over prompts, being of the same rollouts.
    """
    keys = [name for name in curves.columns if name not in MEASURES]
    chosen = curves.filter(pl.col("metric") == proxy)
    of_true = curves.filter(pl.col("metric") == true).select(*keys, *_SIDE)
    both = chosen.join(of_true, on=keys, how="inner", suffix="|true", nulls_equal=True)
    # A key that is the same throughout need not be joined on for each of millions of prompts.
    differ = ["run", *(k for k in keys[1:-1] if tallies[0][k].n_unique() > 1), "step"]
    shared = correlations(tallies[0], tallies[1], differ)
    both = both.join(shared, on=differ, how="left", nulls_equal=True)
    first, second = (
        [both[name + end].to_numpy().astype(np.float64) for name in ("rate", "lo", "hi")]
        for end in ("", "|true")
    )
    c = both["correlation"].fill_null(0.0).to_numpy()
    low, high = intervals.mover(first, second, c)
    columns = [
        pl.Series("rate", first[0] - second[0], nan_to_null=True),
        pl.Series("lo", low, nan_to_null=True),
        pl.Series("hi", high, nan_to_null=True),
    ]
    found = both.with_columns(
        *columns,
        pl.lit(GAP).alias("metric"),
        pl.min_horizontal("rollouts", "rollouts|true").alias("rollouts"),
        pl.min_horizontal("prompts", "prompts|true").alias("prompts"),
        pl.lit(0).alias("nulls"),
        *(pl.lit(None).alias(name) for name in ("hits", "deff", "n_eff", "null_reasons")),
        pl.coalesce("refused", "refused|true").alias("refused"),
    )
    return found.select(*keys, *(pl.col(name).cast(kind) for name, kind in MEASURES.items()))


_SIDE = ("rate", "lo", "hi", "rollouts", "prompts", "refused")


def correlations(proxy: pl.DataFrame, true: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Correlation of x1 - p1 k1 with x2 - p2 k2 over the prompts of each checkpoint, in [-1, 1].

    Null where the prompts do not differ in either.
    """
    needed = [*keys, "prompt_id", "k", "x"]
    both = proxy.select(needed).join(
        true.select(needed), on=needed[:-2], suffix="|true", nulls_equal=True
    )
    # x N - k X is exact for counts, so that prompts that do not differ are exactly 0.
    a, b = (
        pl.col(f"x{of}") * pl.col(f"k{of}").sum() - pl.col(f"k{of}") * pl.col(f"x{of}").sum()
        for of in ("", "|true")
    )
    size = (a.pow(2).sum() * b.pow(2).sum()).sqrt()
    ratio = pl.when(size > 0).then((a * b).sum() / size).clip(-1, 1)
    return both.group_by(keys).agg(ratio.alias("correlation"))
