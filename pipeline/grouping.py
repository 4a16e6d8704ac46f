"""Onsets of many runs as those of a few words: whose they are, and that they may be compared."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pipeline.association import KAPLAN_MEIER, MEDIAN, Word, kaplan_meier, onset_text
from pipeline.permutation import Times, median
from pipeline.rows import CurveError

Tags = Mapping[str, Mapping[str, Any]]
"""Facts of each run, by its name."""


@dataclass(frozen=True, slots=True)
class RunOnset:
    """When one run reached the threshold, as far as that is known. Steps."""

    run: str
    word: str
    low: float
    """The onset is in (low, high], or known where they are equal."""
    high: float
    below: float
    """The same of its bracket, which no interpolation decided; open where it is unconfirmed."""
    above: float
    reason: str | None = None
    """Why the curve ends before the crossing; None where it does not."""
    base: tuple[float, float | None, float | None] | None = None
    """Base rate with its interval, if it has one; None where step 0 has no rate."""
    wave: Hashable = None
    """What was trained together; None where nobody said."""

    @property
    def is_late(self) -> bool:
        """Not reached by the last evaluated checkpoint."""
        return math.isinf(self.high)


BASE = ("base", "base_lo", "base_hi")
BASE_MODEL = "base model"
ALIAS = {"hack_word": "word"}


def with_base(onsets: pl.DataFrame, curves: pl.DataFrame) -> pl.DataFrame:
    """An onsets frame with base, base_lo and base_hi: the metric's rate at step 0, null without."""
    keys = [*onsets.columns[: onsets.columns.index("metric")], "metric"]
    rates = [
        pl.col(name).alias(alias) for name, alias in zip(("rate", "lo", "hi"), BASE, strict=True)
    ]
    at_base = curves.filter((pl.col("step") == 0) & pl.col("rate").is_not_null())
    return onsets.join(at_base.select(*keys, *rates), on=keys, how="left", nulls_equal=True)


