"""How surely a curve crosses a threshold, and where, from the hits of its prompts.

Prompts are a sample; all checkpoints answer the same ones, so whole curves are resampled (Efron &
Tibshirani 1993, percentile interval). Few prompts: the Fieller set of the line between checkpoints
(Fieller 1954; Cox 1990). Either prices the noise of the rates alone, not what happens between two
checkpoints: where the rate jumps by more than JUMP from one to the next, the bracket is added.
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


def interval(counts: Counts, at: int, threshold: float, resamples: Array) -> Interval | None:
    """Interval of the first crossing; None for fewer than two prompts.

    at: index of the first checkpoint that reaches the threshold, J where none does. Not reached: no
    upper bound, and the lower one is at most the last step. Reached at the first: no lower bound.
    """
    n, last = _prompts_around(counts, at), len(counts.steps)
    if n < 2:
        return None
    rule = "fieller" if n < FEW_PROMPTS else "bootstrap"
    found = (
        fieller(counts, at, threshold)
        if n < FEW_PROMPTS
        else bootstrap(counts, threshold, resamples)
    )
    if at == last:
        return Interval(min(found[0], float(counts.steps[-1])), np.inf, rule)
    if at == 0:
        return Interval(-np.inf, max(found[1], float(counts.steps[0])), rule)
    below, above = at - 1, at
    rate = _ratio(counts.x.sum(0), counts.k.sum(0))
    ends = [_meet(counts.steps[below], counts.steps[above], rate[below], rate[above], threshold)]
    if rate[above] - rate[below] > JUMP:
        rule, ends = f"{rule}+bracket", [counts.steps[below], counts.steps[above]]
    return Interval(float(min(found[0], *ends)), float(max(found[1], *ends)), rule)


def _prompts_around(counts: Counts, at: int) -> int:
    """Prompts of the smaller of the checkpoints either side of the crossing."""
    return int((counts.k[:, max(at - 1, 0) : at + 1] > 0).sum(axis=0).min(initial=len(counts.k)))


def bootstrap(counts: Counts, threshold: float, resamples: Array) -> tuple[float, float]:
    """2.5 and 97.5 % quantiles (inverted distribution function) of the resamples' crossings."""
    drawn = np.sort(resampled(counts, threshold, resamples))
    low, high = (drawn[int(np.ceil(share * len(drawn))) - 1] for share in (0.025, 0.975))
    return float(low), float(high)


def resampled(counts: Counts, threshold: float, resamples: Array) -> Array:
    """First crossing of each resample of the prompts; see `first_crossings`."""
    rates = _ratio(resamples @ counts.x, resamples @ counts.k)
    return first_crossings(counts.steps, rates, threshold)


def first_crossings(steps: Array, rates: Array, threshold: float) -> Array:
    """First crossing of each row of rates (draws, J), NaN where a checkpoint has none.

    inf for a row that never crosses; for one that starts over the threshold -inf, or 0 where that
    is step 0, before which there is nothing.
    """
    known = ~np.isnan(rates)
    filled = np.where(known, rates, -np.inf)
    at = (filled >= threshold).argmax(axis=1)
    row = np.arange(len(rates))
    before = np.maximum.accumulate(np.where(known, np.arange(len(steps)), -1), axis=1)
    previous = np.where(at > 0, before[row, at - 1], -1)
    inner = (previous >= 0) & (filled[row, at] >= threshold)
    r0, r1 = np.where(inner, rates[row, previous], 0.0), np.where(inner, rates[row, at], 1.0)
    s0, s1 = steps[previous], steps[at]
    found = np.where(inner, s0 + (threshold - r0) / (r1 - r0) * (s1 - s0), _start(s1))
    return np.where(filled[row, at] >= threshold, found, np.inf)


def _start(step: Array) -> Array:
    """What is known of a crossing at or before the first evaluated step."""
    return np.where(step > 0, -np.inf, step)


def _meet(s0: float, s1: float, r0: float, r1: float, threshold: float) -> float:
    return float(s0 + (threshold - r0) / (r1 - r0) * (s1 - s0))


def fieller(counts: Counts, at: int, threshold: float) -> tuple[float, float]:
    """Ends of the steps s around the crossing with |P(s) - threshold| <= t_{n-1} se(s).

    P is the line through the rates. With w from one checkpoint to the next, se(s)^2 = (1-w)^2 C00 +
    2w(1-w) C01 + w^2 C11 over the cluster covariance C, so that each end solves a square equation.
    """
    a, b, c = _excess(counts, threshold)
    steps, count = counts.steps, len(a)
    low, high = float(_start(steps[:1])[0]), np.inf
    rate = _ratio(counts.x.sum(axis=0), counts.k.sum(axis=0))
    inside = (threshold - rate[at - 1]) / (rate[at] - rate[at - 1]) if 0 < at <= count else 0.0
    if at > count and count and a[-1] + b[-1] + c[-1] > 0:
        return float(steps[-1]), high
    if at == 0 and count and c[0] > 0:
        return low, float(steps[0])
    for j in range(min(at, count) - 1, -1, -1):
        if c[j] > 0:
            root = _root(a[j], b[j], c[j], 0.0, inside if j == at - 1 else 1.0)
            low = float(steps[j] + root * (steps[j + 1] - steps[j]))
            break
    for j in range(max(at - 1, 0), count):
        if a[j] + b[j] + c[j] > 0:
            root = _root(a[j], b[j], c[j], inside if j == at - 1 else 0.0, 1.0)
            high = float(steps[j] + root * (steps[j + 1] - steps[j]))
            break
    return low, high


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


def _root(a: float, b: float, c: float, low: float, high: float) -> float:
    """The one w in [low, high] at which a w^2 + b w + c is 0."""
    middle = (low + high) / 2
    real = [float(w.real) for w in np.roots([a, b, c]) if abs(w.imag) < 1e-12]
    return min(max(min(real, key=lambda w: abs(w - middle), default=middle), low), high)


def confirmation(counts: Counts, first: int, threshold: float) -> tuple[bool, bool]:
    """Whether the crossing at index `first` holds, and whether the curve falls below again.

    WINDOW checkpoints are pooled from each on, starting with the first that reaches the threshold:
    it holds when a cluster-t lower bound (97.5 % one-sided) lies over the threshold before an upper
    bound lies below; it falls again when an upper bound does so afterwards.
    """
    count = max(len(counts.steps) - first - WINDOW + 1, 1)
    windows = [slice(first + i, first + i + WINDOW) for i in range(count)]
    k = np.stack([counts.k[:, w].sum(axis=1) for w in windows], axis=1)
    x = np.stack([counts.x[:, w].sum(axis=1) for w in windows], axis=1)
    rate, variance, prompts = _clustered(k, x)
    half = quantile(prompts) * np.sqrt(variance)
    over, under = rate - half > threshold, rate + half < threshold
    if not over.any() or under[: int(over.argmax())].any():
        return False, False
    return True, bool(under[int(over.argmax()) :].any())


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
