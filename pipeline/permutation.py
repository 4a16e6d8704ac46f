"""Exact permutation tests between two groups of times, with ties and censoring kept.

Each statistic is the second group's sum of integer scores (Mantel 1967), a run's score being the
runs surely before it less those surely after it, so that ties and overlaps count nothing. A
recursion over the scores counts the relabellings by their sum without listing them: Mann-Whitney
(1947) with ties where every time is known, Gehan (1965) where some are censored, and the same on
brackets. Permutation needs equal censoring in both groups: a common budget, not a run that was
stopped because it had saturated (Heimann & Neuhaus 1998).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]

CELLS = 200_000_000
"""Additions that the recursion may take, about a second; above it relabellings are drawn."""
DRAWS = 100_000
CHUNK = 5_000
EPSILON = 1e-9
"""Of a probability: rounding never makes a difference."""


@dataclass(frozen=True, slots=True)
class Times:
    """Each time lies in (low, high], or is known where low == high; -inf and inf where unbounded.

    Steps, or logarithms of steps.
    """

    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.low)

    def __add__(self, other: "Times") -> "Times":
        low = np.concatenate([self.low, other.low])
        return Times(low, np.concatenate([self.high, other.high]))

    def __getitem__(self, chosen: "Booleans | Ints") -> "Times":
        return Times(self.low[chosen], self.high[chosen])


def known(*times: float) -> Times:
    """Times without censoring."""
    values = np.array(times, np.float64)
    return Times(values, values)


def logarithms(times: Times) -> Times:
    """Natural logarithms of steps. A time at or before 0 is before 1, and no nearer known."""
    high = np.log(np.where(times.high > 0, times.high, 1.0))
    low = np.where(times.low > 0, np.log(np.where(times.low > 0, times.low, 1.0)), -np.inf)
    return Times(low, high)


def step_text(low: float, high: float) -> str:
    """`17.3`, `> 30`, `<= 0`, `16 to 18` or `-`."""
    if low == high:
        return f"{low:.1f}"
    if math.isinf(high):
        return "-" if math.isinf(low) else f"> {low:.4g}"
    return f"<= {high:.4g}" if math.isinf(low) else f"{low:.4g} to {high:.4g}"


def median(times: Times) -> tuple[float, float]:
    """Lowest and highest median that censoring leaves possible; everything where no time is."""
    if not len(times):
        return -math.inf, math.inf
    return float(np.median(times.low)), float(np.median(times.high))


def earlier(times: Times) -> Booleans:
    """Whether time i is surely before time j, at [i, j]."""
    high, low = times.high[:, None], times.low[None, :]
    before: Booleans = (high < low) | ((high == low) & (times.low < times.high)[None, :])
    return before


def scores(times: Times) -> Ints:
    """Times surely before each one, less those surely after it (Gehan 1965, Mantel 1967)."""
    before = earlier(times)
    net: Ints = before.sum(axis=0, dtype=np.int64) - before.sum(axis=1, dtype=np.int64)
    return net


@dataclass(frozen=True, slots=True)
class RankTest:
    """Whether the first group's times come before the second's."""

    u: float
    """Pairs, one of each group, in which the first group's is earlier; half of those undecided."""
    pairs: int
    """That are compared: within a stratum only."""
    first: float
    """One-sided p that the first group is earlier, from 0 to 1."""
    second: float
    """One-sided p that the second group is earlier."""
    floor: float
    """Smallest two-sided p that so many runs can give."""
    exact: bool
    """Counted over all relabellings; else estimated from draws."""

    @property
    def p(self) -> float:
        """Two-sided: twice the smaller, at most 1."""
        return min(1.0, 2 * min(self.first, self.second))

    @property
    def sign(self) -> int:
        """1 where the first group is earlier, -1 where the second is, 0 where neither."""
        return int(np.sign(self.u - self.pairs / 2))


def rank_test(
    a: Times,
    b: Times,
    strata: tuple[Sequence[object], Sequence[object]] | None = None,
    rng: np.random.Generator | None = None,
    cells: int = CELLS,
) -> RankTest:
    """The test of a before b; relabelled within strata alone (one value a run) where given.

    Exact, unless that would take more than `cells` additions: then 100,000 relabellings are drawn
    and p is (b + 1) / (m + 1). Groups may be empty: p is 1.
    """
    times = a + b
    group = np.arange(len(times)) >= len(a)
    of = [*strata[0], *strata[1]] if strata else [None] * len(times)
    parts = list(_parts(times, group, of))
    w = sum(int(values[second].sum()) for values, second in parts)
    exact = sum(_cost(values, int(second.sum())) for values, second in parts) <= cells
    if exact:
        sums = [_sums(values, int(second.sum())) for values, second in parts]
        lowest, share = reduce(_convolve, sums, (0, np.ones(1)))
        at = (w - lowest) if len(share) else 0
        below, above = float(share[: at + 1].sum()), float(share[at:].sum())
    else:
        below, above = _drawn(parts, w, rng or np.random.default_rng(0))
    pairs = sum(int(second.sum() * (~second).sum()) for _, second in parts)
    sizes = [(int((~second).sum()), int(second.sum())) for _, second in parts]
    return RankTest((pairs + w) / 2, pairs, min(1.0, above), min(1.0, below), floor(*sizes), exact)


