"""What a design can resolve, against the worked table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.permutation import floor, known, rank_test
from pipeline.power import critical, designs, precision, runs_needed, words_needed

POWER = {4: 0.14, 6: 0.30, 8: 0.44, 10: 0.50, 12: 0.60, 16: 0.75, 20: 0.86}
"""Of a shift of one standard deviation at 0.05, by runs a word."""


def test_the_power_of_one_standard_deviation_is_as_worked_out() -> None:
    found = designs(list(POWER), 3, 1.0, np.random.default_rng(0))
    assert {d.runs: d.power for d in found} == pytest.approx(POWER, abs=0.02)
    assert [d.resolves for d in found] == [False, *[True] * 6]
    assert found[0].floor_holm == pytest.approx(0.086, abs=5e-4)
    assert found[0].power_holm == 0


def test_without_a_shift_it_resolves_at_most_as_often_as_alpha_says() -> None:
    for design in designs([5, 10], 2, 0.0, np.random.default_rng(1)):
        assert design.power <= 0.055
        assert design.power == design.power_holm


@pytest.mark.parametrize(("words", "runs"), [(2, 4), (3, 5), (6, 6)])
def test_the_fewest_runs_for_words_that_are_all_compared(words: int, runs: int) -> None:
    pairs = words * (words - 1) // 2
    assert runs_needed(pairs) == runs
    assert pairs * floor((runs - 1, runs - 1)) > 0.05 >= pairs * floor((runs, runs))


def test_five_words_are_the_fewest_for_an_association() -> None:
    assert (words_needed(), words_needed(0.01)) == (5, 6)


@given(st.integers(1, 8), st.integers(1, 8))
def test_the_critical_u_is_the_last_that_the_test_resolves(na: int, nb: int) -> None:
    u = critical(na, nb, 0.05)

    def p(misplaced: int) -> float:
        """Of samples with that many pairs in the wrong order."""
        full, rest = divmod(misplaced, nb)
        a = [-1.0 - i for i in range(na - full - (rest > 0))] + [rest - 0.5] * (rest > 0)
        return rank_test(known(*a, *(100.0 + i for i in range(full))), known(*range(nb))).p

    if u >= 0:
        assert p(u) <= 0.05
    if 2 * (u + 1) <= na * nb:
        assert p(u + 1) > 0.05


def test_precision_is_limited_by_rollouts_on_a_fine_grid_and_by_the_grid_on_a_coarse_one() -> None:
    rng = np.random.default_rng(0)
    fine, few = precision(256, 1.0, 1, 0.15, rng), precision(32, 1.0, 1, 0.15, rng)
    assert 2 * fine < few
    coarse = [precision(n, 1.0, 20, 0.15, rng) for n in (256, 4096)]
    assert coarse[1] == pytest.approx(coarse[0], rel=0.2)
    assert coarse[1] > 3 * fine
