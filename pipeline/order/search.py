"""Which checkpoints of one curve to evaluate next, to find its first crossing with few. Pure.

Base and last; a coarse grid in ascending order until two in turn are at the threshold; the first
bracket cut in equal parts until its ends are saved side by side; two neighbours on each side. Every
checkpoint gets a small sample first, and all cases where that leaves its side of the threshold
open. Searches that assume one crossing (Horstein 1963; Watson & Pelli 1983; Waeber, Frazier &
Henderson 2013) land on any of several, a dip's or a spike's: the grid is there to see these.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

NEIGHBOURS = 2
"""Saved checkpoints evaluated on either side of the bracket: a crossing is confirmed by them."""
WINDOW = 4
"""Steps on either side of the trainer's own crossing: evaluation lies -0.65 +- 1.2 from it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A checkpoint to evaluate, on the first shard of the cases or in full."""

    step: int
    full: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What a checkpoint answered, as far as it was asked."""

    rate: float | None
    """None: it never will say."""
    low: float
    high: float
    """Bounds of the rate, wide enough to be believed at every checkpoint of a search at once."""
    full: bool
    """Whether all there is was asked."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched: the saved steps of one run, and those to begin with."""

    steps: tuple[int, ...]
    """Ascending."""
    coarse: tuple[int, ...]
    """Those of the grid, ascending: first and last, and the window's."""
    window: tuple[int, ...]
    """Either side of where the trainer saw the crossing; empty where it left no word."""
    threshold: float


def widest(steps: Iterable[int]) -> int:
    """Steps between two that follow each other, at most: what is shorter may lie in between."""
    return max((b - a for a, b in pairwise(sorted(steps))), default=0)


def search(
    steps: Iterable[int], grid: int, threshold: float = 0.5, hint: float | None = None
) -> Search:
    """The search over a run's saved steps. grid: steps; hint: the trainer's own crossing."""
    saved = tuple(sorted(set(steps)))
    window: tuple[int, ...] = ()
    if hint is not None and len(saved) > 1:
        lower = max(0, bisect_right(saved, hint - WINDOW) - 1)
        upper = min(len(saved) - 1, bisect_left(saved, hint + WINDOW))
        window = saved[lower], saved[upper]
    outside = [s for s in _spaced(saved, grid) if not window or not window[0] < s < window[1]]
    return Search(saved, tuple(sorted({*outside, *window})), window, threshold)


def _spaced(saved: Sequence[int], grid: int) -> list[int]:
    """First, last, and as few between them as leave no gap over `grid` that could be closed."""
    at = [0]
    while at[-1] < len(saved) - 1:
        reach = bisect_right(saved, saved[at[-1]] + grid) - 1
        at.append(max(reach, at[-1] + 1))
    return [saved[i] for i in at]


def wants(search: Search, known: Mapping[int, Reading], width: int) -> list[Ask]:
    """What to evaluate next, most wanted first, at most `width`; none once the search is over."""
    base, last = search.steps[0], search.steps[-1]
    asks = [Ask(base, True), Ask(last, False)]
    if not _is_reached(search, known.get(base)):
        asks += [Ask(step, False) for step in search.window]
        asks = [*_new(asks, known), *_undecided(search, known)]
        coarse = _new([Ask(step, False) for step in _on_grid(search, known)], known)
        asks += _refined(search, known, width - len(asks)) + coarse
    return _once(_new(asks, known))[:width]


def _new(asks: Iterable[Ask], known: Mapping[int, Reading]) -> list[Ask]:
    """Asks that would add to what is known."""
    return [a for a in asks if a.step not in known or (a.full and not known[a.step].full)]


def _once(asks: Iterable[Ask]) -> list[Ask]:
    """Each step once, as first wanted; in full where any ask is."""
    full: dict[int, bool] = {}
    for ask in asks:
        full[ask.step] = full.get(ask.step, False) or ask.full
    return [Ask(step, whole) for step, whole in full.items()]


def _is_reached(search: Search, reading: Reading | None) -> bool:
    return reading is not None and reading.rate is not None and reading.rate >= search.threshold


def _bracket(search: Search, known: Mapping[int, Reading]) -> tuple[int | None, int | None]:
    """Last known step before the first that is at the threshold, and that one."""
    below = None
    for step in sorted(step for step, reading in known.items() if reading.rate is not None):
        if _is_reached(search, known[step]):
            return below, step
        below = step
    return below, None


def _undecided(search: Search, known: Mapping[int, Reading]) -> list[Ask]:
    """Up to the first crossing, what its small sample leaves open."""
    _, above = _bracket(search, known)
    return [
        Ask(step, True)
        for step, seen in sorted(known.items())
        if (above is None or step <= above)
        and not (seen.full or seen.high < search.threshold or seen.low >= search.threshold)
    ]


def _on_grid(search: Search, known: Mapping[int, Reading]) -> list[int]:
    """Steps of the grid that are not known, up to two evaluated in turn at the threshold."""
    wanted, in_turn = [], 0
    for step in sorted({*search.coarse, *known}):
        if step not in known:
            wanted.append(step)
            if in_turn:
                break
        elif known[step].rate is not None:
            in_turn = in_turn + 1 if _is_reached(search, known[step]) else 0
            if in_turn == 2:
                break
    return wanted


def _refined(search: Search, known: Mapping[int, Reading], room: int) -> list[Ask]:
    """Cuts of the first bracket; once its ends are side by side, these in full, and neighbours."""
    below, above = _bracket(search, known)
    if above is None or room < 1:
        return []
    steps, low = search.steps, search.steps[0] - 1 if below is None else below
    if any(low < step < above and step not in known for step in search.coarse):
        return []
    first = bisect_right(steps, low)
    end = bisect_left(steps, above)
    inside = [step for step in steps[first:end] if step not in known]
    if inside:
        return [Ask(step, False) for step in _cuts(inside, room)]
    ends = [Ask(step, True) for step in (below, above) if step is not None]
    near = steps[max(0, first - 1 - NEIGHBOURS) : first] + steps[end : end + 1 + NEIGHBOURS]
    return _new([*ends, *(Ask(step, False) for step in near)], known)


def _cuts(inside: Sequence[int], most: int) -> Sequence[int]:
    """Those that cut the others in equal parts; all where they are at most so many.

    No more than it takes: with k cuts a round, ceil(log(n + 1) / log(k + 1)) rounds are left.
    """
    n = len(inside)
    if n <= most:
        return inside
    rounds = next(r for r in count(1) if (most + 1) ** r > n)
    cuts = next(k for k in count(1) if (k + 1) ** rounds > n)
    return [inside[i * (n + 1) // (cuts + 1) - 1] for i in range(1, cuts + 1)]
