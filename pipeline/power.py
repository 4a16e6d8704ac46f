"""What a design can resolve, before any run: floors, power, and steps of precision."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.permutation import EPSILON, Ints, floor, untied

SIMULATIONS = 20_000
CURVES = 4_000


@dataclass(frozen=True, slots=True)
class Design:
    """n runs of each word, every two words compared."""

    runs: int
    floor: float
    """Smallest two-sided p of one pair: 2 / C(2n, n)."""
    floor_holm: float
    """The same adjusted for all pairs, as the first of them must pass."""
    resolves: bool
    """Whether any pair can be resolved."""
    power: float
    """Share of experiments that resolve one pair alone, at the stated shift."""
    power_holm: float
    """The same at alpha / pairs: what Holm asks of the first pair."""


def runs_needed(pairs: int, alpha: float = 0.05) -> int:
    """Fewest runs a word with which the first of so many pairs can be resolved."""
    n = 1
    while pairs * floor((n, n)) > alpha + EPSILON:
        n += 1
    return n


def words_needed(alpha: float = 0.05) -> int:
    """Fewest words with which base rate and onset can be shown to go together, two-sided."""
    m = 2
    while 2 / math.factorial(m) > alpha + EPSILON:
        m += 1
    return m


def designs(
    runs: Sequence[int],
    words: int,
    shift: float,
    rng: np.random.Generator,
    alpha: float = 0.05,
    simulations: int = SIMULATIONS,
) -> list[Design]:
    """What each number of runs can do for so many words; `shift` in standard deviations of seeds.

    Onsets are simulated normal with one spread, tested by the exact two-sided Mann-Whitney test.
    """
    pairs = math.comb(words, 2)
    found = []
    for n in runs:
        least = floor((n, n))
        smaller = _simulated(n, shift, rng, simulations)
        alone, family = (
            float(np.mean(smaller <= critical(n, n, level))) for level in (alpha, alpha / pairs)
        )
        resolves = pairs * least <= alpha + EPSILON
        found.append(Design(n, least, min(1.0, pairs * least), resolves, alone, family))
    return found


def critical(na: int, nb: int, alpha: float) -> int:
    """Largest U (of the two, the smaller) that the two-sided test resolves; -1 where none."""
    return int(np.searchsorted(np.cumsum(untied(na, nb)), alpha / 2 + EPSILON, side="right")) - 1


def _simulated(n: int, shift: float, rng: np.random.Generator, simulations: int) -> Ints:
    """The smaller U of each simulated experiment, n runs a word."""
    values = np.concatenate(
        [rng.standard_normal((simulations, n)), rng.normal(shift, 1, (simulations, n))], axis=1
    )
    ranks = values.argsort(axis=1).argsort(axis=1)
    u = ranks[:, n:].sum(axis=1) - n * (n - 1) // 2
    smaller: Ints = np.minimum(u, n * n - u)
    return smaller


def precision(
    rollouts: int,
    deff: float,
    spacing: int,
    slope: float,
    rng: np.random.Generator,
    simulations: int = CURVES,
) -> float:
    """Steps within which the onset is right 95 times in 100, by simulation.

    A logistic curve that rises by `slope` a step at 0.5, seen at every `spacing`-th step, with
    `rollouts` a checkpoint whose design effect is `deff`; first crossing, interpolated.
    """
    reach = max(2 * spacing, math.ceil(3 / slope))
    steps = np.arange(-reach, reach + spacing, spacing)[None, :]
    true = rng.uniform(0, spacing, (simulations, 1))
    n = max(1, round(rollouts / deff))
    rates = rng.binomial(n, 1 / (1 + np.exp(-4 * slope * (steps - true)))) / n
    above = np.argmax(rates >= 0.5, axis=1)
    row = np.arange(simulations)
    below = np.maximum(above - 1, 0)
    r0, r1 = rates[row, below], rates[row, above]
    onset = steps[0, below] + (0.5 - r0) / np.where(r1 > r0, r1 - r0, 1) * spacing
    return float(np.quantile(np.abs(onset - true[:, 0]), 0.95))
