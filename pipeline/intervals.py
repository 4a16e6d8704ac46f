"""Intervals of a rate whose rollouts come in clusters; one cluster is one distinct prompt text.

Wilson (1927) on the effective sample size with a t quantile: Korn & Graubard (1998), Franco,
Little, Louis & Slud (2019, PMC6690503). The plain normal interval fails for few hundred rollouts
(Bowyer et al. 2025, arXiv:2503.01747), the plain Wilson interval for clustered ones (Miller 2024,
arXiv:2411.00640). The estimand is the rate over prompts, of which these are a sample.

Everything here takes arrays with one entry a checkpoint; NaN means that there is no such number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the prompts i of a checkpoint, k_i rollouts and x_i hits (sum of values) each."""

    rollouts: Array
    """N = sum k"""
    hits: Array
    """X = sum x"""
    prompts: Array
    """n, the prompts with k > 0"""
    squares: Array
    """Sum of the squared values of the rollouts; X when they are 0 or 1."""
    spread: Array
    """sum (x - p k)^2 with p = X / N"""
    fourth: Array
    """sum (x - p k)^4"""
    sizes: Array
    """sum k^2"""
    between: Array
    """sum x^2 / k"""

    @property
    def rate(self) -> Array:
        """p = X / N"""
        return _ratio(self.hits, self.rollouts)

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Whether prompts do not differ, but for the rounding of sums of fractions."""
        return np.asarray(self.spread <= 1e-20 * self.rate**2 * self.sizes)

    @property
    def variance(self) -> Array:
        """v = n/(n-1) sum (x - p k)^2 / N^2, the cluster variance of p; NaN for one prompt."""
        return _ratio(self.prompts * self.spread, (self.prompts - 1) * self.rollouts**2)


def of_prompts(k: Array, x: Array) -> Tally:
    """The sums of m rates whose values are 0 or 1: rollouts k and hits x of each prompt, (n, m)."""
    big_n, hits = k.sum(axis=0), x.sum(axis=0)
    apart = ((x * big_n - k * hits) ** 2).sum(axis=0)
    return Tally(
        rollouts=big_n,
        hits=hits,
        prompts=(k > 0).sum(axis=0).astype(np.float64),
        squares=hits,
        spread=apart / np.maximum(1, big_n) ** 2,
        fourth=((x * big_n - k * hits) ** 4).sum(axis=0) / np.maximum(1, big_n) ** 4,
        sizes=(k * k).sum(axis=0),
        between=np.divide(x * x, k, out=np.zeros_like(x), where=k > 0).sum(axis=0),
    )


def pooled_icc(tally: Tally, curve: NDArray[np.int64]) -> Array:
    """ANOVA intraclass correlation in [0, 1], pooled over the checkpoints of each curve.

    `curve` numbers the curve of each checkpoint. Only checkpoints with .05 < rate < .95 and two
    prompts tell anything; a curve without one, or with one rollout a prompt, has NaN.
    """
    p, big_n, n = tally.rate, tally.rollouts, tally.prompts
    inside = (p > 0.05) & (p < 0.95) & (n > 1)

    def total(term: Array) -> Array:
        sums = np.bincount(curve, weights=np.where(inside, term, 0.0))
        return np.asarray(sums, dtype=np.float64)[curve]

    between = _ratio(total(tally.between - p * tally.hits), total(n - 1))
    within = _ratio(total(tally.squares - tally.between), total(big_n - n))
    k = _ratio(total(big_n - _ratio(tally.sizes, big_n)), total(n - 1))
    return np.clip(_ratio(between - within, between + (k - 1) * within), 0.0, 1.0)


def effective(tally: Tally, icc: Array) -> Array:
    """n_eff: how many independent rollouts tell as much about the rate as these.

    N / deff with deff = max(1, v / (p(1-p)/N)). Where prompts do not differ (as at rate 0 or 1) v
    tells nothing: N / (1 + (k-1) icc) there, k = sum k^2 / N (Kish), and n where icc is NaN.
    """
    rollouts = tally.rollouts
    simple = _ratio(_ratio(tally.squares, rollouts) - tally.rate**2, rollouts)
    deff = np.fmax(1.0, _ratio(tally.variance, simple))
    modelled = _ratio(rollouts, 1 + (_ratio(tally.sizes, rollouts) - 1) * icc)
    flat = np.where(np.isnan(icc), tally.prompts, modelled)
    return np.where(rollouts > 0, np.where(tally.flat, flat, rollouts / deff), np.nan)


def as_hits(tally: Tally, n_eff: Array) -> Array:
    """How many independent rollouts of values 0 or 1 would tell as much as n_eff of these.

    n_eff where these are 0 or 1; more where values between vary less than hits of the same rate.
    """
    p, spread = tally.rate, _ratio(tally.squares, tally.rollouts) - tally.rate**2
    spread = np.where(spread > 1e-12 * p**2, spread, np.nan)
    return np.asarray(n_eff * np.fmax(1.0, _ratio(p * (1 - p), spread)), dtype=np.float64)


def freedom(tally: Tally) -> Array:
    """Degrees of freedom with which the cluster variance is known, n - 1 at most.

    Twice its square over its own variance (Satterthwaite 1946): n - 1 where prompts differ as
    normal values do, two for each prompt that hits where few do, for then it is mostly luck which
    prompts are here. Without it 32 prompts of 32, logit sd 2, cover 89 % at a rate of 1 %, with it
    95 %. Rollouts that are a prompt each need none, their variance being that of the rate: 1 - 1/k.
    """
    n, k = tally.prompts, _ratio(tally.sizes, tally.rollouts)
    least = _ratio(np.ones_like(n), n - 1)
    kurtosis = _ratio(n * tally.fourth, np.where(tally.flat, np.nan, tally.spread) ** 2)
    own = (1 - _ratio(np.ones_like(k), k)) * _ratio(kurtosis - 1 + 2 * least, 2 * n)
    return _ratio(np.ones_like(n), np.fmax(least, own))


def quantile(prompts: Array, level: float = 0.95) -> Array:
    """t_{n-1, (1+level)/2}; NaN for fewer than two prompts."""
    df = np.where(prompts > 1, prompts - 1, np.nan)
    return np.asarray(stdtrit(df, (1 + level) / 2), dtype=np.float64)


def wilson(rate: Array, n_eff: Array, q: Array) -> tuple[Array, Array]:
    """Wilson's score interval of a rate over n_eff rollouts, q the quantile; within [0, 1]."""
    centre = rate + q**2 / (2 * n_eff)
    half = q * np.sqrt(rate * (1 - rate) / n_eff + q**2 / (4 * n_eff**2))
    scale = 1 + q**2 / n_eff
    return (
        np.clip((centre - half) / scale, 0.0, rate),
        np.clip((centre + half) / scale, rate, 1.0),
    )


