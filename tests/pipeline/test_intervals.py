"""Intervals of clustered rates: values worked by hand, oracles, laws, and published coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from pipeline import intervals
from pipeline.intervals import Tally

NONE = np.array([np.nan])


def tally(*checkpoints: list[tuple[float, float]]) -> Tally:
    """One entry a checkpoint, given as its prompts' (k, x) of zeros and ones."""
    pairs = [np.array(c, dtype=float).reshape(-1, 2).T for c in checkpoints]
    return many([k for k, _ in pairs], [x for _, x in pairs])


def many(ks: list[np.ndarray], xs: list[np.ndarray]) -> Tally:
    def each(f):
        return np.array([f(k, x) for k, x in zip(ks, xs, strict=True)], dtype=float)

    return Tally(
        rollouts=each(lambda k, x: k.sum()),
        hits=each(lambda k, x: x.sum()),
        prompts=each(lambda k, x: len(k)),
        squares=each(lambda k, x: x.sum()),
        spread=each(lambda k, x: ((x - k * (x.sum() / max(1, k.sum()))) ** 2).sum()),
        fourth=each(lambda k, x: ((x - k * (x.sum() / max(1, k.sum()))) ** 4).sum()),
        sizes=each(lambda k, x: (k * k).sum()),
        between=each(lambda k, x: (x * x / k).sum()),
    )


def interval(t: Tally, curve: list[int] | None = None) -> list[tuple[float, float]]:
    icc = intervals.pooled_icc(t, np.array(curve or [0] * len(t.rollouts)))
    low, high = intervals.bounded_interval(t, intervals.effective(t, icc))
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_four_prompts_that_agree_within_and_differ_between_count_as_three_rollouts() -> None:
    """x = 2 2 0 0 of k = 2: v = 4/3 * 4 / 64 = 1/12, p(1-p)/N = 1/32, deff = 8/3, n_eff = 3."""
    t = tally([(2, 2), (2, 2), (2, 0), (2, 0)])
    assert t.variance == pytest.approx([1 / 12])
    assert intervals.effective(t, NONE) == pytest.approx([3])
    assert interval(t)[0] == pytest.approx((0.06083, 0.93917), abs=1e-5)


def test_a_variance_that_two_prompts_of_twenty_make_is_known_with_seven_degrees() -> None:
    """x = 4 4 0 ... 0 of k = 4. Of ten: residuals 3.2 and -.8, spread 25.6, fourth 212.992,
    kurtosis 3.25, 1/df = 3/4 (3.25 - 7/9) / 20 = .0927, under 1/9. Of twenty: 3.6 and -.4, 28.8,
    336.384, kurtosis 8.1111, 1/df = 3/4 (8.1111 - 17/19) / 40 = .13531, over 1/19."""
    ten, twenty = [(4, 4)] * 2 + [(4, 0)] * 8, [(4, 4)] * 2 + [(4, 0)] * 18
    alone = [(1, 1)] * 2 + [(1, 0)] * 18
    found = intervals.freedom(tally(ten, twenty, alone, [(4, 0)] * 5, [(4, 2)]))
    assert found[:4] == pytest.approx([9, 1 / 0.13531, 19, 4], rel=1e-4)
    assert np.isnan(found[4])


def test_the_icc_of_two_one_one_zero_hits_out_of_two_is_a_seventh() -> None:
    """Between: (4+1+1)/2 - 16/8 = 1 over 3; within: 4 - 3 = 1 over 4; (1/3 - 1/4)/(1/3 + 1/4)."""
    t = tally([(2, 2), (2, 1), (2, 1), (2, 0)])
    assert intervals.pooled_icc(t, np.array([0])) == pytest.approx([1 / 7])


def test_a_checkpoint_without_a_hit_takes_the_icc_of_its_own_curve_alone() -> None:
    empty, told = [(2, 0)] * 4, [(2, 2), (2, 1), (2, 1), (2, 0)]
    t = tally(empty, told, empty)
    icc = intervals.pooled_icc(t, np.array([0, 0, 1]))
    assert intervals.effective(t, icc) == pytest.approx([7, 2 * 4 / (8 / 6), 4])
    assert np.isnan(icc[2])


def test_the_lower_bound_without_a_miss_is_what_the_quantile_squared_leaves_of_n() -> None:
    """q = t_3 = 3.18245, no checkpoint to learn the ICC from: n_eff = 4 prompts."""
    assert interval(tally([(2, 2)] * 4))[0] == pytest.approx((4 / 14.12796, 1), abs=1e-5)


def test_an_interval_without_a_hit_ends_at_the_rule_of_three_times_deff() -> None:
    """n_eff = 4 prompts where nothing tells how they cluster, 7 rollouts at an ICC of 1/7."""
    empty, told = [(2, 0)] * 4, [(2, 2), (2, 1), (2, 1), (2, 0)]
    assert interval(tally(empty))[0] == pytest.approx((0, 1 - 0.05 ** (1 / 4)))
    assert interval(tally(empty, told))[0] == pytest.approx((0, 1 - 0.05 ** (1 / 7)))


