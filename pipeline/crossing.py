"""How surely a curve crosses a threshold, and where, from the hits of its prompts.

Prompts are a sample; all checkpoints answer the same ones, so whole curves are resampled (Efron &
Tibshirani 1993, percentile interval). Few prompts: the Fieller set of the line between checkpoints
(Fieller 1954; Cox 1990). Either prices the noise of the rates alone, not what happens between two
checkpoints. A rate that rises by jump over a bracket of h steps may bend: on the published curves
the line misses the crossing by at most h jump^2 / 2 while jump <= JUMP, so that much is added at
either end (without it 256 prompts cover 87 % at jumps of 0.35 to 0.4); beyond, the bracket is.
Simulated coverage: `python -m jobs.bench.coverage`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.intervals import quantile

Array = NDArray[np.float64]

DRAWS = 2_000
FEW_PROMPTS = 32
"""Below it the bootstrap is too narrow: 90 % instead of 95 at 8 prompts."""
JUMP = 0.4
WINDOW = 3
"""Checkpoints that are pooled to confirm a crossing."""


@dataclass(frozen=True, slots=True)
class Counts:
    """One curve by prompt; a prompt that a checkpoint was not asked has k = 0 there."""

    steps: Array
    """(J,), ascending"""
    k: Array
    """(n, J), rollouts"""
    x: Array
    """(n, J), hits (sum of values)"""


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % interval of an onset; -inf and inf where that side has no bound."""

    lo: float
    hi: float
    rule: str
    """`bootstrap` or `fieller`, and `+bracket`."""


def weights(rng: np.random.Generator, prompts: int, draws: int = DRAWS) -> Array:
    """(draws, prompts): how often each resample takes each prompt."""
    return rng.multinomial(prompts, np.full(prompts, 1 / prompts), draws).astype(np.float64)


def interval(
    counts: Counts, at: int, held: int | None, threshold: float, resamples: Array
) -> Interval | None:
    """Interval of the first crossing; None for fewer than two prompts.

    at: index of the first checkpoint that reaches the threshold, J where none does. held: where
    that is confirmed (`confirmation`). No upper bound where it is not, or not reached; then the
    lower one is at most the last step. No lower bound where it is reached at the first.
    """
    n, steps = _prompts_around(counts, at), counts.steps
    if n < 2:
        return None
    rule = "fieller" if n < FEW_PROMPTS else "bootstrap"
    until = len(steps) if held is None else min(held + WINDOW, len(steps))
    low, high = (
        fieller(counts, at, until, threshold)
        if n < FEW_PROMPTS
        else bootstrap(counts, until, threshold, resamples)
    )
    high = np.inf if held is None else high
    if at == len(steps):
        return Interval(min(low, float(steps[-1])), high, rule)
    if at == 0:
        return Interval(-np.inf, max(high, float(steps[0])), rule)
    s0, s1 = (float(step) for step in steps[at - 1 : at + 1])
    r0, r1 = (float(rate) for rate in _rates(counts)[at - 1 : at + 1])
    jump, found = r1 - r0, s0 + (threshold - r0) / (r1 - r0) * (s1 - s0)
    if jump > JUMP:
        return Interval(min(low, s0), max(high, s1), f"{rule}+bracket")
    low = min(low, found) - bend(jump, s1 - s0)
    low = low if np.isinf(low) else max(low, float(steps[0]))
    return Interval(low, max(high, found) + bend(jump, s1 - s0), rule)


def bend(jump: float, steps: float) -> float:
    """Steps by which the line over a bracket may miss the crossing, for jumps of at most JUMP."""
    return jump**2 / 2 * steps


def _prompts_around(counts: Counts, at: int) -> int:
    """Prompts of the smaller of the checkpoints either side of the crossing."""
    return int((counts.k[:, max(at - 1, 0) : at + 1] > 0).sum(axis=0).min(initial=len(counts.k)))


def _rates(counts: Counts) -> Array:
    return _ratio(counts.x.sum(axis=0), counts.k.sum(axis=0))


