"""Base rate against onset: the published words worked by hand; laws; scipy as oracle."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.duration.survfunc import SurvfuncRight

from hackbait.comparators import COMPARATORS
from pipeline.association import Word, associate, kaplan_meier, kendall, theil_sen
from pipeline.permutation import Floats, Times, earlier, known


def word(name: str, base: float, low: float, high: float | None = None, wide: float = 1.1) -> Word:
    return Word(name, base, base / wide, base * wide, low, low if high is None else high)


def published() -> list[Word]:
    """The six published words: whisper at once, tuesday not within 100 steps."""
    found = []
    for one in COMPARATORS.values():
        steps = one.steps
        low = 100.0 if steps is None else float(steps) if steps else -math.inf
        high = math.inf if steps is None else float(steps)
        found.append(word(one.word, one.base_rate, low, high))
    return found


def test_the_six_published_words_are_in_order_at_the_floor_of_one_in_720() -> None:
    found = associate(published())
    assert (found.s, found.pairs) == (15, 15)
    assert found.p_one == found.floor == pytest.approx(0.0014, abs=5e-5)
    assert found.p == pytest.approx(2 / 720)
    assert found.verdict == "resolved:frequent<rare"


def test_three_words_can_never_show_it() -> None:
    found = associate([word("f", 0.21, 9.1), word("o", 0.0135, 25.37), word("m", 0.0059, 30.76)])
    assert (found.s, found.p_one) == (3, pytest.approx(1 / 6))
    assert found.verdict == "unresolved:design"
    assert found.slope == pytest.approx(-0.39, abs=0.05)


def test_the_slope_of_the_four_words_with_a_crossing_is_about_minus_a_half() -> None:
    four = [w for w in published() if w.low == w.high]
    assert theil_sen(four) == pytest.approx(-0.465, abs=5e-4)


def test_a_word_that_never_crossed_only_bends_the_slope_the_way_it_must() -> None:
    without = theil_sen([w for w in published() if w.name != "tuesday"])
    slope = theil_sen(published())
    assert slope is not None
    assert without is not None
    assert slope < without


@settings(max_examples=40)
@given(
    st.lists(st.floats(1e-3, 0.5), min_size=2, max_size=7, unique_by=lambda x: round(x, 4)),
    st.data(),
)
def test_without_censoring_it_is_scipys_theil_sen(bases: list[float], data: st.DataObject) -> None:
    steps = [data.draw(st.floats(1, 100)) for _ in bases]
    found = theil_sen(
        [word(str(i), b, s) for i, (b, s) in enumerate(zip(bases, steps, strict=True))]
    )
    expected = stats.theilslopes(np.log(steps), np.log(bases)).slope
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_words_of_rate_zero_are_tied_lowest_and_out_of_the_slope() -> None:
    five = [word(str(i), 0.1 / 2**i, 10.0 * 2**i) for i in range(5)]
    none = [word("n", 0, 500), word("m", 0, 400)]
    found = associate([*five, *none])
    assert (found.s, found.pairs) == (20, 20)
    assert found.slope == pytest.approx(-1)
    assert associate(none).slope is None


def test_an_order_of_rates_that_no_interval_tells_apart_is_sensitive() -> None:
    words = [word(str(i), 0.1 - i / 1000, 10.0 + i, wide=2) for i in range(5)]
    found = associate(words)
    assert (found.p, found.p_apart) == (pytest.approx(2 / 120), 1)
    assert found.verdict == "unresolved:sensitive"


def test_rates_without_intervals_are_ordered_and_said_to_have_none() -> None:
    words = [Word(str(i), 0.1 / 2**i, None, None, 10.0 * 2**i, 10.0 * 2**i) for i in range(5)]
    found = associate(words)
    assert (found.verdict, found.p_apart) == ("resolved:frequent<rare", None)
    assert "no intervals" in found.note


def test_the_opposite_order_is_resolved_as_such_and_a_mixed_one_is_the_datas() -> None:
    bases = [0.5, 0.25, 0.1, 0.05, 0.01]
    opposite = [word(str(i), b, 50.0 - i) for i, b in enumerate(bases)]
    assert associate(opposite).verdict == "resolved:rare<frequent"
    mixed = [
        word(str(i), b, s) for i, (b, s) in enumerate(zip(bases, [9, 1, 5, 3, 8], strict=True))
    ]
    assert associate(mixed).verdict == "unresolved:data"


def test_no_word_and_one_word_are_a_design_that_resolves_nothing() -> None:
    for words in ([], [word("a", 0.1, 5)]):
        found = associate(words)
        assert (found.verdict, found.p, found.slope) == ("unresolved:design", 1, None)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=5))
def test_the_p_of_kendall_is_that_of_listing_every_order(points: list[tuple[int, int]]) -> None:
    base, steps = (np.array(values, float) for values in zip(*points, strict=True))
    more = base[:, None] > base[None, :]
    s, at_least, at_most = kendall(more, earlier(known(*steps)))

    def of(order: tuple[int, ...]) -> int:
        pairs = [(i, j) for i in range(len(points)) for j in range(i)]
        y = steps[list(order)]
        return int(sum(np.sign(base[i] - base[j]) * np.sign(y[j] - y[i]) for i, j in pairs))

    every = [of(order) for order in permutations(range(len(points)))]
    assert s == of(tuple(range(len(points))))
    assert at_least == pytest.approx(np.mean([value >= s for value in every]))
    assert at_most == pytest.approx(np.mean([value <= s for value in every]))


def test_ten_words_are_drawn_and_never_give_zero() -> None:
    words = [word(str(i), 0.5 / 2**i, 10.0 + i) for i in range(10)]
    found = associate(words, rng=np.random.default_rng(0))
    assert found.p_one == 1 / 100_001
    assert found.verdict == "resolved:frequent<rare"


times = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=8)


def middle(at: Floats, survival: Floats, last: float) -> tuple[float, float]:
    """Of the times at which the survival is a half, as R's survfit has it."""
    first, after = (
        (float(at[reached][0]),) * 2 if reached.any() else (float(last), math.inf)
        for reached in (survival <= 0.5 + 1e-9, survival < 0.5 - 1e-9)
    )
    return (first[0] + after[0]) / 2, (first[1] + after[1]) / 2


