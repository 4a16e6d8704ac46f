"""Centred isotonic regression: a rising curve through rates that dip and spike.

Oron & Flournoy (2017, arXiv:1701.05964). It is less biased at a crossing than the first rate over a
threshold (early, where the curve is slow and noisy) or the last one below it (late).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Array = NDArray[np.float64]


def centred(steps: Array, rates: Array, weights: Array) -> tuple[Array, Array]:
    """Knots (step, rate) of the estimate; beyond the first and the last it stays level.

    Each level stretch of the weighted isotonic fit becomes one knot at its weighted mean step, save
    stretches at 0 or 1, which a rate can truly hold: they keep both ends.
    """
    level = np.asarray(isotonic_regression(rates, weights=weights).x, dtype=np.float64)
    knots: list[tuple[float, float]] = []
    starts = np.flatnonzero(np.r_[True, np.diff(level) > 0])
    for stretch in np.split(np.arange(len(level)), starts[1:]):
        value = level[stretch[0]]
        if 0 < value < 1:
            knots.append((float(np.average(steps[stretch], weights=weights[stretch])), value))
        else:
            knots += [(steps[i], value) for i in sorted({stretch[0], stretch[-1]})]
    at, fitted = np.array(knots).T
    return at, fitted


def crossing(steps: Array, rates: Array, weights: Array, threshold: float) -> float | None:
    """Step at which the estimate rises to the threshold; None where it never does."""
    at, fitted = centred(steps, rates, weights)
    reached = fitted >= threshold
    i = int(reached.argmax())
    if i == 0:
        return None
    share = (threshold - fitted[i - 1]) / (fitted[i] - fitted[i - 1])
    return float(at[i - 1] + share * (at[i] - at[i - 1]))
