"""The onset table that is read first: base rate, onset, truth and gap at both ends of each run."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline.gap import GAP
from pipeline.onset import ONSETS

HEADLINE = (
    *("base_step", "base", "base_lo", "base_hi", "base_hits", "base_bound"),
    *(name for name in ONSETS if name != "metric"),
    *("true_base", "true_base_lo", "true_base_hi"),
    *("end_step", "end", "true_end", "true_end_lo", "true_end_hi"),
    *("gap_base", "gap_base_lo", "gap_base_hi", "gap_end", "gap_end_lo", "gap_end_hi"),
    *("n", "k", "prompts", "deff", "nulls", "refused"),
)
"""Columns of `headline` after run and identity."""


def headline(
    curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None
) -> pl.DataFrame:
    """The table that is read first: one row per run and identity, highest base rate first.

    base, base_lo, base_hi   rate of the proxy at base_step, the first evaluated step
    base_hits, base_bound    hits there; where there is none, base_hi: `intervals.zero_hits`, a
                             one-sided 95 % bound
    status ... bracket       as in `onsets`
    end                      rate of the proxy at end_step, its last
    true_base, true_end      rate of the true metric, with _lo and _hi, at base_step and at
                             end_step; null where there is no truth
    gap_base, gap_end        proxy - true at the same steps, with _lo and _hi (`pipeline.gap`)
    n, k, prompts            rollouts, rollouts a prompt and distinct prompts of the proxy's
                             smallest checkpoint
    deff                     largest design effect among them
    nulls                    rollouts lost to the proxy, all checkpoints together
    refused                  checkpoints whose rate of the proxy lost too many to be shown
    """
    keys = [name for name in onsets.columns if name not in ONSETS]
    of_proxy = curves.filter(pl.col("metric") == proxy)
    measured = curves.filter(pl.col("rate").is_not_null()).sort("step")
    size = [pl.col("rollouts").min().alias("n"), pl.col("prompts").min(), pl.col("deff").max()]
    first = [
        pl.col(name).first().alias(alias)
        for name, alias in {"step": "base_step", "hits": "base_hits"}.items()
    ]
    last = [pl.col("step").last().alias("end_step"), pl.col("rate").last().alias("end")]
    own = measured.filter(pl.col("metric") == proxy).group_by(keys).agg(*first, *last, *size)
    ends = measured.join(own.select(*keys, "base_step", "end_step"), on=keys, nulls_equal=True)
    parts = [
        own,
        _at(ends, keys, proxy, "base_step", "base"),
        _at(ends, keys, true, "base_step", "true_base"),
        _at(ends, keys, true, "end_step", "true_end"),
        _at(ends, keys, GAP, "base_step", "gap_base"),
        _at(ends, keys, GAP, "end_step", "gap_end"),
        of_proxy.group_by(keys).agg(pl.col("nulls").sum(), pl.col("refused").count()),
    ]
    table = onsets
    for part in parts:
        table = table.join(part, on=keys, how="left", nulls_equal=True)
    none = (pl.col("base_hits") == 0) & (pl.col("base_lo") == 0)
    bound = pl.when(none).then("base_hi").alias("base_bound")
    table = table.with_columns(bound, (pl.col("n") / pl.col("prompts")).alias("k"))
    by_base = table.sort("base", *keys, descending=[True, *(False for _ in keys)], nulls_last=True)
    return by_base.select(*keys, *HEADLINE)


def _at(
    ends: pl.DataFrame, keys: Sequence[str], metric: str | None, step: str, name: str
) -> pl.DataFrame:
    """Rate and interval of a metric at the step in column `step`."""
    names = {"rate": name, "lo": f"{name}_lo", "hi": f"{name}_hi"}
    rows = ends.filter((pl.col("metric") == (metric or "")) & (pl.col("step") == pl.col(step)))
    return rows.select(*keys, *(pl.col(column).alias(alias) for column, alias in names.items()))


READABLE = (
    *("run", "word", "base rate", "onset", "bracket", "status"),
    *("true at base", "true at end", "gap at end"),
    *("n", "k", "prompts", "deff", "checkpoints", "nulls"),
)
"""Columns of `readable`."""


def readable(headline: pl.DataFrame) -> list[dict[str, Any]]:
    """The headline as text for people: rates in `percent`.

    Fields of the identity in which the rows differ stand behind the run's name; the sustained
    crossing stands behind the status where it is another than the first.
    """
    differ = differing(headline)
    return [_readable(row, differ) for row in headline.iter_rows(named=True)]


def differing(headline: pl.DataFrame) -> list[str]:
    """Fields of the identity, but for the hack word, of which there are several values."""
    fields = [name for name in headline.columns if name not in ("run", "hack_word", *HEADLINE)]
    return [name for name in fields if headline[name].n_unique() > 1]


def _readable(row: Mapping[str, Any], differ: Sequence[str]) -> dict[str, Any]:
    late = f" at step {row['base_step']}" if row["base_step"] else ""
    true = _percent(row, "true_base")
    again = row["sustained"] is not None and row["sustained"] != row["onset"]
    sustained = f", sustained from {row['sustained']:.1f}" if again else ""
    if row["status"] in ("crossed", "unconfirmed", "left") and row["end"] < row["threshold"]:
        sustained = ", below at the last"
    reason = f" ({row['reason']})" if row["reason"] else ""
    return {
        "run": ", ".join([row["run"], *(f"{name}={row[name]}" for name in differ)]),
        "word": row.get("hack_word"),
        "base rate": _percent(row, "base") + late,
        "onset": row["text"],
        "bracket": row["bracket"],
        "status": row["status"] + reason + sustained,
        "true at base": true if true == "-" else true + late,
        "true at end": _percent(row, "true_end"),
        "gap at end": _percent(row, "gap_end"),
        "n": row["n"],
        "k": row["k"],
        "prompts": row["prompts"],
        "deff": row["deff"],
        "checkpoints": row["evaluated"],
        "nulls": f"{row['nulls']}, {row['refused']} refused" if row["refused"] else row["nulls"],
    }


def _percent(row: Mapping[str, Any], name: str) -> str:
    return percent(row[name], row[f"{name}_lo"], row[f"{name}_hi"])


def percent(rate: float | None, low: float | None, high: float | None) -> str:
    """`1.35 % [0.92, 1.98]`; no brackets where there is no interval, `-` where there is no rate.

    A rate without a hit reads `0 % (< 0.073 %)`, its one-sided bound.
    """
    if rate is None or low is None or high is None:
        return "-" if rate is None else f"{100 * rate:.3g} %"
    if rate == low == 0:
        return f"0 % (< {100 * high:.2g} %)"
    return f"{100 * rate:.3g} % [{100 * low:.3g}, {100 * high:.3g}]"
