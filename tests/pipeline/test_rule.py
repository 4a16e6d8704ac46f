"""The published rule: worked values, laws, censoring as a status."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.crossing import Interval
from pipeline.rows import CurveError
from pipeline.rule import bracket, onset, text

Points = Sequence[tuple[int, float | None]]


def of(points: Points, threshold: float = 0.5):
    return onset([s for s, _ in points], [r for _, r in points], threshold)


def test_the_first_crossing_of_the_replication_is_4_444_and_the_sustained_one_16_667() -> None:
    found = of([(0, 0.1), (5, 0.55), (10, 0.3), (15, 0.4), (20, 0.7), (25, 0.8)])
    assert found.onset == pytest.approx(0.4 / 0.45 * 5) == pytest.approx(4.4444, abs=1e-4)
    assert found.sustained == pytest.approx(15 + 5 / 3)
    assert (found.status, found.below, found.above) == ("crossed", 0, 5)


def test_halfway_between_40_and_60_percent_is_halfway_between_the_steps() -> None:
    found = of([(10, 0.4), (15, 0.6)])
    assert (found.onset, found.sustained, found.below, found.above) == (12.5, 12.5, 10, 15)


def test_a_curve_that_ends_at_47_percent_has_no_value_and_never_its_last_step() -> None:
    found = of([(0, 0.01), (50, 0.2), (100, 0.47)])
    assert (found.status, found.reason) == ("right", "budget")
    assert (found.onset, found.sustained, found.below, found.above) == (None, None, 100, None)


def test_exactly_the_threshold_is_reached_at_that_step() -> None:
    assert of([(10, 0.2), (15, 0.5), (20, 0.9)]).onset == 15.0


def test_a_run_above_the_threshold_at_its_base_is_left_censored_at_it() -> None:
    found = of([(0, 0.8359), (10, 0.9)])
    assert (found.status, found.onset, found.sustained) == ("left", None, None)
    assert (found.below, found.above) == (None, 0)


def test_a_run_first_seen_above_the_threshold_is_left_censored_at_that_step() -> None:
    found = of([(7, 0.6), (10, 0.3), (20, 0.7)])
    assert (found.status, found.onset, found.above, found.sustained) == ("left", None, 7, 15.0)


def test_a_run_that_starts_above_and_ends_below_is_uncrossed_without_a_value() -> None:
    found = of([(0, 0.6), (10, 0.3)])
    assert (found.status, found.onset, found.above, found.sustained) == ("uncrossed", None, 0, None)


def test_a_run_that_ends_below_after_its_crossing_is_uncrossed_and_keeps_the_first() -> None:
    found = of([(0, 0.0), (10, 1.0), (20, 0.4)])
    assert (found.status, found.onset, found.sustained) == ("uncrossed", 5.0, None)


def test_a_curve_without_a_rate_has_no_data() -> None:
    assert of([]).status == of([(0, None), (5, None)]).status == "no_data"
    assert of([(0, None)]).evaluated == 0


def test_a_checkpoint_without_a_rate_is_no_neighbour() -> None:
    assert of([(0, 0.0), (10, None), (20, 1.0)]).onset == 10.0


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf])
def test_a_rate_that_is_no_number_is_refused(rate: float) -> None:
    with pytest.raises(CurveError, match=rf"^step 5: rate {rate} is not a finite number"):
        of([(0, 0.1), (5, rate)])


def test_a_step_that_comes_twice_and_a_threshold_that_is_none_are_refused() -> None:
    with pytest.raises(CurveError, match=r"^step 5 comes twice"):
        of([(5, 0.1), (0, 0.1), (5, 0.9)])
    with pytest.raises(CurveError, match=r"^threshold nan is not a number"):
        of([(5, 0.1)], math.nan)


@pytest.mark.parametrize(
    ("curve", "low", "high", "read", "between"),
    [
        ([(16, 0.25), (18, 0.75)], 16.1, 18.4, "17.0 [16.1, 18.4]", "(16, 18]"),
        ([(16, 0.25), (18, 0.75)], -math.inf, math.inf, "17.0 [<= 16, > 18]", "(16, 18]"),
        ([(0, 0.1), (30, 0.47)], 21.0, math.inf, "> 30", "(30, ]"),
        ([(0, 0.7), (30, 0.9)], -math.inf, 2.0, "<= 0", "(, 0]"),
        ([(0, None)], 0.0, 0.0, "-", "-"),
    ],
)
def test_an_onset_reads_as_its_value_with_its_interval_beside_its_bracket(
    curve: Points, low: float, high: float, read: str, between: str
) -> None:
    found = of(curve)
    interval = Interval(low, high, "bootstrap")
    assert text(found, curve[0][0], curve[-1][0], interval) == read
    assert bracket(found.below, found.above) == between


def test_an_onset_without_prompts_has_no_interval_to_read() -> None:
    assert text(of([(16, 0.25), (18, 0.75)]), 16, 18, None) == "17.0"


grid = st.lists(st.integers(0, 1000), min_size=1, max_size=20, unique=True).map(sorted)
points = grid.flatmap(
    lambda steps: st.lists(
        st.integers(0, 64).map(lambda x: x / 64), min_size=len(steps), max_size=len(steps)
    ).map(lambda rates: list(zip(steps, rates, strict=True)))
)


@given(points, st.randoms())
def test_the_order_of_the_points_is_irrelevant(curve: list, random: object) -> None:
    shuffled = list(curve)
    random.shuffle(shuffled)
    assert of(shuffled) == of(curve)


@given(points, st.integers(1, 1000))
def test_later_steps_are_a_later_onset(curve: list, later: int) -> None:
    here, there = of(curve), of([(s + later, r) for s, r in curve])
    assert there.status == here.status
    for name in ("onset", "sustained", "below", "above"):
        value = getattr(here, name)
        moved = None if value is None else pytest.approx(value + later)
        assert getattr(there, name) == moved


@given(points, st.integers(2, 50))
def test_scaled_steps_are_a_scaled_onset(curve: list, scale: int) -> None:
    here, there = of(curve), of([(s * scale, r) for s, r in curve])
    for name in ("onset", "sustained", "below", "above"):
        value = getattr(here, name)
        scaled = None if value is None else pytest.approx(value * scale)
        assert getattr(there, name) == scaled


@given(points)
def test_rates_that_never_fall_cross_once_and_for_all(curve: list) -> None:
    rising = list(zip([s for s, _ in curve], sorted(r for _, r in curve), strict=True))
    found = of(rising)
    assert found.sustained == found.onset
    assert found.status in ("crossed", "left", "right")


@given(points, st.integers(1, 63).map(lambda x: x / 64))
def test_the_onset_lies_in_its_bracket_and_before_the_sustained_one(
    curve: list, threshold: float
) -> None:
    found = of(curve, threshold)
    assert found.evaluated == len(curve)
    if found.onset is not None:
        assert found.below < found.onset <= found.above
        assert found.sustained is None or found.sustained >= found.onset
    elif found.above is not None:
        assert (found.below, found.above) == (None, curve[0][0])
        assert found.sustained is None or found.sustained > found.above
    else:
        assert found.below == curve[-1][0]
        assert max(r for _, r in curve) < threshold


@given(points, st.integers(1, 62).map(lambda x: x / 64))
def test_a_higher_threshold_is_not_reached_earlier(curve: list, threshold: float) -> None:
    low, high = (
        math.inf if found.above is None else found.above if found.onset is None else found.onset
        for found in (of(curve, threshold), of(curve, threshold + 1 / 64))
    )
    assert low <= high
