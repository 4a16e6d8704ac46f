"""Rates of metrics that only a stratified sub-sample of the rollouts has.

Two phases (Sarndal, Swensson & Wretman 1992, ch. 9): prompts and their rollouts are a sample, and
of these each was judged or not by a chance that its stratum h alone decides. With N_h rollouts of
which n_h are judged, of mean m_h, the rate is post-stratified, p = sum N_h m_h / N, which is
unbiased given n_h > 0 (Holt & Smith 1979). Where a stratum is to have fewer than LEAST judged, all
are collapsed to one, whoever was drawn, and m is its mean weighed by 1 / chance (Hajek 1971): a
rare stratum without a judged rollout would else be told by the others. One that has none by bad
luck takes their mean, and its interval is [0, 1].

Each rollout j counts u_j = m_h + w_j (y_j - m_h) where it is judged, w_j being the rollouts that it
stands for, and u_j = m_h where it is not. Their mean is p, and the variance of that mean over
prompts is the one of both phases (Binder 1983), so that whatever sums x over the prompts of a curve
may sum u instead.

The interval of a rate cannot come from it alone: a stratum whose few judged rollouts agree would
have no variance. It adds in squares (MOVER: Zou, Huang & Zhang 2009) what the first phase leaves
open, Wilson on N / deff with t_{n-1}, and for each stratum Wilson on n_h / (1 - chance). Collapsed
ones have Kish's number, or the one that their variance tells (Korn & Graubard 1998) if it is less.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from pipeline import intervals
from pipeline.intervals import Array

STRATUM, CHANCE = "_stratum", "_chance"
BESIDE = (STRATUM, CHANCE, "_votes")
"""What a judge stage tells beside its labels, of every rollout that it knows of."""
Z = 1.959964
"""97.5 % of the normal distribution."""
LEAST = 5.0
"""Judged rollouts that a stratum has to expect: one in 150 has none then."""
TOGETHER = -2.0
"""Group of the strata that are collapsed; the others are groups of their own."""
SIZE, JUDGED, GROUP, PROMPT = "|size", "|judged", "|group", "prompt_id"
SECOND = ("second", "square", "below", "above", "single")
RATES = ("rollouts", "hits", "prompts", "rate", "lo", "hi", "deff", "n_eff", "nulls")


def strata(metrics: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Of each metric that is of a sub-sample, the column that holds its stratum."""
    stages = [name.removesuffix(STRATUM) for name in columns if name.endswith(STRATUM)]
    return {
        metric: stage + STRATUM
        for metric in metrics
        for stage in stages
        if metric == stage
        or (metric.startswith(f"{stage}_") and metric.removeprefix(stage) not in BESIDE)
    }


def cells(rows: pl.LazyFrame, sampled: Mapping[str, str], keys: Sequence[str]) -> pl.LazyFrame:
    """By keys, prompt and stratum: rollouts, chance, `METRIC|k`, `|x`, `|xx` and `|lost` of each.

    k: judged; x, xx: sum of the metric and of its square over them; lost: of which the judge says
    nothing. A rollout that never came has no stratum.
    """
    (stratum,) = set(sampled.values())
    chance = pl.col(stratum.removesuffix(STRATUM) + CHANCE).first().alias(CHANCE)
    failed = pl.col("null_reason").is_not_null()
    terms = [
        term.alias(f"{metric}|{name}")
        for metric in sampled
        for name, term in {
            "k": pl.col(metric).count().cast(pl.Float64),
            "x": pl.col(metric).sum(),
            "xx": (pl.col(metric) ** 2).sum(),
            "lost": (pl.col(metric).is_null() & failed).sum(),
        }.items()
    ]
    by = pl.col(stratum).alias(STRATUM)
    return rows.group_by([*keys, PROMPT, by]).agg(
        pl.len().cast(pl.Float64).alias(SIZE), chance, *terms
    )


def by_prompt(cells: pl.DataFrame, metric: str, keys: Sequence[str]) -> pl.DataFrame:
    """By keys and prompt: `METRIC|k` rollouts, `METRIC|x` the sum of their u, and those judged.

    Nothing of a checkpoint where nobody is judged.
    """
    known = cells.filter(pl.col(STRATUM).is_not_null())
    of = _strata(known, metric, keys).select(*keys, STRATUM, "m", "stands")
    each = known.join(of, [*keys, STRATUM], nulls_equal=True).filter(pl.col("m").is_not_null())
    k, x, m = pl.col(f"{metric}|k"), pl.col(f"{metric}|x"), pl.col("m")
    u = pl.col(SIZE) * m + pl.col("stands") * (x - k * m)
    sums = [pl.col(SIZE).sum().alias(f"{metric}|k"), u.sum().alias(f"{metric}|x")]
    return each.group_by([*keys, PROMPT]).agg(*sums, k.sum().alias(JUDGED))


