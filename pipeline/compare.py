"""Onsets of one word against those of another: who comes first, by how much, and is it sure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from pipeline.grouping import RunOnset, brackets, times, typical_text
from pipeline.permutation import (
    EPSILON,
    RankTest,
    holm,
    logarithms,
    rank_test,
    shift,
)
from pipeline.power import runs_needed
from pipeline.verdicts import DATA, DESIGN, RESOLVED, SENSITIVE


@dataclass(frozen=True, slots=True)
class Pair:
    """Two words compared. Steps and probabilities; None where it is not known or unbounded."""

    a: str
    b: str
    n_a: int
    n_b: int
    censored_a: int
    censored_b: int
    median_a: str
    median_b: str
    test: str
    """mann-whitney, or gehan where a run is censored."""
    u: float
    """Pairs of runs in which a is earlier, half of those undecided."""
    shift: float | None
    """Hodges-Lehmann: by how many steps b is later."""
    shift_lo: float | None
    shift_hi: float | None
    confidence: float
    """Achieved by the intervals of shift and ratio; 1 where so few runs leave them unbounded."""
    ratio: float | None
    """How many times later b is."""
    ratio_lo: float | None
    ratio_hi: float | None
    ratio_verdict: str
    """Of the order and by how many times: resolved where the interval leaves 1 out as well."""
    p: float
    """Two-sided."""
    p_holm: float
    """Adjusted over all pairs of words."""
    floor: float
    """Smallest two-sided p that so many runs can give."""
    p_bracket: float
    """On brackets: those that overlap tie."""
    p_wave: float | None
    """Relabelled within waves alone; None where no wave is known."""
    verdict: str
    note: str
    """Why it is not resolved."""


@dataclass(frozen=True, slots=True)
class _Tests:
    """The tests of one pair, a against b."""

    headline: RankTest
    bracket: RankTest
    wave: RankTest
    """Of one stratum where no wave is known."""
    worst_for_a: RankTest
    """With runs that no common budget cut placed where they speak least for a being first."""
    worst_for_b: RankTest


def pairs(
    groups: Mapping[str, Sequence[RunOnset]],
    alpha: float = 0.05,
    rng: np.random.Generator | None = None,
) -> list[Pair]:
    """Every two words: the family over which p is adjusted. None for fewer than two words."""
    names = list(combinations(groups, 2))
    tests = [_tests(groups[a], groups[b], rng) for a, b in names]
    said = {name: _signs([getattr(t, name) for t in tests], alpha) for name in TESTS}
    adjusted = holm([t.headline.p for t in tests])
    found = []
    for i, (a, b) in enumerate(names):
        signs = {name: said[name][i] for name in TESTS}
        verdict, note = _verdict(tests[i], signs, len(names), alpha, (a, b))
        pair = _pair((a, groups[a]), (b, groups[b]), tests[i], alpha)
        pair = replace(pair, p_holm=adjusted[i], verdict=verdict, note=note)
        found.append(replace(pair, ratio_verdict=_of_ratio(pair), note=note or _excluded(pair)))
    return found


TESTS = tuple(_Tests.__dataclass_fields__)


def _tests(a: Sequence[RunOnset], b: Sequence[RunOnset], rng: np.random.Generator | None) -> _Tests:
    waves = [run.wave for run in a], [run.wave for run in b]
    headline = rank_test(times(a), times(b), rng=rng)
    alike = _are_cut_alike([*a, *b])
    soon_a, never_a, soon_b, never_b = (
        times([_placed(run, never) for run in group]) for group in (a, b) for never in (False, True)
    )
    return _Tests(
        headline,
        rank_test(brackets(a), brackets(b), rng=rng),
        rank_test(times(a), times(b), waves, rng),
        headline if alike else rank_test(never_a, soon_b, rng=rng),
        headline if alike else rank_test(soon_a, never_b, rng=rng),
    )


def _are_cut_alike(found: Sequence[RunOnset]) -> bool:
    """Whether one budget cut them all, as a permutation of censored runs needs."""
    late = [run for run in found if run.is_late]
    cuts = {run.low for run in late}
    seen_later = any(run.high > cut for run in found if not run.is_late for cut in cuts)
    return len(cuts) <= 1 and not seen_later and {run.reason for run in late} <= {"budget"}


def _placed(run: RunOnset, never: bool) -> RunOnset:
    """A late run as reached never, or right after its last checkpoint."""
    if not run.is_late:
        return run
    at = NEVER if never else math.nextafter(run.low, math.inf)
    return replace(run, low=at, high=at)


NEVER = 1e300
"""A step after all others."""


def _signs(tests: Sequence[RankTest], alpha: float) -> list[int]:
    """1 where a is resolved to be first, -1 where b is, 0 where neither: over the whole family."""
    adjusted = holm([test.p for test in tests])
    return [
        test.sign if p <= alpha + EPSILON else 0 for test, p in zip(tests, adjusted, strict=True)
    ]


def _verdict(
    tests: _Tests, signs: Mapping[str, int], family: int, alpha: float, names: tuple[str, str]
) -> tuple[str, str]:
    """Verdict and why it is not resolved; empty for data, whose interval says so."""
    sign = signs["headline"]
    at_best = family * tests.headline.floor
    if not sign and at_best > alpha + EPSILON:
        need = f"{runs_needed(family, alpha)} runs a word can"
        many = f" x {family} pairs" if family > 1 else ""
        return DESIGN, f"p is {tests.headline.floor:.2g}{many} at best, over {alpha:g}; {need}"
    against = [
        f"brackets: p {tests.bracket.p:.2g}" if signs["bracket"] != sign else "",
        "" if _wave_agrees(tests.wave, signs["wave"], sign) else _of_wave(tests.wave),
        _of_worst(tests, signs, sign),
    ]
    if any(against):
        return SENSITIVE, "; ".join(said for said in against if said)
    if not sign:
        return DATA, ""
    return RESOLVED + "<".join(names if sign > 0 else reversed(names)), ""


def _wave_agrees(wave: RankTest, resolved: int, sign: int) -> bool:
    """Few runs a wave cannot be held against a result that they support as much as they can."""
    at_best = wave.sign == sign and wave.p <= wave.floor + EPSILON and wave.pairs > 0
    return resolved == sign or (sign != 0 and at_best)


def _of_wave(wave: RankTest) -> str:
    return f"within waves: p {wave.p:.2g}" if wave.pairs else "no wave holds both words"


def _of_worst(tests: _Tests, signs: Mapping[str, int], sign: int) -> str:
    name = {1: "worst_for_a", -1: "worst_for_b"}.get(sign)
    if name is None or signs[name] == sign:
        return ""
    worst: RankTest = getattr(tests, name)
    return f"runs were cut where no common budget ended: p {worst.p:.2g} at worst"


def _pair(
    a: tuple[str, Sequence[RunOnset]],
    b: tuple[str, Sequence[RunOnset]],
    tests: _Tests,
    alpha: float,
) -> Pair:
    """What there is to say of two words, but for the verdicts."""
    censored = [sum(run.low < run.high for run in group) for _, group in (a, b)]
    by = shift(times(a[1]), times(b[1]), alpha)
    ratio = shift(logarithms(times(a[1])), logarithms(times(b[1])), alpha)
    waves = {run.wave for _, group in (a, b) for run in group} - {None}
    return Pair(
        a=a[0],
        b=b[0],
        n_a=len(a[1]),
        n_b=len(b[1]),
        censored_a=censored[0],
        censored_b=censored[1],
        median_a=typical_text(a[1]),
        median_b=typical_text(b[1]),
        test="gehan" if any(censored) else "mann-whitney",
        u=tests.headline.u,
        shift=by.point,
        shift_lo=_finite(by.low),
        shift_hi=_finite(by.high),
        confidence=by.confidence,
        ratio=None if ratio.point is None else math.exp(ratio.point),
        ratio_lo=math.exp(ratio.low) or None,
        ratio_hi=_finite(math.exp(ratio.high)),
        ratio_verdict="",
        p=tests.headline.p,
        p_holm=1.0,
        floor=tests.headline.floor,
        p_bracket=tests.bracket.p,
        p_wave=tests.wave.p if waves else None,
        verdict="",
        note="",
    )


def _of_ratio(pair: Pair) -> str:
    """The pair's verdict, held to an interval of the ratio that leaves 1 out."""
    if not pair.verdict.startswith(RESOLVED):
        return pair.verdict
    if pair.confidence == 1:
        return DESIGN
    above = pair.ratio_lo is not None and pair.ratio_lo > 1
    below = pair.ratio_hi is not None and pair.ratio_hi < 1
    return pair.verdict if above or below else DATA


