"""Does a word's base rate order its onset? Exact over words, the unit: seeds share a base rate."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from pipeline.permutation import DRAWS, EPSILON, Booleans, Floats, Times, earlier, step_text
from pipeline.verdicts import DATA, DESIGN, RESOLVED, SENSITIVE

RELABELLINGS = 500_000
"""Orders of words that are enumerated; above it (ten words) they are drawn."""
MEDIAN, KAPLAN_MEIER = "median", "Kaplan-Meier"
"""How one onset is had of a word's runs."""
FREQUENT_FIRST, RARE_FIRST = f"{RESOLVED}frequent<rare", f"{RESOLVED}rare<frequent"


@dataclass(frozen=True, slots=True)
class Word:
    """A word's base rate, with its interval, and what is known of its onset."""

    name: str
    base: float
    """Share of the untrained policy's rollouts that hold it, from 0 to 1."""
    base_lo: float | None
    """None, as base_hi, where the rate has no interval."""
    base_hi: float | None
    low: float
    """The onset is in (low, high], or known where they are equal. Steps."""
    high: float
    runs: int = 1
    method: str = MEDIAN
    """`median`, or `Kaplan-Meier` where censoring leaves the median open."""

    @property
    def text(self) -> str:
        return onset_text(self.low, self.high, self.method)


def onset_text(low: float, high: float, method: str) -> str:
    """`25.4`, `> 30`; `20.0 (Kaplan-Meier)` where it is no plain median."""
    return f"{step_text(low, high)}{'' if method == MEDIAN else f' ({method})'}"


@dataclass(frozen=True, slots=True)
class Association:
    """Whether words of a higher base rate have an earlier onset."""

    words: int
    s: int
    """Kendall's S: pairs of words in which the more frequent is earlier, less the others."""
    pairs: int
    """Of words whose order in both is known."""
    p_one: float
    """One-sided p that the frequent are earlier."""
    p: float
    """Two-sided."""
    floor: float
    """Smallest one-sided p that words of these base rates can give: 1 / m! where none are equal."""
    p_apart: float | None
    """Two-sided, words tied whose base rates' intervals overlap; None where one has none."""
    slope: float | None
    """Theil-Sen, of log onset on log base rate: a description. -1/2 is what policy gradients with
    rewards divided by their spread would give, -1 those without. None for fewer than two words."""
    verdict: str
    note: str


def associate(
    words: Sequence[Word], alpha: float = 0.05, rng: np.random.Generator | None = None
) -> Association:
    """Kendall's S with censored pairs uninformative, and its exact permutation p over words.

    Words of base rate 0 are tied lowest, and left out of the slope with those at once (onset
    at most 0).
    """
    onset = earlier(Times(_of(words, "low"), _of(words, "high")))
    base = _of(words, "base")
    rarer = base[:, None] > base[None, :]
    s, first, last = kendall(rarer, onset, rng)
    p = min(1.0, 2 * min(first, last))
    p_apart = _p_apart(words, onset, rng)
    informative = int(((rarer | rarer.T) & (onset | onset.T)).sum()) // 2
    equal = math.prod(map(math.factorial, Counter(base.tolist()).values()))
    floor = equal / math.factorial(len(words))
    verdict, note = _verdict(s, p, p_apart, floor, len(words), alpha)
    slope = theil_sen(words)
    return Association(len(words), s, informative, first, p, floor, p_apart, slope, verdict, note)


def _p_apart(
    words: Sequence[Word], onset: Booleans, rng: np.random.Generator | None
) -> float | None:
    if any(word.base_lo is None or word.base_hi is None for word in words):
        return None
    apart = _of(words, "base_lo")[:, None] > _of(words, "base_hi")[None, :]
    _, first, last = kendall(apart, onset, rng)
    return min(1.0, 2 * min(first, last))


def number_of_words(words: int) -> str:
    return f"{words} word{'' if words == 1 else 's'}"


def _of(words: Sequence[Word], field: str) -> Floats:
    return np.array([getattr(word, field) for word in words], np.float64)