def test_no_hit_in_4096_is_a_rate_below_0_073_percent_and_a_third_of_them_below_thrice_that() -> (
    None
):
    """The published bound of the replication; 3 / n_eff to within what the rule of three is off."""
    bound = intervals.zero_hits(np.array([4096.0, 4096 / 3, np.nan]))
    assert bound[:2] == pytest.approx([0.000731, 0.002192], abs=1e-6)
    assert bound[0] == pytest.approx(3 / 4096, rel=2e-3)
    assert np.isnan(bound[2])


def test_one_prompt_tells_nothing_about_other_prompts() -> None:
    assert interval(tally([(50, 20)], [(50, 0)])) == [(0, 1), (0, 1)]


def test_no_rollout_has_no_rate_and_no_interval() -> None:
    t = tally([])
    assert np.isnan([t.rate[0], *interval(t)[0], intervals.effective(t, NONE)[0]]).all()


def test_prompts_of_unequal_size_are_weighed_by_kish() -> None:
    """k = 1 3, no hit, ICC 1/2: k = 10/4, n_eff = 4 / (1 + 1.5/2) = 16/7."""
    t = tally([(1, 0), (3, 0)])
    assert intervals.effective(t, np.array([0.5])) == pytest.approx([16 / 7])


def test_a_mean_has_the_clustered_t_interval_and_none_where_prompts_agree() -> None:
    """Means 0 and 1 of two prompts, k = 2: v = 2 * 2 / 16 = 1/4, half width 12.7062 / 2."""
    low, high = intervals.mean_interval(tally([(2, 0), (2, 2)], [(2, 1), (2, 1)]))
    assert (low[0], high[0]) == pytest.approx((0.5 - 6.3531, 0.5 + 6.3531), abs=1e-4)
    assert np.isnan([low[1], high[1]]).all()


prompts = st.lists(
    st.integers(1, 6).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k))),
    min_size=2,
    max_size=12,
)


@given(st.lists(prompts, min_size=1, max_size=4))
def test_an_interval_lies_in_zero_to_one_and_holds_its_rate(checkpoints: list) -> None:
    t = tally(*checkpoints)
    for rate, (low, high) in zip(t.rate, interval(t), strict=True):
        assert 0 <= low <= rate <= high <= 1


@given(prompts)
def test_it_is_the_wilson_interval_of_statsmodels_on_n_eff_with_the_t_quantile(cases: list) -> None:
    t = tally(cases)
    if not t.hits[0]:
        return
    n_eff = intervals.effective(t, intervals.pooled_icc(t, np.array([0])))[0]
    df = intervals.freedom(t)[0]
    assert 1 <= df <= len(cases) - 1
    alpha = 2 * stats.norm.sf(stats.t.ppf(0.975, df))
    expected = proportion_confint(t.rate[0] * n_eff, n_eff, alpha, "wilson")
    assert interval(t)[0] == pytest.approx(expected, abs=1e-9)


@given(prompts)
def test_the_variance_is_that_of_a_regression_with_clustered_errors(cases: list) -> None:
    values = np.concatenate([np.r_[np.ones(x), np.zeros(k - x)] for k, x in cases])
    groups = np.repeat(np.arange(len(cases)), [k for k, _ in cases])
    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    if len(values) > 1:
        assert tally(cases).variance[0] == pytest.approx(fit.cov_params()[0, 0], abs=1e-12)


@given(st.integers(2, 5), st.data())
def test_the_icc_is_that_of_the_analysis_of_variance(k: int, data: st.DataObject) -> None:
    hits = data.draw(st.lists(st.integers(0, k), min_size=3, max_size=10))
    if not 0.05 < sum(hits) / (k * len(hits)) < 0.95 or all(x in (0, k) for x in hits):
        return
    f = stats.f_oneway(*[np.r_[np.ones(x), np.zeros(k - x)] for x in hits]).statistic
    icc = intervals.pooled_icc(tally([(k, x) for x in hits]), np.array([0]))[0]
    assert icc == pytest.approx(max(0, (f - 1) / (f - 1 + k)), abs=1e-9)


@given(st.lists(st.integers(0, 1), min_size=2, max_size=60))
def test_one_rollout_a_prompt_is_the_plain_wilson_interval_with_t(hits: list[int]) -> None:
    """Over n - 1 for an inner rate, v being unbiased; over n where there is no variance."""
    n = len(hits)
    t = tally([(1, x) for x in hits])
    if not t.hits[0]:
        return
    effective = n - 1 if 0 < sum(hits) < n else n
    expected = intervals.wilson(t.rate, np.array([effective]), intervals.quantile(t.prompts))
    assert interval(t)[0] == pytest.approx((expected[0][0], expected[1][0]))


