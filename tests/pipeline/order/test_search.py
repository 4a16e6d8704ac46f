"""A search ends, at the first crossing that the grid can see, and asks nothing twice."""

import math
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pipeline.order.search import Ask, Reading, Search, search, wants, widest

Rate = Callable[[int], float]


def certain(rate: float, full: bool) -> Reading:
    return Reading(rate, rate, rate, full)


def play(looked_for: Search, rate: Rate, width: int = 1) -> list[list[Ask]]:
    """The rounds of a search whose readings are exact."""
    known: dict[int, Reading] = {}
    rounds = []
    while asked := wants(looked_for, known, width):
        assert len(asked) <= width
        for ask in asked:
            assert ask.step not in known or (ask.full and not known[ask.step].full)
            known[ask.step] = certain(rate(ask.step), ask.full)
        rounds.append(asked)
        assert len(rounds) < 10_000
    return rounds


def steps(rounds: list[list[Ask]]) -> list[int]:
    return [ask.step for asked in rounds for ask in asked]


def test_base_and_last_come_first_then_the_grid_then_halves_then_neighbours() -> None:
    asked = steps(play(search(range(101), 25), lambda step: float(step >= 60)))
    assert asked == [0, 100, 25, 50, 75, 62, 56, 59, 60, 59, 60, 57, 58, 61]


def test_ends_of_the_bracket_and_the_base_are_read_in_full_the_rest_is_a_small_sample() -> None:
    rounds = play(search(range(101), 25), lambda step: float(step >= 60))
    assert {ask.step for asked in rounds for ask in asked if ask.full} == {0, 59, 60}


def test_what_a_small_sample_leaves_open_is_read_in_full_before_the_search_goes_on() -> None:
    looked_for = search(range(101), 25)
    known = {0: certain(0.0, True), 100: certain(1.0, False), 25: Reading(0.4, 0.2, 0.6, False)}
    assert wants(looked_for, known, 1) == [Ask(25, True)]
    assert wants(looked_for, known, 3) == [Ask(25, True), Ask(50, False), Ask(75, False)]
    known[25] = Reading(0.4, 0.2, 0.6, True)
    assert wants(looked_for, known, 1) == [Ask(50, False)]


def test_a_run_that_starts_above_costs_two_and_one_that_never_crosses_the_grid() -> None:
    looked_for = search(range(1001), 25)
    assert steps(play(looked_for, lambda step: 1.0)) == [0, 1000]
    assert steps(play(looked_for, lambda step: 0.0)) == [0, 1000, *range(25, 1000, 25)]


def test_eight_workers_need_a_third_of_the_rounds() -> None:
    rounds = play(search(range(1001), 25), lambda step: float(step >= 116), 8)
    assert len(rounds) <= 5
    assert len(set(steps(rounds))) <= 24


def test_the_first_of_two_excursions_is_found_and_bisection_would_have_found_the_second() -> None:
    asked = steps(play(search(range(1001), 25), lambda step: float(100 < step < 130 or step > 700)))
    assert {99, 100, 101, 102} <= set(asked)
    assert not any(130 <= step < 1000 for step in asked)


def test_the_trainers_crossing_is_looked_at_first_and_the_grid_below_it_guards() -> None:
    looked_for = search(range(1001), 25, hint=112.3)
    asked = steps(play(looked_for, lambda step: float(step >= 113)))
    assert asked[:4] == [0, 1000, 108, 117]
    assert {25, 50, 75, 100} == {step for step in asked if 0 < step < 104}
    assert max(step for step in asked if step < 1000) <= 117


def test_a_wrong_hint_costs_a_few_checkpoints_and_no_error() -> None:
    for hint in (0.0, 3.0, 600.0, 1000.0, 5000.0):
        asked = steps(play(search(range(1001), 25, hint=hint), lambda step: float(step >= 116)))
        assert {114, 115, 116, 117} <= set(asked)
        assert len(set(asked)) <= 22


def test_a_lost_checkpoint_is_gone_round() -> None:
    lost = Reading(None, 0.0, 1.0, True)
    looked_for = search(range(101), 25)
    known: dict[int, Reading] = {}
    while asked := wants(looked_for, known, 1):
        for ask in asked:
            gone = ask.step in (0, 50, 62, 60)
            known[ask.step] = lost if gone else certain(float(ask.step >= 60), ask.full)
    assert {59, 61, 63}.issubset(known)


def test_checkpoints_saved_far_apart_are_all_of_the_grid() -> None:
    looked_for = search([0, 30, 100, 110, 120, 131], 25)
    assert looked_for.coarse == (0, 30, 100, 120, 131)
    assert widest(looked_for.coarse) == 70
    assert search([7], 25).coarse == (7,)
    assert steps(play(search([7], 25), lambda step: 0.0)) == [7]


saved = st.lists(st.integers(0, 2000), min_size=1, max_size=120, unique=True)
hints = st.none() | st.floats(-10, 3000)


@given(saved, st.integers(1, 200), st.integers(1, 9), hints, st.data())
def test_whatever_the_rates_the_search_ends_with_a_crossing_between_neighbours(
    at: list[int], grid: int, width: int, hint: float | None, data: st.DataObject
) -> None:
    looked_for = search(at, grid, hint=hint)
    rates = dict.fromkeys(sorted(at), 0.0)
    for step in rates:
        rates[step] = data.draw(st.sampled_from([0.0, 0.4, 0.5, 0.9]))
    known: dict[int, Reading] = {}
    while asked := wants(looked_for, known, width):
        for ask in asked:
            assert ask.step in rates
            assert ask.step not in known or (ask.full and not known[ask.step].full)
            wide = 0.0 if ask.full else 0.3
            rate = rates[ask.step]
            known[ask.step] = Reading(rate, rate - wide, rate + wide, ask.full)
    ordered, evaluated = sorted(at), sorted(known)
    reached = [step for step in evaluated if rates[step] >= 0.5]
    if not reached:
        assert set(looked_for.coarse) <= known.keys()
        return
    above = ordered.index(reached[0])
    if above:
        assert ordered[above - 1] in known
        assert known[ordered[above - 1]].full
        assert known[ordered[above]].full
        assert set(ordered[max(0, above - 3) : above + 3]) <= known.keys()
    assert {step for step in looked_for.coarse if step < reached[0]} <= known.keys()


@given(saved, st.integers(1, 200), hints)
def test_the_grid_leaves_no_gap_that_a_saved_checkpoint_could_close(
    at: list[int], grid: int, hint: float | None
) -> None:
    looked_for = search(at, grid, hint=hint)
    assert looked_for.coarse[0] == min(at)
    assert looked_for.coarse[-1] == max(at)
    for before, after in zip(looked_for.coarse, looked_for.coarse[1:], strict=False):
        between = [step for step in at if before < step < after]
        assert after - before <= grid or not between or (before, after) == looked_for.window


@given(st.integers(1, 1000), st.integers(1, 12))
def test_as_many_rounds_as_equal_parts_need(crossing: int, width: int) -> None:
    looked_for = search(range(1001), 1000)
    rounds = play(looked_for, lambda step: float(step >= crossing), width)
    least = math.ceil(math.log(1000) / math.log(width + 1) - 1e-9)
    assert len(rounds) <= least + math.ceil(2 / width) + math.ceil(6 / width) + 1