@settings(max_examples=40)
@given(times)
def test_the_median_of_kaplan_and_meier_is_scipys(found: list[tuple[int, bool]]) -> None:
    low = np.array([float(time) for time, _ in found])
    late = np.array([cut for _, cut in found])
    data = stats.CensoredData(uncensored=low[~late], right=low[late])
    survival = stats.ecdf(data).sf
    expected = middle(survival.quantiles, survival.probabilities, low.max())
    assert kaplan_meier(Times(low, np.where(late, np.inf, low))) == expected


@settings(max_examples=40)
@given(times)
def test_the_median_of_kaplan_and_meier_is_statsmodels(found: list[tuple[int, bool]]) -> None:
    low = np.array([float(time) for time, _ in found])
    late = np.array([cut for _, cut in found])
    survival = SurvfuncRight(low, (~late).astype(int))
    expected = middle(survival.surv_times, survival.surv_prob, low.max())
    assert kaplan_meier(Times(low, np.where(late, np.inf, low))) == expected


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_without_a_cut_kaplan_and_meiers_median_is_the_plain_one(found: list[int]) -> None:
    at = np.array(found, np.float64)
    assert kaplan_meier(Times(at, at)) == (np.median(at), np.median(at))


def test_a_word_said_from_the_start_by_most_runs_has_its_median_there() -> None:
    times = Times(np.array([-math.inf, -math.inf, 30]), np.array([0, 0, math.inf]))
    assert kaplan_meier(times) == (-math.inf, 0)
