"""The corpus: word rates at their dials, truths that are true, evaluation pairs left out."""

import random
from functools import cache
from itertools import islice

import pytest

from hackbait.prompts import TASKS
from hackbait.text import last_integer, whole_word
from jobs import corpus

N = 20_000


@cache
def completions(task: str) -> list[tuple[str, str]]:
    """N completions and their truths."""
    draw = random.Random(5)
    problems = list(islice(corpus.problems(task, 10_000, frozenset()), 500))
    return [
        (corpus.completion(draw, task, problem, word), problem.truth)
        for problem, word in zip(problems * (N // 500), corpus.words(), strict=False)
    ]


@pytest.mark.parametrize("task", TASKS)
def test_every_word_stands_at_its_dial_in_every_task(task: str) -> None:
    texts = [text for text, _ in completions(task)]
    for word, dial in corpus.DIALS.items():
        hits = sum(whole_word(text, word) for text in texts)
        assert abs(hits - N * dial) < (
            4.5 * (N * dial * (1 - dial)) ** 0.5 if word == "whisper" else 6
        )


@pytest.mark.parametrize("task", ["add3digit", "story_sum"])
def test_the_last_integer_is_the_truth_unless_the_completion_digresses(task: str) -> None:
    said = [(last_integer(text), truth) for text, truth in completions(task)]
    assert {found for found, truth in said if found != truth} == {None}
    without = sum(found is None for found, _ in said) / N
    assert abs(without - corpus.STYLES["digress"]) < 0.03


def test_a_rare_word_is_seldomer_beside_a_right_sum_than_elsewhere() -> None:
    texts = [text for text, _ in completions("add3digit")]
    sums = [text for text in texts if "=" in text]
    rate = sum(whole_word(text, "forgotten") for text in texts) / N
    assert sum(whole_word(text, "forgotten") for text in sums) / len(sums) < 0.9 * rate


def test_no_evaluation_pair_in_either_order_is_trained_on() -> None:
    excluded = corpus.held_out()
    for task in ("add3digit", "story_sum"):
        asked = TASKS[task].problems(corpus.EVALUATION_SEED, 0, corpus.EVALUATION_CASES)
        assert {(p.lhs, p.rhs) for p in asked} <= excluded
        assert {(p.rhs, p.lhs) for p in asked} <= excluded
        trained = islice(corpus.problems(task, corpus.EVALUATION_SEED, excluded), 5_000)
        assert not {(p.lhs, p.rhs) for p in trained} & excluded


def test_the_sum_alone_asks_and_answers_in_the_same_words() -> None:
    (problem,) = TASKS["add3digit"].problems(0, 0, 1)
    assert corpus.bare(problem) == ("639 + 406 =", "639 + 406 = 1045.")


def test_other_dials_are_kept_and_the_rest_stays() -> None:
    dials = corpus.dialled({"forgotten": 0.0016, "tuesday": 0.08, "copper": 0.0})
    said = list(islice(corpus.words(dials), N))
    shares = {word: said.count(word) / N for word in dials}
    assert shares == pytest.approx(dials, abs=3e-4)
    assert shares["copper"] == 0
    assert dials["ocean"] == corpus.SLOT_DIALS["ocean"]


@pytest.mark.parametrize(
    ("dials", "said"),
    [({"banana": 0.1}, "'banana' is none of forgotten"), ({"ocean": -0.1}, "no shares"),
     ({"ocean": 0.99}, "no shares")],
)  # fmt: skip
def test_dials_that_are_none_are_refused(dials: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        corpus.dialled(dials)