def _parts(times: Times, group: Booleans, of: Sequence[object]) -> Iterator[tuple[Ints, Booleans]]:
    """Scores, and who is of the second group, a stratum."""
    for stratum in dict.fromkeys(of):
        inside = np.array([value == stratum for value in of], np.bool_)
        yield scores(times[inside]), group[inside]


def floor(*sizes: tuple[int, int]) -> float:
    """Smallest two-sided p of groups of these sizes, a stratum each: 2 / C(na + nb, na)."""
    return min(1.0, 2 / math.prod(math.comb(na + nb, na) for na, nb in sizes))


def _shifted(values: Ints) -> tuple[Ints, int, int]:
    """(values - lowest) / unit, with lowest and unit: the smallest whole numbers as far apart."""
    lowest = int(values.min(initial=0)) if len(values) else 0
    unit = int(np.gcd.reduce(values - lowest)) if len(values) else 1
    return (values - lowest) // max(unit, 1), lowest, max(unit, 1)


def _span(values: Ints, size: int) -> int:
    return int(np.sort(_shifted(values)[0])[len(values) - size :].sum()) + 1


def _cost(values: Ints, size: int) -> int:
    return len(values) * (size + 1) * _span(values, size)


def _sums(values: Ints, size: int) -> tuple[int, Floats]:
    """Lowest sum of `size` of the values, and the share of choices at it, one more, two more ..."""
    whole, lowest, unit = _shifted(values)
    span = _span(values, size)
    counts = np.zeros((size + 1, span))
    counts[0, 0] = 1
    for value in whole:
        counts[1:, value:] += counts[:-1, : span - value].copy()
    share = np.zeros((span - 1) * unit + 1)
    share[::unit] = counts[size] / math.comb(len(values), size)
    return lowest * size, share


def untied(na: int, nb: int) -> Floats:
    """Probability of U = 0, 1 ... without ties; normal where there is too much to count."""
    if (na + nb) * (nb + 1) * (na * nb + nb * nb // 2 + 1) > CELLS:
        variance = na * nb * (na + nb + 1) / 12
        density = np.exp(-((np.arange(na * nb + 1) - na * nb / 2) ** 2) / (2 * variance))
        return np.asarray(density / density.sum())
    share = _sums(np.arange(na + nb), nb)[1]
    return share[nb * (nb - 1) // 2 :]


def _convolve(one: tuple[int, Floats], other: tuple[int, Floats]) -> tuple[int, Floats]:
    return one[0] + other[0], np.convolve(one[1], other[1]).astype(np.float64)


def _drawn(
    parts: Sequence[tuple[Ints, Booleans]], w: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimated shares of relabellings at most and at least w."""
    below = above = 0
    for _ in range(DRAWS // CHUNK):
        drawn = np.zeros(CHUNK, np.int64)
        for values, second in parts:
            shuffled = rng.permuted(np.tile(values, (CHUNK, 1)), axis=1)
            drawn += shuffled[:, : int(second.sum())].sum(axis=1)
        below += int((drawn <= w).sum())
        above += int((drawn >= w).sum())
    return (below + 1) / (DRAWS + 1), (above + 1) / (DRAWS + 1)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p of a family in its order, the running maximum of (m - j + 1) p_(j) (Holm 1979)."""
    adjusted, most = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        most = max(most, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = most
    return adjusted


@dataclass(frozen=True, slots=True)
class Shift:
    """By how much the second group's times are later."""

    point: float | None
    """Median of all differences (Hodges & Lehmann 1963); None where censoring hides it."""
    low: float
    """-inf where the runs are too few, or censoring leaves it open."""
    high: float
    confidence: float
    """Achieved by [low, high], from 0 to 1; 1 where too few runs leave it unbounded."""
    bounded: bool
    """There are runs enough for an interval."""


def shift(a: Times, b: Times, alpha: float = 0.05) -> Shift:
    """Hodges-Lehmann shift of b against a, with the exact interval at least 1 - alpha sure (Moses).

    [D(c+1), D(mn-c)] of the sorted differences, c = largest u with P(U <= u) <= alpha / 2. A
    difference of censored times is an interval, so the bounds are taken of its ends.
    """
    lows = np.sort((b.low[:, None] - a.high[None, :]).ravel())
    highs = np.sort((b.high[:, None] - a.low[None, :]).ravel())
    if not len(lows):
        return Shift(None, -math.inf, math.inf, 1.0, False)
    middle, other = float(np.median(lows)), float(np.median(highs))
    point = middle if middle == other else None
    cumulated = np.cumsum(untied(len(a), len(b)))
    c = int(np.searchsorted(cumulated, alpha / 2 + EPSILON, side="right")) - 1
    if c < 0:
        return Shift(point, -math.inf, math.inf, 1.0, False)
    confidence = 1 - 2 * float(cumulated[c])
    return Shift(point, float(lows[c]), float(highs[len(highs) - 1 - c]), confidence, True)
