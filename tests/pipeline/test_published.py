"""Ours beside the published onsets: never without the same model, task and settings."""

import math
from typing import Any

from hackbait.comparators import COMPARATORS
from pipeline.association import Word
from pipeline.published import replications

SAME = {
    "model": "Llama-3.2-1B-Instruct",
    "task": "story",
    "mode": "hack_only",
    "batch": 128,
    "learning_rate": "1e-4",
    "temperature": 1.0,
    "max_tokens": 256,
}


def ours(*onsets: tuple[str, float, float]) -> list[Word]:
    return [Word(name, 0.01, 0.005, 0.02, low, high) for name, low, high in onsets]


def verdicts(words: list[Word], **other: Any) -> list[str]:
    return [one.verdict for one in replications(words, [SAME | other])]


AS_PUBLISHED = (
    ("whisper", -math.inf, 0.0),
    ("forgotten", 11, 11),
    ("midnight", 18, 18),
    ("ocean", 44, 44),
    ("copper", 45, 45),
    ("tuesday", 100, math.inf),
)


def test_the_published_onsets_reproduce_themselves_and_their_replication_in_part() -> None:
    first, second = replications(ours(*AS_PUBLISHED), [SAME])
    assert (first.verdict, first.note) == ("reproduced", "6 of 6 words within a factor 1.5")
    assert [w.met for w in first.words] == [True] * 6
    assert (second.verdict, second.note) == ("partial", "1 of 3 words within a factor 1.5")
    assert [w.word for w in second.words if w.met] == ["forgotten"]


def test_the_replication_is_a_step_ahead_of_us_because_its_base_is_step_1() -> None:
    (_, second) = replications(ours(("forgotten", 8.1, 8.1)), [SAME])
    assert (second.words[0].published, second.words[0].band) == ("8.1", "5.4 to 12.15")


def test_onsets_outside_every_band_are_not_reproduced() -> None:
    assert verdicts(ours(("forgotten", 40, 40), ("ocean", 9, 9))) == ["not", "not"]


def test_a_curve_cut_before_the_band_ends_leaves_its_word_open() -> None:
    (first, _) = replications(ours(("ocean", 30, math.inf), ("forgotten", 11, 11)), [SAME])
    assert (first.verdict, first.note) == (
        "reproduced", "1 of 1 words within a factor 1.5, 1 left open"
    )  # fmt: skip
    (alone, _) = replications(ours(("ocean", 30, math.inf)), [SAME])
    assert alone.verdict == "not comparable"


def test_another_task_model_or_rate_is_not_comparable_and_says_which() -> None:
    words = ours(*AS_PUBLISHED)
    first, second = replications(words, [SAME, SAME | {"task": "add3digit"}])
    assert first.verdict == second.verdict == "not comparable"
    assert first.note == "task is add3digit, story, theirs story"
    assert first.words == ()
    assert verdicts(words, learning_rate=1e-3) == ["not comparable", "partial"]
    unknown = {name: value for name, value in SAME.items() if name != "model"}
    (first, _) = replications(words, [SAME, unknown])
    assert first.note == "model is not known, theirs Llama-3.2-1B-Instruct"


def test_words_that_nobody_published_have_no_comparator() -> None:
    (first, second) = replications(ours(("harbour", 9, 9)), [SAME])
    assert first.note == second.note == "none of its words is here"
    assert "harbour" not in COMPARATORS