def _verdict(
    s: int, p: float, p_apart: float | None, floor: float, words: int, alpha: float
) -> tuple[str, str]:
    if 2 * floor > alpha + EPSILON:
        return (
            DESIGN,
            f"{number_of_words(words)} give p {min(1.0, 2 * floor):.2g} at best; 5 of different "
            "rates can",
        )
    if p > alpha + EPSILON:
        return DATA, ""
    if p_apart is not None and p_apart > alpha + EPSILON:
        return SENSITIVE, f"p {p_apart:.2g} where base rates whose intervals overlap are tied"
    note = "" if p_apart is not None else "base rates have no intervals that could overlap"
    return FREQUENT_FIRST if s > 0 else RARE_FIRST, note


def kendall(
    more: Booleans, earlier: Booleans, rng: np.random.Generator | None = None
) -> tuple[int, float, float]:
    """S, and the shares of orders of the words that give at least S, and at most S.

    more[i, j]: word i is surely the more frequent; earlier[i, j]: its onset is surely the earlier.
    """
    of_base = more.astype(np.int64) - more.T
    of_onset = earlier.astype(np.int64) - earlier.T
    words = len(more)
    s = int((of_base * of_onset).sum()) // 2
    exact = math.factorial(words) <= RELABELLINGS
    if exact:
        every = list(permutations(range(words)))
        orders = np.array(every, np.intp).reshape(len(every), words)
    else:
        rng = rng or np.random.default_rng(0)
        orders = rng.permuted(np.tile(np.arange(words), (DRAWS, 1)), axis=1)
    sums = np.zeros(len(orders), np.int64)
    for i, j in zip(*np.nonzero(np.triu(of_base)), strict=True):
        sums += of_base[i, j] * of_onset[orders[:, i], orders[:, j]]
    more_extra = 0 if exact else 1
    at_least, at_most = int((sums >= s).sum()), int((sums <= s).sum())
    total = len(orders) + more_extra
    return s, (at_least + more_extra) / total, (at_most + more_extra) / total


def theil_sen(words: Sequence[Word]) -> float | None:
    """Slope of log onset on log base rate at which Kendall's S of what is left over is 0.

    The median of the pairwise slopes (Theil 1950, Sen 1968); with censored onsets the sign rule of
    Akritas, Murphy and LaValley (1995). None where no slope or every slope would do.
    """
    used = [word for word in words if word.base > 0 and word.low >= 0 and word.high > 0]
    ends = []
    for one in used:
        for other in used:
            dx = math.log(other.base) - math.log(one.base)
            if dx > 0:
                low = _log(other.low) - _log(one.high)
                high = _log(other.high) - _log(one.low)
                ends.append((low / dx, high / dx))
    lows, highs = (np.array([pair[side] for pair in ends]) for side in (0, 1))
    breaks = np.sort([end for pair in ends for end in pair if math.isfinite(end)])
    # S(b) = slopes surely above b, less those surely below: it falls as b rises.
    after = [b for b in breaks if (lows > b).sum() <= (highs <= b).sum()]
    before = [b for b in breaks if (lows >= b).sum() >= (highs < b).sum()]
    return float((after[0] + before[-1]) / 2) if after and before else None


def _log(step: float) -> float:
    return math.log(step) if step > 0 else -math.inf


def kaplan_meier(times: Times) -> tuple[float, float]:
    """Time by which half have arrived (Kaplan & Meier 1958), late ones being cut by a budget.

    The middle of all times at which the share still to arrive is a half, as a plain median is.
    Low and high are equal where it is known; high is inf where half never arrive, or no more than
    half; low is -inf for one that was there when first looked at.
    """
    late = np.isinf(times.high)
    at = np.where(late, times.low, times.high)
    arrivals = np.unique(at[~late])
    share = np.cumprod([1 - ((at == t) & ~late).sum() / (at >= t).sum() for t in arrivals])
    last = float(at.max(initial=-math.inf)), math.inf
    ends = []
    for reached in (share <= 0.5 + EPSILON, share < 0.5 - EPSILON):
        found = [_arrival(times, float(t)) for t in arrivals[reached][:1]]
        ends += found or [last]
    (low, high), (next_low, next_high) = ends
    return (low + next_low) / 2, (high + next_high) / 2


def _arrival(times: Times, at: float) -> tuple[float, float]:
    is_known = bool(((times.low == at) & (times.high == at)).any())
    return (at if is_known else -math.inf), at
