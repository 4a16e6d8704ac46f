"""Stated coverage, small and seeded; the bench does it in full. Shapes cross where they say."""

import numpy as np
import pytest
from scipy.stats import binom

from jobs.bench import _shapes, coverage
from pipeline import crossing

PUBLISHED = _shapes.published()
HARD = _shapes.hard()


@pytest.mark.parametrize("name", [*PUBLISHED, *HARD])
def test_a_shape_first_reaches_one_half_where_it_says(name: str) -> None:
    shape = {**PUBLISHED, **HARD}[name]
    steps = np.linspace(0, shape.last, 20_001)
    reached = shape.rate(steps) >= 0.5 - 1e-12
    if shape.crossing is None:
        assert not reached.any()
    else:
        assert steps[reached.argmax()] == pytest.approx(shape.crossing, abs=shape.last / 10_000)


@pytest.mark.parametrize(
    ("name", "crossing"), [("forgotten-s0", 5.96), ("midnight-s2", 27.12), ("ocean-s5", 38.49)]
)
def test_a_published_curve_crosses_where_it_was_fitted_and_rises_by_its_law(
    name: str, crossing: float
) -> None:
    """dp/dt = p (1 - p) c (p (1 - p))^a, at one half c / 4^(a + 1)."""
    shape, (_, log_c, a) = PUBLISHED[name], _shapes.FITS[name]
    assert shape.crossing == pytest.approx(crossing, abs=0.1)
    around = shape.crossing + np.array([-0.1, 0.1])
    assert np.diff(shape.rate(around))[0] / 0.2 == pytest.approx(
        np.exp(log_c) / 4 ** (a + 1), rel=0.1
    )


def test_a_line_between_checkpoints_misses_a_published_crossing_by_half_the_jump_squared() -> None:
    worst = 0.0
    for shape in PUBLISHED.values():
        for spacing in (1.0, 2.0, 3.0, 5.0, 10.0):
            for start in np.linspace(0.1, 1, 10) * spacing:
                steps = np.r_[0, np.arange(start, shape.last, spacing)]
                rates = shape.rate(steps)
                at = int((rates >= 0.5).argmax())
                jump = rates[at] - rates[at - 1]
                if jump <= crossing.JUMP and at > 1:
                    found = crossing.first_crossings(steps, rates[None], 0.5)[0]
                    missed = abs(found - shape.crossing) / spacing
                    worst = max(worst, missed / (jump**2 / 2))
    assert 0.5 < worst <= 1


@pytest.mark.parametrize("design", [(16, 4, 1), (64, 4, 1), (64, 4, 5)])
def test_intervals_of_published_curves_hold_their_crossing(design: tuple[int, int, int]) -> None:
    """No fewer than one time in a thousand at 94 %."""
    held = [coverage.covered(s, design, 8, draws=200)[0] for s in PUBLISHED.values()]
    found = np.concatenate(held)
    assert found.sum() >= binom.ppf(0.001, len(found), 0.94)


def test_intervals_hold_the_crossing_where_few_prompts_were_asked_far_from_it() -> None:
    shapes = PUBLISHED.values()
    held = [coverage.covered(s, coverage.THIN, 8, draws=200, thin=True)[0] for s in shapes]
    found = np.concatenate(held)
    assert found.sum() >= binom.ppf(0.001, len(found), 0.94)


@pytest.mark.parametrize("name", ["slow", "dip", "plateau .55", "plateau .48"])
def test_intervals_of_misleading_curves_hold_their_crossing(name: str) -> None:
    held, _ = coverage.covered(HARD[name], (64, 4, 1), 40, draws=200)
    assert held.sum() >= binom.ppf(0.001, len(held), 0.92)


def test_a_level_just_below_the_threshold_is_hardly_ever_a_confirmed_onset() -> None:
    confirmed = [
        coverage.covered(HARD[f"plateau {p}"], (64, 4, 1), 40, 50)[1] for p in (".40", ".60")
    ]
    assert confirmed[0].sum() == 0
    assert confirmed[1].sum() >= 38


@pytest.mark.parametrize(("n", "k", "spread", "rate"), coverage.SCREENS)
def test_intervals_of_rates_hold_them(n: int, k: int, spread: float, rate: float) -> None:
    """2,000 of each; Student's quantile with n - 1 alone holds the first 1,790 times."""
    held = coverage.rates(n, k, spread, rate, 2_000)
    assert binom.ppf(0.001, 2_000, 0.93) <= held.sum()


@pytest.mark.parametrize(("proxy", "true", "shared"), coverage.GAPS)
def test_intervals_of_gaps_hold_them(proxy: float, true: float, shared: int) -> None:
    held = coverage.gaps(proxy, true, shared, 2_000)
    assert binom.ppf(0.001, 2_000, 0.93) <= held.sum()
