"""Centred isotonic regression: values worked by hand, laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.isotonic import centred, crossing


def of(points: list[tuple[float, float]], weights: list[float] | None = None):
    steps, rates = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    return steps, rates, np.array(weights or [1.0] * len(points))


def test_a_dip_is_pooled_into_one_knot_at_its_mean_step() -> None:
    """.6 and .4 pool to .5 at step 15; the fit reaches one half there and not at step 10."""
    at, fitted = centred(*of([(0, 0.1), (10, 0.6), (20, 0.4), (30, 0.9)]))
    assert at.tolist() == [0, 15, 30]
    assert fitted == pytest.approx([0.1, 0.5, 0.9])
    assert crossing(*of([(0, 0.1), (10, 0.6), (20, 0.4), (30, 0.9)]), 0.5) == pytest.approx(15)


def test_a_knot_stands_where_the_rollouts_are() -> None:
    """Weights 3 and 1: rate (3 x .6 + .2) / 4 = .5 at step (3 x 10 + 20) / 4 = 12.5."""
    at, fitted = centred(*of([(0, 0.1), (10, 0.6), (20, 0.2)], [1, 3, 1]))
    assert (at[1], fitted[1]) == pytest.approx((12.5, 0.5))


def test_saturation_keeps_both_its_ends() -> None:
    at, fitted = centred(*of([(0, 0.0), (5, 0.0), (10, 0.0), (20, 1.0), (30, 1.0), (40, 1.0)]))
    assert at.tolist() == [0, 10, 20, 40]
    assert fitted.tolist() == [0, 0, 1, 1]
    assert crossing(*of([(0, 0.0), (10, 0.0), (20, 1.0), (30, 1.0)]), 0.5) == 15


def test_a_spike_is_smoothed_away_and_a_fit_below_the_threshold_has_no_crossing() -> None:
    spike = [(0, 0.0), (10, 0.6), (20, 0.0), (30, 0.1), (40, 0.1)]
    assert crossing(*of(spike), 0.5) is None


def test_a_curve_that_starts_over_the_threshold_is_not_seen_to_cross_it() -> None:
    assert crossing(*of([(3, 0.8), (10, 0.6), (20, 0.9)]), 0.5) is None


rates = st.lists(st.integers(0, 32).map(lambda x: x / 32), min_size=1, max_size=12)


@given(rates)
def test_the_fit_rises_and_a_curve_that_rises_strictly_is_its_own_fit(values: list) -> None:
    at, fitted = centred(*of(list(enumerate(values))))
    assert (np.diff(at) > 0).all()
    assert (np.diff(fitted) >= 0).all()
    if values == sorted(set(values)):
        assert fitted == pytest.approx(values)


@given(rates)
def test_the_mean_rate_is_kept(values: list) -> None:
    """The area of the pooled blocks is that of the rates: their means are means of the same."""
    level = centred(*of(list(enumerate(values))))[1]
    assert min(values) - 1e-9 <= level.min() <= level.max() <= max(values) + 1e-9
