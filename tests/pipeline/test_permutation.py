"""Worked values of the published comparisons; laws against enumeration and other libraries."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.duration.survfunc import survdiff

from pipeline.permutation import Times, earlier, floor, holm, known, rank_test, scores, shift

# Evaluation and training onsets of the replication (assay, 2026-08), by word and seed.
FORGOTTEN = (5.473684, 10.165289, 9.102564)
OCEAN = (20.512821, 25.351563, 25.395683, 24.0, 32.571429, 39.0)
MIDNIGHT = (30.362319, 31.157143, 31.392857, 27.526316)
MIDNIGHT_BATCH = (1, 2, 2, 2)
OCEAN_BATCH = (1, 1, 1, 2, 2, 2)
OCEAN_TRAIN = (22.833333, 28.1, 25.5, 25.066667, 33.510638, 39.685185)
MIDNIGHT_TRAIN = (30.586207, 26.813953, 28.410959, 30.857143, 31.333333, 27.428571)


def censored(*pairs: tuple[float, float]) -> Times:
    return Times(np.array([low for low, _ in pairs]), np.array([high for _, high in pairs]))


def test_the_replicated_words_compare_as_published() -> None:
    forgotten, ocean, midnight = known(*FORGOTTEN), known(*OCEAN), known(*MIDNIGHT)
    found = rank_test(forgotten, ocean)
    assert (found.u, found.pairs) == (18, 18)
    assert found.first == pytest.approx(1 / 84)
    assert found.p == pytest.approx(2 / 84) == pytest.approx(found.floor)
    assert rank_test(forgotten, midnight).first == pytest.approx(1 / 35)
    close = rank_test(ocean, midnight)
    assert (close.u, close.pairs) == (16, 24)
    assert close.first == pytest.approx(0.2381, abs=5e-5)
    assert close.floor / 2 == pytest.approx(0.0048, abs=5e-5)


def test_the_shift_of_the_replicated_words_has_its_exact_interval_and_confidence() -> None:
    found = shift(known(*OCEAN), known(*MIDNIGHT))
    assert found.point == pytest.approx(4.99, abs=5e-3)
    assert (found.low, found.high) == pytest.approx((-7.84, 9.85), abs=5e-3)
    assert found.confidence == pytest.approx(0.962, abs=5e-4)
    train = shift(known(*OCEAN_TRAIN), known(*MIDNIGHT_TRAIN))
    assert train.point == pytest.approx(2.145, abs=5e-4)
    assert (train.low, train.high) == pytest.approx((-8.35, 5.79), abs=5e-3)
    assert train.confidence == pytest.approx(0.959, abs=5e-4)


def test_the_aborted_runs_crossings_in_training_fill_the_comparison() -> None:
    midnight = known(*MIDNIGHT, *MIDNIGHT_TRAIN[1:3])
    found = rank_test(known(*OCEAN), midnight)
    assert (found.u, found.pairs, found.first) == (24, 36, pytest.approx(0.197, abs=5e-4))
    by = shift(known(*OCEAN), midnight)
    assert (by.point, by.low, by.high) == pytest.approx((3.04, -7.61, 7.16), abs=5e-3)


def test_two_aborted_runs_kept_as_censored_at_25_give_the_gehan_p_of_0_146() -> None:
    midnight = known(*MIDNIGHT) + censored((25, math.inf), (25, math.inf))
    found = rank_test(known(*OCEAN), midnight)
    assert found.first == pytest.approx(0.146, abs=5e-4)
    assert found.p == pytest.approx(0.29, abs=5e-3)


def test_within_batches_ocean_and_midnight_give_0_575() -> None:
    found = rank_test(known(*OCEAN), known(*MIDNIGHT), (OCEAN_BATCH, MIDNIGHT_BATCH))
    assert found.first == pytest.approx(0.575, abs=5e-4)
    assert found.pairs == 3 * 1 + 3 * 3
    assert found.floor == pytest.approx(2 / (math.comb(4, 1) * math.comb(6, 3)))


def test_ties_are_corrected_where_scipy_does_not() -> None:
    a, b = (1, 2, 2), (2, 2, 3, 4)
    assert rank_test(known(*a), known(*b)).first == pytest.approx(6 / 35)
    uncorrected = stats.mannwhitneyu(a, b, alternative="less", method="exact").pvalue
    assert uncorrected == pytest.approx(4 / 35)


@pytest.mark.parametrize(
    ("na", "nb", "two_sided", "bounded"),
    [
        (3, 3, 0.1, False),
        (3, 6, 0.024, True),
        (4, 4, 0.029, True),
        (4, 6, 0.0095, True),
        (5, 5, 0.0079, True),
        (6, 6, 0.0022, True),
    ],
)
def test_so_few_runs_cannot_say_more(na: int, nb: int, two_sided: float, bounded: bool) -> None:
    assert floor((na, nb)) == pytest.approx(two_sided, abs=5e-4)
    apart = known(*range(na)), known(*range(100, 100 + nb))
    assert rank_test(*apart).p == pytest.approx(floor((na, nb)))
    found = shift(*apart)
    assert found.bounded == math.isfinite(found.low) == bounded
    assert bounded or found.confidence == 1


def test_none_or_one_run_a_group_says_nothing_and_warns_of_nothing() -> None:
    for a, b in [((), ()), ((), (1.0,)), ((1.0,), ()), ((1.0,), (2.0,))]:
        found = rank_test(known(*a), known(*b))
        assert found.p == found.floor == 1
        assert not shift(known(*a), known(*b)).bounded


@pytest.mark.parametrize(("na", "nb"), [(4, 4), (3, 6), (5, 5)])
def test_over_all_relabellings_the_interval_covers_as_often_as_it_says(na: int, nb: int) -> None:
    values = np.random.default_rng(na * nb).normal(size=na + nb)
    covered = []
    for chosen in combinations(range(na + nb), na):
        rest = [i for i in range(na + nb) if i not in chosen]
        found = shift(known(*values[list(chosen)]), known(*values[rest]))
        covered.append(found.low <= 0 <= found.high)
    assert np.mean(covered) == pytest.approx(found.confidence)
    assert found.confidence >= 0.95


def test_groups_too_large_to_count_get_the_normal_interval() -> None:
    a, b = np.arange(300.0), np.arange(300.0) + 0.5
    found = shift(known(*a), known(*b))
    c = 300 * 300 / 2 - 1.96 * math.sqrt(300 * 300 * 601 / 12)
    expected = np.sort((b[:, None] - a[None, :]).ravel())[round(c)]
    assert found.low == pytest.approx(expected, abs=1)
    assert found.confidence == pytest.approx(0.95, abs=1e-3)


def test_brackets_that_overlap_tie_and_those_that_touch_do_not() -> None:
    times = censored((0, 5), (4, 6), (5, 7), (7, math.inf), (-math.inf, 0), (7, 7))
    before = earlier(times)
    assert not before[0, 1]
    assert not before[1, 0]
    assert before[0, 2]
    assert before[4].tolist() == [True, True, True, True, False, True]
    assert before[5, 3]
    assert not before[2, 5]
    assert scores(times).sum() == 0


def test_a_censored_shift_keeps_only_what_is_sure() -> None:
    late = censored((30, math.inf), (30, math.inf), (30, math.inf), (30, math.inf))
    found = shift(known(1, 2, 3, 4), late)
    assert found.point is None
    assert (found.low, found.high) == (26, math.inf)
    both = shift(late, late)
    assert (both.low, both.high) == (-math.inf, math.inf)
    assert both.bounded


@pytest.mark.parametrize("seed", range(8))
def test_the_exact_gehan_test_is_near_the_asymptotic_one_of_statsmodels(seed: int) -> None:
    """15 runs against 15, a third of them cut by one budget: p at most .02 apart."""
    rng = np.random.default_rng(seed)
    steps = np.r_[rng.exponential(10, 15), rng.exponential(18, 15)]
    late, second = steps > 20, np.arange(30) >= 15
    low = np.minimum(steps, 20)
    _, expected = survdiff(low, (~late).astype(int), second, weight_type="gb")
    found = Times(low, np.where(late, np.inf, low))
    assert rank_test(found[~second], found[second]).p == pytest.approx(expected, abs=0.02)


def test_holm_keeps_the_running_maximum() -> None:
    assert holm([0.0119, 0.0119, 0.2944]) == pytest.approx([0.0357, 0.0357, 0.2944])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_step_by_step_until_the_first_that_does_not_pass(
    p: list[float], alpha: float
) -> None:
    passed = 0
    for rank, value in enumerate(sorted(p)):
        if value > alpha / (len(p) - rank) * (1 + 1e-12):
            break
        passed += 1
    assert sum(value <= alpha * (1 + 1e-12) for value in holm(p)) == passed


times = st.tuples(st.integers(0, 6), st.sampled_from([0, 0, 2, math.inf])).map(
    lambda pair: (float(pair[0]), pair[0] + pair[1])
)


@settings(max_examples=40)
@given(st.lists(times, max_size=4), st.lists(times, max_size=4), st.data())
def test_the_recursion_counts_what_enumeration_counts(
    a: list[tuple[float, float]], b: list[tuple[float, float]], data: st.DataObject
) -> None:
    strata = [data.draw(st.sampled_from("xy")) for _ in (*a, *b)]
    pooled = censored(*a, *b)
    before = earlier(pooled)

    def u(first: frozenset[int]) -> float:
        return sum(
            0.5 + (int(before[i, j]) - int(before[j, i])) / 2
            for i in first
            for j in set(range(len(pooled))) - first
            if strata[i] == strata[j]
        )

    mine = frozenset(range(len(a)))
    of_x = sum(strata[i] == "x" for i in mine)
    all_u = [
        u(frozenset(chosen))
        for chosen in combinations(range(len(pooled)), len(a))
        if sum(strata[i] == "x" for i in chosen) == of_x
    ]
    found = rank_test(censored(*a), censored(*b), (strata[: len(a)], strata[len(a) :]))
    assert found.u == pytest.approx(u(mine))
    assert found.first == pytest.approx(np.mean([value >= u(mine) for value in all_u]))
    assert found.second == pytest.approx(np.mean([value <= u(mine) for value in all_u]))


whole = st.lists(st.integers(0, 8), min_size=1, max_size=6)


@settings(max_examples=40)
@given(whole, whole)
def test_the_other_way_round_is_the_same_test_mirrored(a: list[int], b: list[int]) -> None:
    forth, back = rank_test(known(*a), known(*b)), rank_test(known(*b), known(*a))
    assert (forth.first, forth.second) == pytest.approx((back.second, back.first))
    assert forth.sign == -back.sign
    there, again = shift(known(*a), known(*b)), shift(known(*b), known(*a))
    assert (there.low, there.high) == (-again.high, -again.low)
    assert there.point == -(again.point or 0.0)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0, 100), min_size=2, max_size=6, unique=True),
    st.lists(st.floats(200, 300), min_size=2, max_size=6, unique=True),
)
def test_without_ties_it_is_scipys_exact_test(a: list[float], b: list[float]) -> None:
    mixed = [*a[::2], *b[1::2]], [*a[1::2], *b[::2]]
    expected = stats.mannwhitneyu(*mixed, alternative="less", method="exact").pvalue
    assert rank_test(known(*mixed[0]), known(*mixed[1])).first == pytest.approx(expected)


def test_fifty_against_fifty_is_still_exact() -> None:
    a, b = np.arange(50.0), np.arange(50.0) + 9.5
    found = rank_test(known(*a), known(*b))
    assert found.exact
    expected = stats.mannwhitneyu(a, b, alternative="less", method="exact").pvalue
    assert found.first == pytest.approx(expected, rel=1e-9)


def test_what_is_too_large_to_count_is_drawn_and_never_gives_zero() -> None:
    groups = known(*OCEAN), known(*MIDNIGHT)
    drawn = rank_test(*groups, rng=np.random.default_rng(1), cells=0)
    assert not drawn.exact
    assert drawn.first == pytest.approx(rank_test(*groups).first, abs=0.01)
    apart = rank_test(known(*range(20)), known(*range(50, 70)), cells=0)
    assert apart.first == 1 / 100_001


def cut(times: np.ndarray, budget: float) -> Times:
    return Times(np.minimum(times, budget), np.where(times > budget, np.inf, times))


@pytest.mark.parametrize(
    ("means", "spreads", "kept", "dropped"),
    [((27, 32), (5, 5), (0.2, 0.36), (0, 0.12)), ((29, 29), (2, 8), (0, 0.1), (0.15, 0.4))],
    ids=["a shift of one spread", "no shift, unequal spreads"],
)
def test_late_runs_that_are_kept_cost_little_and_those_dropped_would_lie(
    means: tuple[int, int],
    spreads: tuple[int, int],
    kept: tuple[float, float],
    dropped: tuple[float, float],
) -> None:
    rng = np.random.default_rng(0)
    of_kept, of_dropped = [], []
    for _ in range(300):
        a, b = (rng.normal(m, s, 6) for m, s in zip(means, spreads, strict=True))
        of_kept.append(rank_test(cut(a, 32), cut(b, 32)).p <= 0.05)
        of_dropped.append(rank_test(known(*a[a <= 32]), known(*b[b <= 32])).p <= 0.05)
    assert kept[0] <= np.mean(of_kept) <= kept[1]
    assert dropped[0] <= np.mean(of_dropped) <= dropped[1]