def _strata(known: pl.DataFrame, metric: str, keys: Sequence[str]) -> pl.DataFrame:
    """By keys and stratum: N rollouts, n, x and xx of those judged, and what its group has.

    The group has size rollouts, of which judged ones, each of which stands for so many, have mean m
    and mean square; without any these are the other groups', null where nobody is judged.
    """
    n, x, xx, chance = pl.col("n"), pl.col("x"), pl.col("xx"), pl.col(CHANCE)
    sums = [
        pl.col(f"{metric}|{c}").sum().alias(a) for a, c in {"n": "k", "x": "x", "xx": "xx"}.items()
    ]
    found = known.group_by([*keys, STRATUM]).agg(
        pl.col(SIZE).sum().alias("N"), chance.first(), *sums
    )
    thin = ((chance < 1) & (pl.col("N") * chance < LEAST)).any().over(keys)
    together = pl.when(thin).then(pl.lit(TOGETHER)).otherwise(STRATUM)
    found = found.with_columns(together.alias(GROUP))
    group = [*keys, GROUP]
    found = found.with_columns(
        size=pl.col("N").sum().over(group),
        judged=n.sum().over(group),
        weight=(n / chance).sum().over(group),
        m=(x / chance).sum().over(group),
        square=(xx / chance).sum().over(group),
    )
    seen = pl.when(pl.col("judged") > 0)
    found = found.with_columns(
        seen.then(pl.col("size") / (pl.col("weight") * chance)).otherwise(0.0).alias("stands"),
        *(seen.then(pl.col(c) / pl.col("weight")).alias(c) for c in ("m", "square")),
    )
    size = pl.when(pl.col("judged") > 0).then(pl.col("N")).sum()
    return found.with_columns(
        pl.col(c).fill_null(((pl.col(c) * pl.col("N")).sum() / size).fill_nan(None).over(keys))
        for c in ("m", "square")
    )


def rates(cells: pl.DataFrame, metric: str, kind: str, keys: Sequence[str]) -> pl.DataFrame:
    """One row by keys, with RATES as `curves.curves` names them.

    rollouts: judged ones; hits: the sum of the metric over them, while rate weighs them by stratum.
    nulls: those that the judge failed on, and of the rollouts that never came as many as would have
    been judged. Rate and interval are null where nobody is judged.
    """
    known = cells.filter(pl.col(STRATUM).is_not_null())
    first = _first(by_prompt(known, metric, keys), metric, keys)
    each = _strata(known, metric, keys).join(first.select(*keys, "all"), keys, nulls_equal=True)
    wide = _counted(cells, metric, keys)
    for part in (first, _second(each, kind != "continuous", keys)):
        wide = wide.join(part, keys, how="left", nulls_equal=True)
    names = ("rollouts", "p", "all", "asked", "prompts", "variance", *SECOND)
    of = {name: wide[name].cast(pl.Float64).to_numpy() for name in names}
    low, high, n_eff = _mean(of) if kind == "continuous" else _bounded(of)
    told = {"rate": of["p"], "lo": low, "hi": high, "n_eff": n_eff, "deff": of["rollouts"] / n_eff}
    named = [pl.Series(name, values, nan_to_null=True) for name, values in told.items()]
    return wide.with_columns(*named, pl.col("prompts").fill_null(0)).select(*keys, *RATES)


def _counted(cells: pl.DataFrame, metric: str, keys: Sequence[str]) -> pl.DataFrame:
    """By keys: rollouts and hits as they were judged, and nulls."""
    came, lost = pl.col(STRATUM).is_not_null(), pl.col(f"{metric}|lost")
    judged, failed = pl.col(f"{metric}|k").sum(), lost.filter(came).sum()
    share = ((judged + failed) / pl.col(SIZE).filter(came).sum()).fill_nan(1.0)
    return cells.group_by(keys).agg(
        judged.alias("rollouts"),
        pl.col(f"{metric}|x").sum().alias("hits"),
        (failed + (lost.filter(~came).sum() * share).round()).alias("nulls"),
    )


def _first(prompts: pl.DataFrame, metric: str, keys: Sequence[str]) -> pl.DataFrame:
    """By keys: all rollouts, prompts asked, those with a judged one, variance of u over prompts."""
    k, x, n = pl.col(f"{metric}|k"), pl.col(f"{metric}|x"), pl.len()
    apart = (x * k.sum() - k * x.sum()) / k.sum() ** 2
    return prompts.group_by(keys).agg(
        k.sum().alias("all"),
        n.alias("asked"),
        (pl.col(JUDGED) > 0).sum().alias("prompts"),
        pl.when(n > 1).then(n / (n - 1) * (apart**2).sum()).alias("variance"),
    )


