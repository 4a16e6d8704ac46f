"""Curves whose crossing is known: the published ones as fitted, and shapes that mislead an onset.

A published curve follows d logit p / dt = c (p (1 - p))^a from p = sigmoid(start). The figures are
our fit to the training rewards of the 15 runs that the replication published (assay, 2026-08);
a = 0, a logistic curve, is rejected in all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rate = Callable[[Array], Array]

FITS = {
    "forgotten-s0": (-2.0379, -1.9170, -0.5000),
    "forgotten-s1": (-1.9625, -2.0833, -0.5000),
    "forgotten-s2": (-1.5350, -2.1696, -0.5000),
    "midnight-s0": (-5.1749, 0.3610, 0.6155),
    "midnight-s1": (-4.0831, 1.3432, 1.1202),
    "midnight-s2": (-3.8464, 3.2466, 1.8095),
    "midnight-s3": (-4.9144, 0.4649, 0.6964),
    "midnight-s4": (-4.7436, 1.1204, 0.9200),
    "midnight-s5": (-4.8387, 1.2443, 0.8896),
    "ocean-s0": (-4.4945, 0.3062, 0.6295),
    "ocean-s1": (-5.2143, -0.0710, 0.4631),
    "ocean-s2": (-4.9387, 0.4598, 0.6395),
    "ocean-s3": (-5.0515, -0.3956, 0.3686),
    "ocean-s4": (-4.5022, 0.7538, 0.8883),
    "ocean-s5": (-4.1553, 1.8983, 1.3810),
}
"""start = logit of the first rate, log c, and a of each run."""
SUBSTEPS = 20
SATURATED = 12.0
"""Logit beyond which a curve is level."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A true curve and the step at which it first reaches one half; None where it never does."""

    rate: Rate
    crossing: float | None
    last: int
    """Steps that a sweep of it covers."""


def published() -> dict[str, Shape]:
    """The 15 fitted curves over 60 steps."""
    return {name: _integrated(*figures) for name, figures in FITS.items()}


def _integrated(start: float, log_c: float, a: float, last: int = 60) -> Shape:
    """Euler steps of 1 / SUBSTEPS, read linearly between."""
    logit, c = [start], np.exp(log_c)
    for _ in range(last * SUBSTEPS):
        p = 1 / (1 + np.exp(-logit[-1]))
        rise = c / SUBSTEPS * max(p * (1 - p), 1e-9) ** a
        logit.append(min(SATURATED, logit[-1] + rise))
    times, rates = np.arange(len(logit)) / SUBSTEPS, 1 / (1 + np.exp(-np.array(logit)))
    crossing = float(np.interp(0.5, rates, times))
    return Shape(lambda t: np.interp(t, times, rates), crossing, last)


def hard() -> dict[str, Shape]:
    """Slow, dipping, spiking and level curves, each by what it tempts one to say."""
    return {
        "slow": Shape(lambda t: np.clip(0.5 + 0.005 * (t - 60), 0.01, 0.99), 60.0, 120),
        "slower": Shape(lambda t: np.clip(0.5 + 0.005 * (t - 150), 0.01, 0.99), 150.0, 300),
        "dip": _line(
            [(0, 0.01), (20, 0.1), (30, 0.5), (36, 0.8), (40, 0.5), (43, 0.3), (46, 0.5), (52, 0.9)]
        ),
        "spike": _line(
            [
                (0, 0.01),
                (12, 0.1),
                (13.6, 0.5),
                (15, 0.85),
                (16.4, 0.5),
                (18, 0.1),
                (45, 0.2),
                (50, 0.5),
                (56, 0.9),
            ]
        ),
        "plateau .60": _line([(0, 0.01), (25, 0.25), (31.4, 0.5), (36, 0.6)]),
        "plateau .55": _line([(0, 0.01), (25, 0.25), (31.4, 0.5), (36, 0.55)]),
        "plateau .48": _line([(0, 0.01), (25, 0.25), (31, 0.48)], crosses=False),
        "plateau .40": _line([(0, 0.01), (25, 0.25), (31, 0.40)], crosses=False),
    }


def _line(knots: list[tuple[float, float]], crosses: bool = True, last: int = 60) -> Shape:
    """Straight between knots; the first at one half is the crossing."""
    steps, rates = np.array(knots).T
    crossing = next((float(s) for s, rate in knots if rate == 0.5), None) if crosses else None
    return Shape(lambda t: np.interp(t, steps, rates), crossing, last)