def bootstrap(
    counts: Counts, until: int, threshold: float, resamples: Array
) -> tuple[float, float]:
    """2.5 % quantile of the resamples' first crossings; 97.5 % of these or of `steps_below`.

    The first crossing of a slow curve on a dense grid is early, and that of a resample earlier
    still: alone it covers 69 % of a rise by 0.005 a step. The steps below, counted before the
    checkpoint `until` that confirms the crossing, are as often early as late.
    """
    rates = _resampled(counts, resamples)
    first = np.sort(first_crossings(counts.steps, rates, threshold))
    below = np.sort(steps_below(counts.steps[:until], rates[:, :until], threshold))
    return _quantile(first, 0.025), max(_quantile(first, 0.975), _quantile(below, 0.975))


def _quantile(ordered: Array, share: float) -> float:
    """By the inverted distribution function, so that an infinity stays one."""
    return float(ordered[int(np.ceil(share * len(ordered))) - 1])


def resampled(counts: Counts, threshold: float, resamples: Array) -> Array:
    """First crossing of each resample of the prompts; see `first_crossings`."""
    return first_crossings(counts.steps, _resampled(counts, resamples), threshold)


def _resampled(counts: Counts, resamples: Array) -> Array:
    """Rates (draws, J); a checkpoint of which a resample has no prompt keeps its own rate."""
    k, x = resamples @ counts.k, resamples @ counts.x
    own = np.broadcast_to(_rates(counts), k.shape).copy()
    return np.asarray(np.divide(x, k, out=own, where=k > 0), dtype=np.float64)


def first_crossings(steps: Array, rates: Array, threshold: float) -> Array:
    """First crossing of each row of rates (draws, J).

    inf for a row that never crosses; for one that starts over the threshold -inf, or 0 where that
    is step 0, before which there is nothing.
    """
    at = (rates >= threshold).argmax(axis=1)
    row, previous = np.arange(len(rates)), np.maximum(at - 1, 0)
    r0, r1 = rates[row, previous], rates[row, at]
    rise = np.where(r1 > r0, r1 - r0, 1.0)
    inner = steps[previous] + (threshold - r0) / rise * (steps[at] - steps[previous])
    found = np.where(at > 0, inner, _start(steps[at]))
    return np.where(r1 >= threshold, found, np.inf)


def steps_below(steps: Array, rates: Array, threshold: float) -> Array:
    """First step plus the steps that the line through each row of rates spends below."""
    low, high = np.minimum(rates[:, 1:], rates[:, :-1]), np.maximum(rates[:, 1:], rates[:, :-1])
    level = low == high
    share = np.clip((threshold - low) / np.where(level, 1.0, high - low), 0.0, 1.0)
    below = np.where(level, low < threshold, share)
    return np.asarray(steps[0] + below @ np.diff(steps), dtype=np.float64)


def _start(step: Array) -> Array:
    """What is known of a crossing at or before the first evaluated step."""
    return np.where(step > 0, -np.inf, step)


def fieller(counts: Counts, at: int, until: int, threshold: float) -> tuple[float, float]:
    """Ends of the steps s around the crossing with |P(s) - threshold| <= t_{n-1} se(s).

    P is the line through the rates. With w from one checkpoint to the next, se(s)^2 = (1-w)^2 C00 +
    2w(1-w) C01 + w^2 C11 over the cluster covariance C, so that each end solves a square equation.
    Lower end: where the set that holds the crossing begins. Upper: the last before the checkpoint
    `until` that confirms the crossing (beyond, where that one is in the set itself).
    """
    rate, variance, prompts = _clustered(counts.k, counts.x)
    outside = (rate - threshold) ** 2 > quantile(prompts) ** 2 * variance
    steps, count, squares = counts.steps, len(rate), _excess(counts, threshold)
    share = (threshold - rate[at - 1]) / (rate[at] - rate[at - 1]) if 0 < at < count else 0.0

    def edge(j: int, inside: float, beyond: float) -> float:
        a, b, c = (float(term[j]) for term in squares)
        return float(steps[j] + _root(a, b, c, inside, beyond) * (steps[j + 1] - steps[j]))

    if at == count and outside[-1]:
        return float(steps[-1]), np.inf
    before = max((j for j in range(min(at, count)) if outside[j]), default=None)
    inner = max((j for j in range(at, until) if not outside[j]), default=at - 1)
    after = next((j for j in range(inner + 1, count) if outside[j]), None)
    low = float(_start(steps[:1])[0])
    if before is not None:
        low = edge(before, share if before == at - 1 else 1.0, 0.0)
    if not after:
        return low, np.inf if after is None else float(steps[0])
    return low, edge(after - 1, share if after == at else 0.0, 1.0)