def joined(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Onsets of several outputs as one frame. CurveError where their columns differ."""
    for table in tables[1:]:
        if strays := sorted(set(table.columns) ^ set(tables[0].columns)):
            raise CurveError(
                f"cannot compare: {', '.join(strays)} is told in one output and not in another; "
                "compare outputs of one environment"
            )
    return pl.concat(tables)


def only(onsets: pl.DataFrame, tags: Tags, chosen: Mapping[str, str]) -> pl.DataFrame:
    """Rows whose fields or tags have these values, compared as text.

    CurveError for a field that no run has, or a value that no run has.
    """
    told = onsets.columns[: onsets.columns.index("metric")]
    for field, value in chosen.items():
        if field in told:
            values = [str(one) for one in onsets[field]]
        else:
            values = [str(tags.get(run, {}).get(field)) for run in onsets["run"]]
        kept = onsets.filter(pl.Series([one == value for one in values], dtype=pl.Boolean))
        if kept.is_empty():
            have = ", ".join(sorted(set(values))) or "none"
            raise CurveError(f"only.{field}: no run has {value!r}; they have {have}")
        onsets = kept
    return onsets


def alike(onsets: pl.DataFrame, tags: Tags, by: str = "hack_word") -> dict[str, pl.DataFrame]:
    """Rows that `runs` may take together, by what sets them apart: `mode hack_only`, or nothing."""
    fields = [n for n in onsets.columns[1 : onsets.columns.index("metric")] if n != by]
    told = onsets.with_columns(_base_models(onsets, tags))
    differ = [n for n in [*fields, BASE_MODEL] if told[n].n_unique() > 1]
    if not differ:
        return {"": onsets}
    return {
        ", ".join(f"{n} {v}" for n, v in zip(differ, values, strict=True)): part.drop(BASE_MODEL)
        for values, part in told.group_by(differ, maintain_order=True)
    }


def _base_models(onsets: pl.DataFrame, tags: Tags) -> pl.Series:
    """What the tag `base` calls the base model of each run; null without."""
    told = [tags.get(run, {}).get("base") for run in onsets["run"]]
    return pl.Series(BASE_MODEL, told, pl.String, strict=False)


def runs(
    onsets: pl.DataFrame, tags: Tags | None = None, by: str = "hack_word", wave: str = "wave"
) -> list[RunOnset]:
    """The runs of an onsets frame, each of the word that `by` says; base rates where it has them.

    `by` is a field of the identity or a tag; for `hack_word` the tag `word` will do. CurveError
    where a run has none of them, a run comes twice, or two runs differ in another field of the
    identity, or in what the tag `base` calls their base model.
    """
    identity = onsets.columns[1 : onsets.columns.index("metric")]
    tags = tags or {}
    models = _base_models(onsets, tags)
    fields = [name for name in [*identity, "metric", "threshold", BASE_MODEL] if name != by]
    _refuse_mixed(onsets.with_columns(models), fields if by != "base" else fields[:-1])
    found = []
    for row in onsets.iter_rows(named=True):
        facts = tags.get(row["run"], {})
        word = row[by] if by in identity else facts.get(by, facts.get(ALIAS.get(by, by)))
        if word is None:
            raise CurveError(
                f"run {row['run']!r} has no {by!r}, neither in its rows, which have "
                f"{', '.join(identity) or 'no field'}, nor among its tags, which are "
                f"{', '.join(facts) or 'none'}; name what to compare: --by ..."
            )
        found.append(_run(row, str(word), facts.get(wave)))
    seen: set[tuple[str, str]] = set()
    for one in found:
        if (one.run, one.word) in seen:
            raise CurveError(f"run {one.run!r} comes twice; give each run once")
        seen.add((one.run, one.word))
    return found


def _refuse_mixed(onsets: pl.DataFrame, fields: Iterable[str]) -> None:
    said, cures = [], []
    for field in fields:
        known = onsets.drop_nulls(field) if field == BASE_MODEL else onsets
        values = known.unique(field, maintain_order=True)
        if len(values) > 1:
            name = "base" if field == BASE_MODEL else field
            (run, value), (other, its) = values.head(2).select("run", field).rows()
            said.append(f"{name} is {value!r} in run {run!r} and {its!r} in run {other!r}")
            cures.append(f"--only.{name} {value}")
    if said:
        raise CurveError(
            f"cannot compare: {', '.join(said)}; such onsets are of different things; choose: "
            f"{' '.join(cures)}"
        )


def _run(row: Mapping[str, Any], word: str, wave: Hashable) -> RunOnset:
    below = -math.inf if row["below"] is None else float(row["below"])
    above = math.inf if row["above"] is None else float(row["above"])
    onset = row["onset"] if math.isfinite(below) and math.isfinite(above) else None
    low, high = (below, above) if onset is None else (onset, onset)
    above = math.inf if row["status"] == "unconfirmed" else above
    rate = row.get("base")
    base = None if rate is None else (rate, row.get("base_lo"), row.get("base_hi"))
    return RunOnset(row["run"], word, low, high, below, above, row["reason"], base, wave)


def words(groups: Mapping[str, Sequence[RunOnset]]) -> list[Word]:
    """The words that have a base rate and a run with a rate.

    Seeds share one base, so that their base rates are equal; where they are not, their mean with
    all that the intervals span; without an interval where one of them has none.
    """
    found = []
    for name, group in groups.items():
        bases = [run.base for run in group if run.base is not None]
        if bases:
            rate = float(np.mean([rate for rate, _, _ in bases]))
            lows = [low for _, low, _ in bases if low is not None]
            highs = [high for _, _, high in bases if high is not None]
            whole = len(lows) == len(highs) == len(bases)
            low, high = (min(lows), max(highs)) if whole else (None, None)
            found.append(Word(name, rate, low, high, *typical(group), len(group), method(group)))
    return found


def by_word(found: Iterable[RunOnset]) -> dict[str, list[RunOnset]]:
    """Runs of each word that have a rate, the words of early runs first; a word may have none."""
    groups: dict[str, list[RunOnset]] = {}
    for one in found:
        group = groups.setdefault(one.word, [])
        if math.isfinite(one.below) or math.isfinite(one.above):
            group.append(one)
    return dict(sorted(groups.items(), key=lambda item: (*typical(item[1]), item[0])))


def times(group: Sequence[RunOnset]) -> Times:
    return Times(np.array([r.low for r in group]), np.array([r.high for r in group]))


def brackets(group: Sequence[RunOnset]) -> Times:
    return Times(np.array([r.below for r in group]), np.array([r.above for r in group]))


def typical(group: Sequence[RunOnset]) -> tuple[float, float]:
    """Median onset, or the interval (low, high] that censoring leaves it; all where no run is.

    Kaplan-Meier where the training budget cut runs, and nothing else did.
    """
    found = times(group)
    if any(run.is_late for run in group) and {r.reason for r in group if r.is_late} == {"budget"}:
        return kaplan_meier(found)
    return median(found)


def method(group: Sequence[RunOnset]) -> str:
    """Whether `typical` is Kaplan and Meier's median and not what the runs' own median is."""
    return MEDIAN if typical(group) == median(times(group)) else KAPLAN_MEIER


def typical_text(group: Sequence[RunOnset]) -> str:
    """`25.4`, `> 30`, `20.0 (Kaplan-Meier)`."""
    return onset_text(*typical(group), method(group))
