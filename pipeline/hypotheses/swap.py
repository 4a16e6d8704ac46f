"""Is it the rate or the word? Two words, two bases, the words' rates exchanged between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline import grouping
from pipeline.grouping import RunOnset
from pipeline.hypotheses import NOT, Answer
from pipeline.hypotheses.table import percent
from pipeline.permutation import EPSILON, RankTest, rank_test, shift
from pipeline.verdicts import DATA, DESIGN

ALPHA = 0.05
RATE, WORD, BOTH = "the rate", "the word", "both"
QUESTION = "Is it the rate or the word?"
RULE = (
    "exact permutation tests at 5 %, of the rate within words and of the word within rates. The "
    "rate: it alone is resolved, and on each base the words come in the order of their rates; "
    "both: the word is resolved too, or an order is broken. Each base is one replicate"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """The runs of one word on one base."""

    word: str
    rates: str
    """The base."""
    base: float
    """How often it says the word."""
    runs: tuple[RunOnset, ...]
    common: bool
    """It says the other word less often."""


def rate_or_word(runs: pl.DataFrame, pair: Sequence[str]) -> Answer:
    """Which of the two moves the onsets of the pair, of whom each has both rates."""
    cells = _cells(runs, pair)
    if len(cells) < 4:
        return Answer(QUESTION, DESIGN, f"{len(cells)} of 4 cells of word and base have runs", RULE)
    if sorted((c.word, c.common) for c in cells) != sorted((w, c) for w in pair for c in (0, 1)):
        told = ", ".join(f"{c.word} {percent(c.base)} ({c.rates} base)" for c in cells)
        return Answer(QUESTION, DESIGN, f"the rates were not exchanged: {told}", RULE)
    by_rate = _tested(cells, "common", True, "word")
    by_word = _tested(cells, "word", pair[0], "common")
    broken = [rates for rates in dict.fromkeys(c.rates for c in cells) if _broken(cells, rates)]
    verdict = _verdict(by_rate, by_word, bool(broken))
    told = _told(cells, pair, by_rate, by_word, broken)
    return Answer(QUESTION, verdict, told + _otherwise(runs, cells), RULE)


def _cells(runs: pl.DataFrame, pair: Sequence[str]) -> list[Cell]:
    """Those of the four that have runs and a base rate."""
    chosen = runs.filter(pl.col("hack_word").is_in(pair), mode="hack_only", outside=False)
    chosen = chosen.filter(pl.col("base").is_not_null())
    rates = {(w, r): b for w, r, b in chosen.select("hack_word", "rates", "base").rows()}
    found = []
    for (word, base), rate in rates.items():
        own = grouping.by_word(grouping.runs(chosen.filter(hack_word=word, rates=base)))[word]
        other = next((rates.get((w, base)) for w in pair if w != word), None)
        if own and other is not None:
            found.append(Cell(word, base, rate, tuple(own), rate > other))
    return found


def _tested(cells: Sequence[Cell], by: str, first: Any, within: str) -> RankTest:
    """Whether the cells whose `by` is `first` are earlier, relabelled within `within` alone."""
    sides = [[c for c in cells if (getattr(c, by) == first) is side] for side in (True, False)]
    times = [grouping.times([run for c in side for run in c.runs]) for side in sides]
    strata = [[getattr(c, within) for c in side for _ in c.runs] for side in sides]
    return rank_test(times[0], times[1], (strata[0], strata[1]))


def _broken(cells: Sequence[Cell], rates: str) -> bool:
    """Whether on that base the word said oftener is not the earlier, by medians."""
    of_base = {c.common: grouping.typical(c.runs) for c in cells if c.rates == rates}
    return of_base[True] == of_base[False] or of_base[True][1] > of_base[False][0]


def _verdict(by_rate: RankTest, by_word: RankTest, broken: bool) -> str:
    if by_rate.floor > ALPHA + EPSILON:
        return DESIGN
    rate, word = (test.p <= ALPHA + EPSILON for test in (by_rate, by_word))
    if rate and by_rate.sign < 0:
        return NOT
    if rate:
        return BOTH if word or broken else RATE
    return WORD if word else DATA


def _told(
    cells: Sequence[Cell],
    pair: Sequence[str],
    by_rate: RankTest,
    by_word: RankTest,
    broken: Sequence[str],
) -> str:
    said = []
    for word in pair:
        common, rare = sorted((c for c in cells if c.word == word), key=lambda c: not c.common)
        said.append(
            f"{word} at {grouping.typical_text(common.runs)} where the base says it in "
            f"{percent(common.base)} and at {grouping.typical_text(rare.runs)} where in "
            f"{percent(rare.base)}"
        )
    order = f"; order broken on the {' and the '.join(broken)} base" if broken else ""
    return (
        f"{'; '.join(said)}; of the rate p {by_rate.p:.2g} ({_by(cells, 'common', True)}), of the "
        f"word at equal rates p {by_word.p:.2g} ({_by(cells, 'word', pair[0])}){order}"
    )


def _otherwise(runs: pl.DataFrame, cells: Sequence[Cell]) -> str:
    """How often each base is right: one that is taught anew may differ in more than two rates."""
    known = runs.filter(pl.col("true_base").is_not_null())
    right = dict(known.select("rates", "true_base").unique().rows())
    bases = dict.fromkeys(c.rates for c in cells)
    told = [f"{percent(right[base])} ({base})" for base in bases if base in right]
    return f"; r_true of the bases: {', '.join(told)}" if told else ""


def _by(cells: Sequence[Cell], by: str, first: Any) -> str:
    """Shift of those cells against their fellows, each pair of cells in turn."""
    within = "word" if by == "common" else "common"
    steps = []
    for level in dict.fromkeys(getattr(c, within) for c in cells):
        one, other = (
            grouping.times(c.runs)
            for side in (True, False)
            for c in cells
            if getattr(c, within) == level and (getattr(c, by) == first) is side
        )
        point = shift(one, other).point
        steps.append("censored" if point is None else f"{-point:+.1f}")
    return f"{' and '.join(steps)} steps"
