"""Intervals of a crossing: values worked by hand, laws, and what too few prompts cannot say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline import crossing
from pipeline.crossing import Counts

INF = np.inf


def counts(steps: list[float], hits: np.ndarray, k: int | np.ndarray = 1) -> Counts:
    """hits: (n, J)"""
    x = np.asarray(hits, dtype=float)
    return Counts(np.array(steps, dtype=float), np.broadcast_to(np.float64(k), x.shape).copy(), x)


def split(steps: list[float], shares: list[float], n: int) -> Counts:
    """n prompts of one rollout; the first `share n` of them hit."""
    rows = np.arange(n)[:, None]
    return counts(steps, rows < np.array(shares) * n)


def interval(curve: Counts, at: int, draws: int = crossing.DRAWS) -> crossing.Interval | None:
    held = crossing.confirmation(curve, at, 0.5)[0] if at < len(curve.steps) else None
    return crossing.interval(curve, at, held, 0.5, resamples(len(curve.k), draws=draws))


def resamples(n: int, seed: int = 0, draws: int = crossing.DRAWS) -> np.ndarray:
    return crossing.weights(np.random.default_rng(seed), n, draws)


@pytest.mark.parametrize(
    ("rates", "first", "below"),
    [
        ([0.0, 0.25, 0.75, 1.0], 15.0, 15.0),
        ([0.0, 0.5, 0.75, 1.0], 10.0, 10.0),
        ([0.0, 0.1, 0.2, 0.4], INF, 30.0),
        ([0.5, 0.1, 0.2, 1.0], 0.0, 23.75),
        ([0.0, 1.0, 0.0, 1.0], 5.0, 15.0),
        ([0.2, 0.2, 0.7, 0.7], 16.0, 16.0),
        ([1.0, 1.0, 1.0, 1.0], 0.0, 0.0),
    ],
)
def test_each_resample_has_a_first_crossing_and_steps_below(
    rates: list, first: float, below: float
) -> None:
    steps, rows = np.array([0.0, 10.0, 20.0, 30.0]), np.array([rates, rates])
    assert crossing.first_crossings(steps, rows, 0.5) == pytest.approx([first, first])
    assert crossing.steps_below(steps, rows, 0.5) == pytest.approx([below, below])


def test_a_curve_first_seen_over_the_threshold_may_have_crossed_any_time_before() -> None:
    assert crossing.first_crossings(np.array([7.0, 9.0]), np.array([[0.6, 0.1]]), 0.5) == [-INF]


def test_a_resample_is_as_many_prompts_as_there_are() -> None:
    drawn = resamples(40)
    assert drawn.shape == (2000, 40)
    assert (drawn.sum(axis=1) == 40).all()


def test_the_bootstrap_is_the_quantile_of_the_resampled_crossings() -> None:
    """Rates 0, q and 1 at steps 0, 10 and 20, q a mean of 64: crossing at 5/q, or where q < 1/2 at
    10 + (1/2 - q)/(1 - q) 10. It falls in q, so that its quantiles are those of the binomial."""
    curve = split([0, 10, 20], [0, 0.5, 1], 64)
    low, high = crossing.bootstrap(curve, 3, 0.5, resamples(64, draws=50_000))
    most, least = (stats.binom.ppf(p, 64, 0.5) / 64 for p in (0.975, 0.025))
    assert low == pytest.approx(5 / most, abs=0.15)
    assert high == pytest.approx(10 + (0.5 - least) / (1 - least) * 10, abs=0.3)


def test_fieller_solves_the_square_equation_between_two_checkpoints() -> None:
    """8 prompts, rates 1/4 and 3/4 (jump 1/2) on steps 0 and 10, the same prompts hit: C00 = C11 =
    3/16/7, C01 = 1/16/7. With u = w - 1/2: (u/2)^2 = t^2 (u^2 (C00-C01)... ) worked below."""
    curve = split([0, 10], [0.25, 0.75], 8)
    c00, c01, t = 3 / 16 / 7, 1 / 16 / 7, stats.t.ppf(0.975, 7)
    # (1-w)^2 + w^2 = 1/2 + 2u^2 and 2w(1-w) = 1/2 - 2u^2
    flat, curved = (c00 + c01) / 2, 2 * (c00 - c01)
    u2 = t**2 * flat / (0.25 - t**2 * curved)
    expected = (5 - 10 * np.sqrt(u2), 5 + 10 * np.sqrt(u2))
    found = crossing.fieller(curve, 1, 2, 0.5)
    if u2 <= 0.25 and u2 > 0:
        assert found == pytest.approx(expected)
    else:
        assert found == (0.0, INF)


def test_fieller_of_sixteen_prompts_has_both_its_ends() -> None:
    curve = split([0, 10], [0.0625, 0.9375], 16)
    t2 = stats.t.ppf(0.975, 15) ** 2
    c00, c01 = 0.0625 * 0.9375 / 15, 0.0625 * 0.0625 / 15
    flat, curved = (c00 + c01) / 2, 2 * (c00 - c01)
    half = 10 * np.sqrt(t2 * flat / (0.875**2 - t2 * curved))
    assert crossing.fieller(curve, 1, 2, 0.5) == pytest.approx((5 - half, 5 + half))


def test_a_jump_adds_its_bracket_and_a_smaller_one_half_its_square() -> None:
    """128 prompts, jump 1/4 over 10 steps: 10 x 1/16 / 2 = 0.3125 at either end."""
    jumps = interval(split([0, 10, 20, 30], [0, 0.25, 0.75, 1], 128), 2)
    curve = split([0, 10, 20, 30], [0, 0.375, 0.625, 1], 128)
    creeps = interval(curve, 2)
    assert jumps is not None
    assert creeps is not None
    assert (jumps.rule, jumps.lo, jumps.hi) == ("bootstrap+bracket", 10, 20)
    noise = crossing.bootstrap(curve, 4, 0.5, resamples(128))
    assert creeps.rule == "bootstrap"
    assert (creeps.lo, creeps.hi) == pytest.approx((noise[0] - 0.3125, noise[1] + 0.3125))


def test_fewer_than_32_prompts_are_fiellers_and_one_prompt_says_nothing() -> None:
    few = interval(split([0, 10], [0.25, 0.625], 16), 1)
    assert few is not None
    assert few.rule == "fieller"
    assert interval(split([0, 10], [0, 1], 1), 1) is None


def test_a_crossing_that_is_not_confirmed_has_no_upper_bound() -> None:
    found = interval(split([0, 10, 20], [0, 0.51, 0.5], 100), 1)
    assert found is not None
    assert found.hi == INF


@pytest.mark.parametrize("n", [16, 64])
def test_a_slow_curve_that_falls_below_again_is_bounded_by_where_it_is_confirmed(n: int) -> None:
    """The first crossing is at 10; the rates about one half go on until 40."""
    shares = [0.375, 0.5, 0.4375, 0.5, 0.4375, 0.8125, 0.875, 0.875]
    found = interval(split(list(range(0, 80, 10)), shares, n), 1)
    assert found is not None
    assert 35 < found.hi < 50


def test_a_curve_not_reached_has_a_lower_bound_of_its_last_step_at_most() -> None:
    far = interval(split([0, 10], [0, 0.125], 64), 2)
    near = interval(split([0, 10], [0, 0.46875], 64), 2)
    few = interval(split([0, 10], [0, 0.4375], 16), 2)
    assert far is not None
    assert near is not None
    assert few is not None
    assert (far.lo, far.hi) == (10, INF)
    assert near.lo < 10
    assert few.lo < 10


@pytest.mark.parametrize("n", [16, 64])
def test_a_curve_reached_at_once_has_an_upper_bound_of_its_first_step_at_least(n: int) -> None:
    found = interval(split([0, 10], [0.9375, 1], n), 0)
    assert found is not None
    assert (found.lo, found.hi) == (-INF, 0)


def test_prompts_that_a_checkpoint_was_not_asked_do_not_move_its_rate() -> None:
    """Half the prompts at the coarse steps, where every rate is 0 or 1: the same interval."""
    whole = split([0, 8, 10, 20], [0, 0.375, 0.625, 1], 64)
    part = Counts(whole.steps, whole.k.copy(), whole.x.copy())
    part.k[::2, [0, 3]] = part.x[::2, [0, 3]] = 0
    assert interval(part, 2) == interval(whole, 2)


def test_a_resample_without_a_prompt_of_a_checkpoint_keeps_its_rate() -> None:
    """One of 40 prompts answered step 10: most resamples have it, and the others no gap."""
    whole = split([0, 10, 20], [0, 1, 1], 40)
    whole.k[1:, 1] = whole.x[1:, 1] = 0
    assert crossing.bootstrap(whole, 3, 0.5, resamples(40)) == (5, 5)


@pytest.mark.parametrize(
    ("shares", "confirmed", "falls"),
    [
        ([0, 0.75, 0.75, 0.75], True, False),
        ([0, 0.5, 0.5, 0.5], False, False),
        ([0, 0.5, 0.1, 0.1, 1, 1, 1], False, False),
        ([0, 1, 1, 1, 0, 0, 0], True, True),
        ([0, 1, 1, 1, 0.5], True, False),
        ([0, 1], True, False),
        ([0, 0.53125], False, False),
    ],
)
def test_a_crossing_is_confirmed_by_three_pooled_checkpoints(
    shares: list[float], confirmed: bool, falls: bool
) -> None:
    curve = split(list(range(len(shares))), shares, 64)
    held, undone = crossing.confirmation(curve, 1, 0.5)
    assert (held is not None, undone) == (confirmed, falls)


def test_a_few_prompts_that_agree_confirm_nothing() -> None:
    """t_1 / (2 x 2) = 3.2 and t_2 / (2 x 3) = 0.72 are over 1/2; t_3 / (2 x 4) = 0.40 is not."""
    held = [crossing.confirmation(split([0, 1], [0, 1], n), 1, 0.5)[0] for n in (1, 2, 3, 4)]
    assert held == [None, None, None, 1]


grids = st.integers(2, 6).flatmap(
    lambda j: st.lists(st.lists(st.integers(0, 4), min_size=j, max_size=j), min_size=2, max_size=40)
)


@given(grids)
def test_an_interval_holds_the_crossing_and_a_jump_its_bracket(hits: list) -> None:
    x = np.array(hits, dtype=float)
    curve = counts(list(range(0, 10 * x.shape[1], 10)), x, 4)
    rates = x.mean(axis=0) / 4
    reached = rates >= 0.5
    at = int(reached.argmax()) if reached.any() else len(rates)
    found = interval(curve, at, draws=50)
    assert found is not None
    point = crossing.first_crossings(curve.steps, rates[None], 0.5)[0]
    assert found.lo <= point <= found.hi
    if 0 < at < len(rates) and rates[at] - rates[at - 1] > crossing.JUMP:
        assert found.lo <= curve.steps[at - 1]
        assert found.hi >= curve.steps[at]
