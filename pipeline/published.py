"""Our onsets beside the published ones: reproduced, partial, not, or not comparable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hackbait.comparators import (
    BUDGET,
    COMPARATORS,
    REPLICATION,
    REPLICATION_SETTINGS,
    SETTINGS,
    SOURCE,
    Comparator,
)
from pipeline.association import Word
from pipeline.permutation import step_text

BAND = 1.5
"""A published onset within this factor is met: two standard deviations of the logarithm of the
onset between seeds, 0.22 pooled over the replication's three words."""
REPRODUCED, PARTIAL, NOT, NOT_COMPARABLE = "reproduced", "partial", "not", "not comparable"


@dataclass(frozen=True, slots=True)
class Beside:
    """One word beside what was published of it. Steps."""

    word: str
    published: str
    band: str
    ours: str
    base: float
    published_base: float
    met: bool | None
    """Whether ours lies in the band; None where censoring leaves it open."""


@dataclass(frozen=True, slots=True)
class Replication:
    """One source and how far our words agree with it."""

    source: str
    verdict: str
    note: str
    words: tuple[Beside, ...] = ()


def replications(words: Sequence[Word], settings: Sequence[Mapping[str, Any]]) -> list[Replication]:
    """The verdict against each source; `settings` of every run, what is not known left out."""
    original = [
        _beside(word, known, _published(known), known.base_rate)
        for word in words
        if (known := COMPARATORS.get(word.name))
    ]
    replicated = [
        _beside(word, known, (known.replicated_steps - 1,) * 2, known.replicated_base_rate)
        for word in words
        if (known := COMPARATORS.get(word.name))
        and known.replicated_steps is not None
        and known.replicated_base_rate is not None
    ]
    return [
        _verdict(SOURCE, _differences(settings, SETTINGS), original),
        _verdict(REPLICATION, _differences(settings, REPLICATION_SETTINGS), replicated),
    ]


def _published(known: Comparator) -> tuple[float, float]:
    """The published onset, or the interval that it lies in."""
    if known.steps is None:
        return float(BUDGET), float("inf")
    return (float(known.steps),) * 2 if known.steps else (float("-inf"), 0.0)


def _beside(word: Word, known: Comparator, published: tuple[float, float], base: float) -> Beside:
    low, high = published[0] / BAND, published[1] * BAND
    inside = low <= word.low and word.high <= high
    outside = word.high < low or word.low > high
    return Beside(
        word.name,
        step_text(*published),
        step_text(low, high),
        word.text,
        word.base,
        base,
        True if inside else False if outside else None,
    )


def _differences(settings: Sequence[Mapping[str, Any]], theirs: Mapping[str, Any]) -> str:
    """What of our settings is not theirs, or not known; empty where all is as theirs."""
    said = []
    for name, value in theirs.items():
        ours = {str(one[name]) for one in settings if name in one}
        known = all(name in one for one in settings)
        if not known or {_number(one) for one in ours} != {_number(value)}:
            mine = ", ".join(sorted(ours)) if known and ours else "not known"
            said.append(f"{name} is {mine}, theirs {value}")
    return "; ".join(said)


def _number(value: object) -> object:
    """1e-4, 0.0001 and "0.0001" are one value."""
    try:
        return float(str(value))
    except ValueError:
        return value


def _verdict(source: str, differences: str, words: Sequence[Beside]) -> Replication:
    if differences or not words:
        return Replication(source, NOT_COMPARABLE, differences or "none of its words is here")
    decided = [word.met for word in words if word.met is not None]
    met = sum(decided)
    open_ = f", {len(words) - len(decided)} left open" if len(decided) < len(words) else ""
    note = f"{met} of {len(decided)} words within a factor {BAND:g}{open_}"
    if not decided:
        return Replication(source, NOT_COMPARABLE, note, tuple(words))
    verdict = REPRODUCED if all(decided) else PARTIAL if met else NOT
    return Replication(source, verdict, note, tuple(words))