def bounded_interval(tally: Tally, n_eff: Array) -> tuple[Array, Array]:
    """95 % Wilson on n_eff with the t quantile of `freedom`; up to `zero_hits` without a hit.

    Of values from 0 to 1, on `as_hits`. [0, 1], which is Wilson's limit, of a single prompt.
    """
    q = quantile(freedom(tally) + 1)
    low, high = wilson(np.clip(tally.rate, 0.0, 1.0), as_hits(tally, n_eff), q)
    high = np.where(tally.hits == 0, zero_hits(n_eff), high)
    alone = tally.prompts == 1
    return np.where(alone, 0.0, low), np.where(alone, 1.0, high)


def mean_interval(tally: Tally) -> tuple[Array, Array]:
    """95 % clustered t interval of a mean; NaN where prompts do not differ or there is one."""
    half = quantile(tally.prompts) * np.sqrt(tally.variance)
    half = np.where(tally.flat, np.nan, half)
    return tally.rate - half, tally.rate + half


def zero_hits(n_eff: Array, level: float = 0.95) -> Array:
    """One-sided upper bound of a rate without a hit: 1 - (1 - level)^(1 / n_eff), about 3 / n_eff.

    The rule of three (Hanley & Lippman-Hand 1983) with its rollouts divided by the design effect.
    """
    return np.asarray(1 - (1 - level) ** (1 / n_eff), dtype=np.float64)


def mover(
    first: Sequence[Array], second: Sequence[Array], correlation: Array
) -> tuple[Array, Array]:
    """Interval of first - second, each given as (rate, lo, hi), from their own intervals.

    Square-and-add with the correlation of the two estimates (Newcombe 1998, Zou & Donner 2008): it
    holds near 0 and 1, where the t interval of the difference covers as little as 24 %.
    """
    (p1, l1, u1), (p2, l2, u2) = first, second
    d, c = p1 - p2, correlation

    def root(a: Array, b: Array) -> Array:
        squared: Array = np.maximum(a**2 - 2 * c * a * b + b**2, 0.0)
        return np.sqrt(squared)

    return d - root(p1 - l1, u2 - p2), d + root(u1 - p1, p2 - l2)


def _ratio(over: Array, under: Array) -> Array:
    """over / under where under is positive, else NaN."""
    return np.divide(over, under, out=np.full_like(over, np.nan), where=under > 0)
