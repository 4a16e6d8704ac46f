"""Rounds over several runs: shares, words that ride along, and the same choice after any cut."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.order.rounds import Curves, following, known, played
from pipeline.order.search import Ask, Reading, Search, search


class Answer:
    """Readings of runs whose curves jump at these steps; a sample near a jump decides nothing."""

    def __init__(self, crossings: dict[str, tuple[int, ...]]) -> None:
        self.crossings = crossings

    def __call__(self, run: str, ask: Ask) -> Curves:
        return [self._reading(at, ask) for at in self.crossings[run]]

    def _reading(self, at: int, ask: Ask) -> Reading:
        rate = float(ask.step >= at)
        near = abs(ask.step - at) < 3
        return Reading(rate, rate - near, rate + near, ask.full)


RUNS: dict[str, Search] = {name: search(range(201), 25) for name in "abc"}
JUMPS = Answer({"a": (40,), "b": (90,), "c": (500,)})


def all_asked(runs: dict[str, Search], answer: Answer, workers: int) -> set[tuple[str, Ask]]:
    return {one for asked in played(runs, answer, workers) for one in asked}


def test_every_unfinished_run_has_its_share_of_the_workers() -> None:
    rounds = list(played(RUNS, JUMPS, 6))
    assert [run for run, _ in rounds[0]] == ["a", "a", "b", "b", "c", "c"]
    assert len({run for run, _ in rounds[-1]}) < 3
    assert max(len(asked) for asked in rounds) == 6


def test_an_evaluated_checkpoint_serves_every_word_of_its_run() -> None:
    one = {"a": RUNS["a"]}
    alone = [{ask.step for _, ask in all_asked(one, Answer({"a": (at,)}), 1)} for at in (40, 90)]
    both = {ask.step for _, ask in all_asked(one, Answer({"a": (40, 90)}), 1)}
    assert both == alone[0] | alone[1]
    assert len(both) < len(alone[0]) + len(alone[1])


@settings(max_examples=15)
@given(st.integers(1, 9), st.integers(0, 2**32), st.floats(0.1, 0.9))
def test_a_search_cut_off_anywhere_goes_on_with_the_same_choice(
    workers: int, seed: int, share: float
) -> None:
    rng = random.Random(seed)
    expected = all_asked(RUNS, JUMPS, workers)
    answers: dict[tuple[str, Ask], Curves] = {}
    while asked := following(RUNS, answers, workers):
        written = [one for one in asked if rng.random() < share] or asked[:1]
        answers |= {one: JUMPS(*one) for one in written}
    assert set(answers) == expected


def test_what_others_have_evaluated_ends_a_search() -> None:
    steps = sorted({ask.step for _, ask in all_asked({"a": RUNS["a"]}, JUMPS, 8)})
    answers = {("a", Ask(step, True)): JUMPS("a", Ask(step, True)) for step in steps}
    assert following({"a": RUNS["a"]}, answers, 1) == []


def test_a_run_that_is_over_is_asked_no_more_when_another_joins_it() -> None:
    own = {"a": RUNS["a"]}
    answers = {one: JUMPS(*one) for one in all_asked(own, JUMPS, 8)}
    while asked := following(RUNS, answers, 8):
        assert {run for run, _ in asked} <= {"b", "c"}
        answers |= {one: JUMPS(*one) for one in asked}


def test_a_crossing_that_others_have_seen_is_refined_once_nothing_else_is_left() -> None:
    own = {"a": RUNS["a"]}
    answers = {one: JUMPS(*one) for one in all_asked(own, JUMPS, 1)}
    answers["a", Ask(12, True)] = [Reading(0.9, 0.8, 1.0, True)]
    assert following(own, answers, 1) == [("a", Ask(6, False))]


def test_the_largest_sample_is_what_is_known() -> None:
    small, full = [Reading(0.1, 0, 1, False)], [Reading(0.2, 0, 1, True)]
    answers = {("a", Ask(5, True)): full, ("a", Ask(5, False)): small, ("a", Ask(6, False)): small}
    assert known(RUNS, answers)["a"] == {5: full, 6: small}