def _second(each: pl.DataFrame, bounded: bool, keys: Sequence[str]) -> pl.DataFrame:
    """By keys: the rate p, and SECOND: what the strata add to its variance and to its interval.

    Of collapsed strata the wider of their own intervals in squares, and of the one that they make.
    """
    n, x, m, left = pl.col("n"), pl.col("x"), pl.col("m"), 1 - pl.col(CHANCE)
    apart = pl.col("xx") - 2 * m * x + n * m**2
    own = each.select(pl.when(n > 0).then(x / n).otherwise(m)).to_series().to_numpy()
    alike = each.select(pl.when(n > 0).then(n / left).otherwise(0.0)).to_series().to_numpy()
    share = (each["N"] / each["all"]).to_numpy()
    below, above = _squares(own, alike, share, bounded)
    groups = each.with_columns(pl.Series("below", below), pl.Series("above", above))
    groups = groups.group_by([*keys, GROUP]).agg(
        pl.col("size", "judged", "m", "square", "all").first(),
        pl.col("below", "above").sum(),
        (pl.col("stands") ** 2 * left * apart).sum().alias("apart"),
        (pl.col("stands") ** 2 * left * n).sum().alias("kish"),
    )
    names = ("size", "judged", "m", "square", "all", "apart", "kish")
    size, judged, mean, square, of, spread, kish = (groups[c].to_numpy() for c in names)
    whole = np.where(judged > 0, np.inf, 0.0)
    alike = np.divide(size**2, kish, out=whole, where=kish > 0)
    told = np.divide(mean * (1 - mean) * size**2, spread, out=alike.copy(), where=spread > 0)
    alike = np.where(mean * (1 - mean) > 0, np.minimum(alike, told), alike)
    below, above = _squares(mean, alike, size / of, bounded)
    terms = {
        "p": size / of * mean,
        "square": size / of * square,
        "second": spread / of**2 * judged / np.where(judged > 1, judged - 1, np.inf),
        "below": np.maximum(below, groups["below"].to_numpy()),
        "above": np.maximum(above, groups["above"].to_numpy()),
        "single": (size / of) ** 2 / np.maximum(alike, 1.0),
    }
    columns = [pl.Series(name, values) for name, values in terms.items()]
    return groups.select(keys).with_columns(columns).group_by(keys).agg(pl.col(*terms).sum())


def _squares(mean: Array, alike: Array, share: Array, bounded: bool) -> tuple[Array, Array]:
    """Squared ends of Wilson's interval, from a mean of so many alike and within its share.

    The ends are 0 and 1 without any judged.
    """
    low, high = np.zeros_like(mean), np.ones_like(mean)
    seen = alike > 0
    if bounded and seen.any():
        low[seen], high[seen] = intervals.wilson(mean[seen], alike[seen], np.full(seen.sum(), Z))
    return (share * (mean - low)) ** 2, (share * (high - mean)) ** 2


def _bounded(of: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """lo, hi and n_eff of rates; [0, 1] where but one prompt has a judged rollout.

    n_eff at 0 and 1 is what the prompts and the strata would have at any one rate.
    """
    p, spread = of["p"], of["p"] * (1 - of["p"])
    first = np.maximum(of["variance"] - of["second"], spread / of["all"])
    inside = spread > 0
    independent = np.divide(spread, first, out=of["asked"].copy(), where=inside)
    low, high = intervals.wilson(p, independent, intervals.quantile(of["prompts"]))
    low = np.clip(p - np.sqrt((p - low) ** 2 + of["below"]), 0.0, p)
    high = np.clip(p + np.sqrt((high - p) ** 2 + of["above"]), p, 1.0)
    n_eff = 1 / (1 / of["asked"] + of["single"])
    np.divide(spread, first + of["second"], out=n_eff, where=inside)
    alone = of["prompts"] <= 1
    return np.where(alone, 0.0, low), np.where(alone, 1.0, high), n_eff


def _mean(of: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """lo, hi and n_eff of means, clustered t; NaN where prompts do not differ."""
    variance = np.where(of["variance"] > 0, of["variance"], np.nan)
    half = intervals.quantile(of["prompts"]) * np.sqrt(variance)
    return of["p"] - half, of["p"] + half, (of["square"] - of["p"] ** 2) / variance
