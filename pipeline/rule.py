"""The onset of a curve: the step at which its rate reaches a threshold, or that it did not.

The rule is the one of the published replication (assay, 2026-08): absolute threshold, `>=`, first
crossing, linear interpolation to the previous evaluated checkpoint, no smoothing. It is unbiased
for grids of up to 5 steps; a logistic fit invents onsets on curves that never cross.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pipeline.crossing import Interval
from pipeline.rows import CurveError

Status = Literal["crossed", "left", "right", "unconfirmed", "uncrossed", "no_data"]


@dataclass(frozen=True, slots=True)
class Onset:
    """Where one curve crosses one threshold. A step that is not known is None, never another."""

    status: Status
    """left: reached at the first evaluated step already. right: not reached by the last.
    unconfirmed: reached, by a rate too uncertain to hold (`crossing.confirmation`).
    uncrossed: reached, but below again: later, confirmed; or at the last where prompts are unknown.
    no_data: no rate at all."""
    onset: float | None
    """Step of the first crossing; None for left and right, of which only a bound is known."""
    sustained: float | None
    """Step of the crossing after which no evaluated rate is below; None when the last one is, or
    when none ever was."""
    below: int | None
    """Last evaluated step before the first crossing (the last of all for right)."""
    above: int | None
    """First evaluated step at or over the threshold: the onset lies in (below, above]."""
    reason: str | None
    """Why the curve ends before its crossing: budget, until more is known; None unless right."""
    evaluated: int
    """Checkpoints with a rate."""
    threshold: float
    jump: float | None = None
    """Rise of the rate over the bracket."""
    spacing: float | None = None
    """Steps between neighbours, the most up to the crossing: shorter excursions would be missed."""


def onset(steps: Sequence[int], rates: Sequence[float | None], threshold: float = 0.5) -> Onset:
    """The onset of a curve given in any order; points whose rate is None are skipped.

    CurveError for a rate that is not finite, a step that comes twice or a threshold that is no
    number.
    """
    points = _points(steps, rates)
    if not math.isfinite(threshold):
        raise CurveError(f"threshold {threshold} is not a number; 0.5 is the usual one")
    reached = [rate >= threshold for _, rate in points]
    if not points:
        return Onset("no_data", None, None, None, None, None, 0, threshold)
    if True not in reached:
        last, wide = points[-1][0], _spacing(points)
        return Onset(
            "right", None, None, last, None, "budget", len(points), threshold, spacing=wide
        )
    first = reached.index(True)
    tail = len(points) - _run_of_true(reached)
    sustained = _crossing(points, tail, threshold) if 0 < tail < len(points) else None
    below = points[first - 1][0] if first else None
    status: Status = "uncrossed" if not reached[-1] else "crossed" if first else "left"
    return Onset(
        status,
        _crossing(points, first, threshold) if first else None,
        sustained,
        below,
        points[first][0],
        None,
        len(points),
        threshold,
        jump=points[first][1] - points[first - 1][1] if first else None,
        spacing=_spacing(points[: first + 1]),
    )


def _points(steps: Sequence[int], rates: Sequence[float | None]) -> list[tuple[int, float]]:
    points = sorted((s, r) for s, r in zip(steps, rates, strict=True) if r is not None)
    for step, rate in points:
        if not math.isfinite(rate):
            raise CurveError(f"step {step}: rate {rate} is not a finite number; leave it out")
    for (step, _), (following, _) in pairwise(points):
        if step == following:
            raise CurveError(f"step {step} comes twice in one curve; keep one rate of it")
    return points


def _spacing(points: Sequence[tuple[int, float]]) -> float | None:
    return max((float(b - a) for (a, _), (b, _) in pairwise(points)), default=None)


def _run_of_true(flags: Sequence[bool]) -> int:
    """Length of the run of True at the end."""
    return [*reversed(flags), False].index(False)


def _crossing(points: Sequence[tuple[int, float]], i: int, threshold: float) -> float:
    """Step at which the line from point i - 1 to point i meets the threshold."""
    (s0, r0), (s1, r1) = points[i - 1], points[i]
    return s0 + (threshold - r0) / (r1 - r0) * (s1 - s0)


def text(found: Onset, first: int | None, last: int | None, interval: Interval | None) -> str:
    """`17.3 [16.1, 18.4]`, `> 30` when not reached by 30, `<= 0` when reached at the first, or `-`.

    A side without a bound reads `<= first` or `> last` evaluated step; no interval, no brackets.
    """
    if found.above is None:
        return "-" if found.below is None else f"> {found.below}"
    if found.below is None or found.onset is None:
        return f"<= {found.above}"
    if interval is None:
        return f"{found.onset:.1f}"
    low = f"{interval.lo:.1f}" if math.isfinite(interval.lo) else f"<= {first}"
    high = f"{interval.hi:.1f}" if math.isfinite(interval.hi) else f"> {last}"
    return f"{found.onset:.1f} [{low}, {high}]"


def bracket(below: int | None, above: int | None) -> str:
    """`(16, 18]`; the open side of a censored curve is left empty."""
    if below is None and above is None:
        return "-"
    return f"({'' if below is None else below}, {'' if above is None else above}]"