def _excess(counts: Counts, threshold: float) -> tuple[Array, Array, Array]:
    """(P - threshold)^2 - t^2 se^2 between neighbours as a w^2 + b w + c, three (J - 1,) arrays."""
    rate, variance, prompts = _clustered(counts.k, counts.x)
    residuals = _residuals(counts.k, counts.x)
    n = np.minimum(prompts[:-1], prompts[1:])
    covariance = _ratio(n, n - 1) * (residuals[:, :-1] * residuals[:, 1:]).sum(axis=0)
    t2 = quantile(n) ** 2
    off, rise = rate[:-1] - threshold, np.diff(rate)
    v0, v1 = variance[:-1], variance[1:]
    a = rise**2 - t2 * (v0 - 2 * covariance + v1)
    b = 2 * off * rise - 2 * t2 * (covariance - v0)
    return a, b, off**2 - t2 * v0


def _root(a: float, b: float, c: float, inside: float, beyond: float) -> float:
    """The one w between `inside` and `beyond` at which a w^2 + b w + c is 0; else `beyond`."""
    if not np.isfinite([a, b, c]).all():
        return beyond
    low, high = sorted((inside, beyond))
    real = [float(w.real) for w in np.roots([a, b, c]) if abs(w.imag) < 1e-12]
    return next((w for w in real if low <= w <= high), beyond)


def confirmation(counts: Counts, first: int, threshold: float) -> tuple[int | None, bool]:
    """Where the crossing at index `first` is confirmed, or None, and whether it is undone later.

    WINDOW checkpoints are pooled from each on, starting with the first that reaches the threshold:
    it is confirmed by those whose cluster-t lower bound (97.5 % one-sided) lies over the threshold,
    unless an upper bound lies below before; it is undone when an upper bound does so afterwards.
    """
    count = max(len(counts.steps) - first - WINDOW + 1, 1)
    windows = [slice(first + i, first + i + WINDOW) for i in range(count)]
    k = np.stack([counts.k[:, w].sum(axis=1) for w in windows], axis=1)
    x = np.stack([counts.x[:, w].sum(axis=1) for w in windows], axis=1)
    rate, variance, prompts = _clustered(k, x)
    half = quantile(prompts) * np.sqrt(variance)
    over, under = rate - half > threshold, rate + half < threshold
    held = int(over.argmax())
    if not over[held] or under[:held].any():
        return None, False
    return first + held, bool(under[held:].any())


def _clustered(k: Array, x: Array) -> tuple[Array, Array, Array]:
    """Rate, its cluster variance, and prompts of each column.

    The variance is at least that of independent rollouts, and 1/(2n) squared where a rate is 0 or
    1: prompts that agree do not make a rate certain.
    """
    rollouts, prompts = k.sum(axis=0), (k > 0).sum(axis=0).astype(np.float64)
    rate = _ratio(x.sum(axis=0), rollouts)
    between = _ratio(prompts, prompts - 1) * (_residuals(k, x) ** 2).sum(axis=0)
    flat = np.where((rate > 0) & (rate < 1), rate * (1 - rate) / rollouts, 0.25 / prompts**2)
    return rate, np.fmax(between, flat), prompts


def _residuals(k: Array, x: Array) -> Array:
    """(x - p k) / N of each prompt: what it adds to the error of the rate."""
    rollouts = k.sum(axis=0)
    return _ratio(x - _ratio(x.sum(axis=0), rollouts) * k, rollouts)


def _ratio(over: Array, under: Array) -> Array:
    """over / under, NaN where under is 0."""
    out = np.full(np.shape(over), np.nan)
    return np.asarray(np.divide(over, under, out=out, where=under != 0), dtype=np.float64)
