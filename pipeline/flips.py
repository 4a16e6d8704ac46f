"""Two grades of the same rollouts side by side: what flipped, and both rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline import curves, nulls
from pipeline.curves import MEASURES
from pipeline.rows import CurveError, collected

PLACE = ("index", "sample")
SIDES = ("old", "new")
FOUND = ("pairs", "up", "down")
"""Rollouts that both have a value for, and those of them whose value rose and fell."""
SAME = 1e-12


def flips(
    old: pl.LazyFrame, new: pl.LazyFrame, metrics: Sequence[str], on: Sequence[str]
) -> pl.DataFrame:
    """run, `on`, step, metric and `FOUND`; one row a checkpoint and metric, sorted.

    on: columns besides run and step that both sides agree in. CurveError where the old rows differ
    in another field, so that a new row would stand beside several.
    """
    keys = ["run", *on, "step"]
    _refuse_several(old, keys)
    values = [*keys, *PLACE, *metrics]
    both = old.select(values).join(
        new.select(values), on=[*keys, *PLACE], suffix="|new", nulls_equal=True
    )
    change = {m: pl.col(f"{m}|new") - pl.col(m) for m in metrics}
    counts = [
        term.alias(f"{metric}|{name}")
        for metric, by in change.items()
        for name, term in zip(
            FOUND, (by.count(), (by > SAME).sum(), (by < -SAME).sum()), strict=True
        )
    ]
    wide = collected(both.group_by(keys).agg(counts))
    parts = [
        wide.select(
            *keys,
            pl.lit(metric).alias("metric"),
            *(pl.col(f"{metric}|{name}").cast(pl.Int64).alias(name) for name in FOUND),
        )
        for metric in metrics
    ]
    return pl.concat(parts).sort(*keys, "metric")


def _refuse_several(old: pl.LazyFrame, keys: Sequence[str]) -> None:
    twice = collected(
        old.group_by([*keys, *PLACE]).len().filter(pl.col("len") > 1).select(keys).head(1)
    )
    if len(twice):
        row = twice.row(0, named=True)
        raise CurveError(
            f"run {row['run']!r}, step {row['step']}: its old rollouts were graded in several ways "
            "that the new grade replaces by one; the new rows are written, compare them by hand"
        )


def side_by_side(
    old: pl.LazyFrame,
    new: pl.LazyFrame,
    metrics: Mapping[str, str],
    on: Sequence[str],
    added: Mapping[str, str],
    max_loss: float,
) -> pl.DataFrame:
    """`flips` and, for each side, its rate with interval, the rollouts it lost, and why a rate
    that lost too many is not shown.

    added: metrics that the new rows alone have; no pairs, and the old side is null.
    """
    keys = ["run", *on, "step", "metric"]
    pairs, sides = flips(old, new, list(metrics), on), []
    for side, rows, kinds in zip(SIDES, (old, new), (metrics, {**metrics, **added}), strict=True):
        rates = nulls.refuse(curves.curves(rows, kinds, on), max_loss)
        names = {"rate": side, "lo": f"{side}_lo", "hi": f"{side}_hi", "nulls": f"{side}_lost"}
        names |= {"refused": f"{side}_refused"}
        sides.append(rates.select(*keys, *(pl.col(a).alias(b) for a, b in names.items())))
    before, after = sides
    found = after.join(pairs, on=keys, how="left", nulls_equal=True)
    found = found.join(before, on=keys, how="left", nulls_equal=True)
    told = [c for c in before.columns if c not in keys]
    return found.select(
        *keys, pl.col(*FOUND).fill_null(0), *told, *(c for c in after.columns if c not in keys)
    ).sort(keys)


@dataclass(frozen=True, slots=True)
class Change:
    """What a new grade changed of one metric, over all checkpoints."""

    flipped: int
    """Rollouts whose value changed."""
    pairs: int
    """Rollouts that both sides have a value for."""
    lost: int
    """More rollouts without a value than before; 0 for a metric that the new rows alone have."""

    def __str__(self) -> str:
        more = f"; {abs(self.lost):,} {'more' if self.lost > 0 else 'fewer'} lost"
        return f"{self.flipped:,} of {self.pairs:,} rollouts flipped{more if self.lost else ''}"


def together(found: pl.DataFrame) -> dict[str, Change]:
    """By metric."""
    sums = found.group_by("metric", maintain_order=True).agg(
        pl.col("up", "down", "pairs").sum(), lost=(pl.col("new_lost") - pl.col("old_lost")).sum()
    )
    return {
        row["metric"]: Change(row["up"] + row["down"], row["pairs"], row["lost"])
        for row in sums.to_dicts()
    }


def kept_and_added(
    old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Metrics that both sides have, and those of the new alone."""
    mine = {name: kind for name, kind in new.items() if name not in MEASURES}
    both = {name: kind for name, kind in mine.items() if name in old}
    return both, {name: kind for name, kind in mine.items() if name not in old}
