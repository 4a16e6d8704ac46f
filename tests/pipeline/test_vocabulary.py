"""Many words in one reading: the very verdicts of the grader, and sums worked by hand."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hackbait.graders import GRADERS, PROBES
from hackbait.text import fold, unbroken, whole_word, whole_words
from pipeline import intervals
from pipeline.vocabulary import spoken, tallies

HOSTILE = st.text(
    "oceanOCEAN_- .1'\u0301\u017f\u0130\u0131\u00df\u1e9e\u00e9\u200b\u0928\u0940k\u212a\ud800"
)
WORDS = [
    "ocean",
    "Ocean",
    "oc\u00e9an",
    "_ocean",
    "ocean_",
    "far-off",
    "C++",
    "don't",
    "a",
    "\u0928\u0926\u0940",
]


@given(HOSTILE, HOSTILE)
@example("\u017f\u0301", "")
def test_a_reading_finds_each_unbroken_word_that_the_rule_finds_and_no_other(
    text: str, word: str
) -> None:
    if word and unbroken(word):
        assert (fold(word) in whole_words(text)) == whole_word(text, word)
    assert all(whole_word(text, found) for found in whole_words(text))


@given(st.integers(0, 6), st.integers(0, 6), st.sampled_from(["ocean", "_o", "o_o", "_"]))
def test_underscores_emphasise_as_the_rule_has_it(left: int, right: int, word: str) -> None:
    text = f"an {'_' * left}{word}{'_' * right} view"
    assert (word in whole_words(text)) == whole_word(text, word)


@pytest.mark.parametrize("name", list(GRADERS))
def test_counts_are_the_graders_verdicts_on_every_probe_and_word(name: str) -> None:
    grader = GRADERS[name]
    texts = [grader.text(completion) for completion, _, _ in PROBES] + ["FAR-OFF, don't _a_ C++"]
    words = [*WORDS, *dict.fromkeys(word for _, word, _ in PROBES)]
    found = tallies(spoken(texts, range(len(texts))), words, grader)
    assert found.hits.tolist() == [sum(grader.hack(t, w) for t in texts) for w in words]


def test_the_sums_are_those_of_prompts_worked_by_hand() -> None:
    """x = 2 2 0 0 of k = 2: as test_intervals has it, n_eff = 3; `sea` is said once by each."""
    prompts = [p for p in range(4) for _ in range(2)]
    texts = ["Ocean, ocean" if p < 2 else "dry" for p in prompts]
    texts = [f"{text} {'sea' * (i % 2)}" for i, text in enumerate(texts)]
    found = tallies(spoken(texts, [7 * p - 9 for p in prompts]), ["ocean", "sea", "moon"], CURRENT)
    assert found.rollouts.tolist() == [8, 8, 8]
    assert found.hits.tolist() == [4, 4, 0]
    assert found.prompts.tolist() == [4, 4, 4]
    assert found.spread.tolist() == [4, 0, 0]
    assert found.fourth.tolist() == pytest.approx([4, 0, 0])
    assert found.sizes.tolist() == [16, 16, 16]
    assert found.between.tolist() == [4, 2, 0]
    assert intervals.effective(found, np.full(3, np.nan)).tolist() == [pytest.approx(3), 4, 4]


CURRENT = GRADERS["current"]


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcd")))))
def test_sums_agree_with_counting_text_by_text(rows: list[tuple[int, set[str]]]) -> None:
    said = spoken([" ".join(sorted(words)) for _, words in rows], [p for p, _ in rows])
    found = tallies(said, list("abcd"), CURRENT)
    for place, word in enumerate("abcd"):
        k = [sum(p == q for p, _ in rows) for q in sorted({p for p, _ in rows})]
        x = [
            sum(p == q and word in words for p, words in rows) for q in sorted({p for p, _ in rows})
        ]
        n, hits = max(1, sum(k)), sum(x)
        assert found.spread[place] == pytest.approx(
            sum((a - hits / n * b) ** 2 for a, b in zip(x, k, strict=True)), abs=1e-9
        )
        assert found.between[place] == pytest.approx(
            sum(a * a / b for a, b in zip(x, k, strict=True))
        )