@given(prompts, st.integers(2, 4))
def test_repeating_every_rollout_of_a_prompt_makes_nothing_surer(cases: list, times: int) -> None:
    t, again = tally(cases), tally([(k * times, x * times) for k, x in cases])
    if t.spread[0] and t.variance[0] * t.rollouts[0] >= t.rate[0] * (1 - t.rate[0]):
        (low, high), (lower, higher) = interval(t)[0], interval(again)[0]
        assert lower <= low + 1e-9
        assert higher >= high - 1e-9


@pytest.mark.parametrize(
    ("n", "k", "icc", "p", "published"),
    [
        (64, 4, 0.3, 0.5, 95.4),
        (64, 4, 0.1, 0.006, 96.8),
        (32, 4, 0.1, 0.95, 95.8),
        (8, 64, 0.1, 0.05, 91.5),
    ],
)
def test_coverage_is_the_simulated_one_of_the_design(
    n: int, k: int, icc: float, p: float, published: float
) -> None:
    """Prompts' rates are beta with this ICC; 4,000 draws, so a standard error of 0.4 points.

    Published with n - 1 degrees of freedom; ours has fewer where few prompts hit.
    """
    draws, rng = 4_000, np.random.default_rng(7)
    rates = rng.beta(p * (1 - icc) / icc, (1 - p) * (1 - icc) / icc, (draws, n))
    x = rng.binomial(k, rates).astype(float)
    t = many([np.full(n, float(k))] * draws, list(x))
    low, high = intervals.bounded_interval(t, intervals.effective(t, np.full(draws, np.nan)))
    held = 100 * np.mean((low <= p) & (p <= high))
    assert published - 1.5 <= held <= published + 2.5


def test_sums_of_prompts_are_those_worked_by_hand() -> None:
    """x = 2 2 0 0 and 1 1 0 of k = 2, the fourth prompt of the second without a rollout."""
    found = intervals.of_prompts(
        np.array([[2.0, 2], [2, 2], [2, 2], [2, 0]]), np.array([[2.0, 1], [2, 1], [0, 0], [0, 0]])
    )
    assert found.rollouts.tolist() == [8, 6]
    assert found.hits.tolist() == found.squares.tolist() == [4, 2]
    assert found.prompts.tolist() == [4, 3]
    assert found.spread.tolist() == [4, pytest.approx(2 / 3)]
    assert found.fourth.tolist() == [4, pytest.approx(2 / 9)]
    assert found.sizes.tolist() == [16, 12]
    assert found.between.tolist() == [4, 1]


def of_shares(*prompts: list[float]) -> Tally:
    """One checkpoint, each prompt given as the values of its rollouts."""
    k = np.array([len(values) for values in prompts], float)
    x = np.array([sum(values) for values in prompts], float)
    p = x.sum() / k.sum()
    sums = (
        k.sum(),
        x.sum(),
        len(k),
        sum(v * v for values in prompts for v in values),
        ((x - p * k) ** 2).sum(),
        ((x - p * k) ** 4).sum(),
        (k * k).sum(),
        (x * x / k).sum(),
    )
    return Tally(*(np.array([float(term)]) for term in sums))


def bounds(t: Tally) -> tuple[float, float]:
    low, high = intervals.bounded_interval(t, intervals.effective(t, np.array([np.nan])))
    return low[0], high[0]


def test_shares_have_the_interval_of_the_hits_that_would_tell_as_much() -> None:
    t = of_shares(*([[1 / 3], [2 / 3]] * 8))
    # p(1-p) = 1/4 over a variance of 1/36: nine rollouts each, less what 15 degrees of freedom lose
    n_eff = intervals.effective(t, np.array([np.nan]))
    assert n_eff == pytest.approx(15)
    assert intervals.as_hits(t, n_eff) == pytest.approx(9 * 15)
    low, high = bounds(t)
    (least,), (most,) = intervals.mean_interval(t)
    assert low == pytest.approx(least, abs=0.01)
    assert high == pytest.approx(most, abs=0.01)


def test_shares_near_one_stay_below_it_where_a_mean_does_not() -> None:
    t = of_shares(*([[1.0, 1.0]] * 15 + [[1.0, 1 / 3]]))
    assert intervals.mean_interval(t)[1][0] > 1
    low, high = bounds(t)
    assert 0.8 < low < t.rate[0] < high <= 1


def test_rounding_of_equal_shares_is_no_spread() -> None:
    """Six weights of 1/5.5 add up to 1.0000000000000002, and 0.1 * 3 is not 0.3."""
    tenths = of_shares(*([[0.1] * 3, [0.3 / 3] * 3, [0.1] * 7] * 20))
    assert tenths.flat[0]
    low, high = bounds(tenths)
    assert (low, high) == pytest.approx((0.0459, 0.2041), abs=1e-4)
    assert np.isnan(intervals.mean_interval(tenths)[0][0])
    over = of_shares(*([[1 + 2e-16]] * 8))
    low, high = bounds(over)
    assert 0.5 < low < high == 1