def _excluded(pair: Pair) -> str:
    """The largest effect that unresolved data still leave out."""
    if pair.verdict != DATA:
        return ""
    low, high = pair.shift_lo, pair.shift_hi
    ends = [
        "" if high is None else f"{max(high, 0):.1f} steps later",
        "" if low is None else f"{max(-low, 0):.1f} steps earlier",
    ]
    said = " or ".join(f"more than {end}" for end in ends if end)
    return f"excluded: {pair.b} {said}" if said else "no difference is excluded"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def frame(found: Sequence[Pair]) -> pl.DataFrame:
    """A row a pair of words; columns are the fields of `Pair`."""
    return pl.DataFrame([asdict(pair) for pair in found], schema=PAIRS)


PAIRS = pl.Schema(
    {"a": pl.String, "b": pl.String}
    | dict.fromkeys(("n_a", "n_b", "censored_a", "censored_b"), pl.Int64)
    | dict.fromkeys(("median_a", "median_b", "test"), pl.String)
    | dict.fromkeys(("u", "shift", "shift_lo", "shift_hi", "confidence"), pl.Float64)
    | dict.fromkeys(("ratio", "ratio_lo", "ratio_hi"), pl.Float64)
    | {"ratio_verdict": pl.String}
    | dict.fromkeys(("p", "p_holm", "floor", "p_bracket", "p_wave"), pl.Float64)
    | {"verdict": pl.String, "note": pl.String}
)
"""Columns of `frame`."""
