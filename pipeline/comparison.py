"""All that is said of words that are compared, as records and as text for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline import compare, grouping
from pipeline.association import Association, Word, associate, number_of_words
from pipeline.compare import Pair
from pipeline.grouping import RunOnset
from pipeline.headline import percent

PAIR_COLUMNS = (
    *("a", "b", "runs", "median", "later by", "times later", "sure"),
    *("p", "p, Holm", "smallest p", "by brackets", "within waves", "verdict"),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every two words, and base rate against onset over all of them."""

    pairs: list[Pair]
    words: list[Word]
    """Those with a base rate and a run."""
    unknown: list[str]
    """Words without a base rate, or without a run that has a rate."""
    association: Association


def compared(
    groups: Mapping[str, Sequence[RunOnset]],
    alpha: float = 0.05,
    rng: np.random.Generator | None = None,
) -> Comparison:
    """Runs by word, compared."""
    words = grouping.words(groups)
    known = {word.name for word in words}
    return Comparison(
        compare.pairs(groups, alpha, rng),
        words,
        [name for name in groups if name not in known],
        associate(words, alpha, rng),
    )


def of_pair(pair: Pair) -> dict[str, Any]:
    """A row of PAIR_COLUMNS."""
    return {
        "a": pair.a,
        "b": pair.b,
        "runs": f"{_runs(pair.n_a, pair.censored_a)} v {_runs(pair.n_b, pair.censored_b)}",
        "median": f"{pair.median_a} v {pair.median_b}",
        "later by": _interval(pair.shift, pair.shift_lo, pair.shift_hi, ".1f"),
        "times later": _times(pair),
        "sure": "-" if pair.confidence == 1 else f"{100 * pair.confidence:.1f} %",
        "p": pair.p,
        "p, Holm": pair.p_holm,
        "smallest p": pair.floor,
        "by brackets": pair.p_bracket,
        "within waves": pair.p_wave,
        "verdict": pair.verdict,
        "why": pair.note or None,
    }


def _runs(n: int, censored: int) -> str:
    return f"{n} ({censored} open)" if censored else str(n)


def why(pairs: Sequence[Pair]) -> list[str]:
    """A line for each reason why pairs are not resolved, with all that it holds for."""
    reasons: dict[str, list[str]] = {}
    for pair in pairs:
        if pair.note:
            reasons.setdefault(f"{pair.verdict}: {pair.note}", []).append(f"{pair.a} v {pair.b}")
    return [f"{', '.join(names)}: {said}" for said, names in reasons.items()]


def _interval(point: float | None, low: float | None, high: float | None, form: str) -> str:
    """`4.99 [-7.84, 9.85]`; an open end is dots."""
    value, start, end = (
        absent if x is None else format(x, form)
        for x, absent in ((point, "?"), (low, "..."), (high, "..."))
    )
    return f"{value} [{start}, {end}]"


def _times(pair: Pair) -> str:
    """The ratio, and its verdict where that is another than the pair's."""
    said = _interval(pair.ratio, pair.ratio_lo, pair.ratio_hi, ".2f")
    return said if pair.ratio_verdict == pair.verdict else f"{said} {pair.ratio_verdict}"


def of_word(word: Word) -> dict[str, Any]:
    """Its base rate, runs and onset."""
    return {
        "word": word.name,
        "base rate": percent(word.base, word.base_lo, word.base_hi),
        "runs": word.runs,
        "onset": word.text,
    }


def of_association(found: Comparison) -> str:
    """A sentence."""
    one = found.association
    without = f"; without base rate: {', '.join(found.unknown)}" if found.unknown else ""
    slope = "" if one.slope is None else f", log-log slope {one.slope:.2f}"
    why = f" ({one.note})" if one.note else ""
    return (
        f"base rate against onset over {number_of_words(one.words)}: {one.verdict}{why}: "
        f"S {one.s} of {one.pairs}, p {one.p:.2g} (one-sided {one.p_one:.2g}, "
        f"{one.floor:.2g} at best){slope}{without}"
    )
