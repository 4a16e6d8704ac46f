"""Hypothesis 1: base rate determines onset, and the common word is learned several times faster."""

from itertools import combinations

import polars as pl

from pipeline import compare, grouping
from pipeline.association import FREQUENT_FIRST, RARE_FIRST, Word, associate
from pipeline.compare import Pair
from pipeline.grouping import RunOnset
from pipeline.hypotheses import NOT, PARTIAL, REPRODUCED, Answer
from pipeline.hypotheses.table import main, percent
from pipeline.verdicts import DESIGN

SEVERAL = 2.0
"""The least that "several times faster" can mean, as a ratio of onsets."""


def ordered(runs: pl.DataFrame) -> Answer:
    """Whether the words' onsets come in the order of their base rates."""
    words = grouping.words(groups(runs))
    found = associate(words)
    verdict = found.verdict
    against = _inverted(words)
    if verdict == FREQUENT_FIRST:
        verdict = PARTIAL if against else REPRODUCED
    elif verdict == RARE_FIRST:
        verdict = NOT
    shown = sorted(words, key=lambda word: -word.base)
    said = ", ".join(f"{w.name} {percent(w.base)} at {w.text}" for w in shown)
    slope = "" if found.slope is None else f"; onset goes with base rate to the {found.slope:.2f}"
    broken = f"; not in order: {', '.join(against)}" if against else ""
    note = f" ({found.note})" if found.note else ""
    return Answer(
        "Does the base rate order the onset?",
        verdict,
        f"{said}; {found.pairs} pairs of words are decided, exact p {found.p:.2g}{note}"
        f"{broken}{slope}",
        "reproduced: exact two-sided p over words at most 0.05 and no pair of medians in the other "
        "order; partial: the first alone",
    )


def groups(runs: pl.DataFrame) -> dict[str, list[RunOnset]]:
    """The runs that hypotheses about words speak of."""
    return grouping.by_word(grouping.runs(main(runs)))


def _inverted(words: list[Word]) -> list[str]:
    """Pairs of which the less frequent word is surely the earlier."""
    by_rate = sorted(words, key=lambda word: -word.base)
    return [
        f"{b.name} before {a.name}"
        for a, b in combinations(by_rate, 2)
        if a.base > b.base and b.high <= a.low and (b.high, b.low) != (a.low, a.high)
    ]


def faster(runs: pl.DataFrame, a: str, b: str) -> Answer:
    """How many times earlier than `b` the word `a`, which the base says oftener, is learned."""
    question = f"Is {a} learned several times faster than {b}?"
    rule = (
        f"reproduced: the 95 % interval of the ratio of onsets lies over {SEVERAL:g}; partial: "
        f"over 1; one pair, named before the runs"
    )
    pair = held(runs, a, b)
    if pair is None:
        return Answer(question, DESIGN, "a word has no run with a rate", rule)
    verdict = pair.ratio_verdict
    if verdict == _first(a, b):
        several = pair.ratio_lo is not None and pair.ratio_lo >= SEVERAL
        verdict = REPRODUCED if several else PARTIAL
    elif verdict == _first(b, a):
        verdict = NOT
    return Answer(question, verdict, _told(runs, pair), rule)


def apart(runs: pl.DataFrame, a: str, b: str) -> Answer:
    """Whether two words, asked about before the runs, can be told apart at all."""
    pair = held(runs, a, b)
    question = f"Can {a} and {b} be told apart?"
    rule = "exact two-sided permutation test of the runs at 5 %; one pair, named before the runs"
    if pair is None:
        return Answer(question, DESIGN, "a word has no run with a rate", rule)
    return Answer(question, pair.verdict, _told(runs, pair), rule)


def held(runs: pl.DataFrame, a: str, b: str) -> Pair | None:
    """The two words compared, `a` first; None where one has no run."""
    found = groups(runs)
    if not (found.get(a) and found.get(b)):
        return None
    (pair,) = compare.pairs({a: found[a], b: found[b]})
    return pair


def _first(a: str, b: str) -> str:
    return f"resolved:{a}<{b}"


def _told(runs: pl.DataFrame, pair: Pair) -> str:
    rates = dict(main(runs).select("hack_word", "base").unique().rows())
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.2f}"
    low = "0" if pair.ratio_lo is None else f"{pair.ratio_lo:.2f}"
    high = "inf" if pair.ratio_hi is None else f"{pair.ratio_hi:.2f}"
    note = f" ({pair.note})" if pair.note else ""
    return (
        f"{pair.a} ({percent(rates.get(pair.a))}) at {pair.median_a}, {pair.n_a} runs; {pair.b} "
        f"({percent(rates.get(pair.b))}) at {pair.median_b}, {pair.n_b} runs; ratio of onsets "
        f"{ratio} [{low}, {high}], p {pair.p:.2g}{note}"
    )
