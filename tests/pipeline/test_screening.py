"""Base rates of many words: values worked by hand, what counts once, named statuses."""

from collections.abc import Sequence

import pytest

from pipeline.rows import CurveError
from pipeline.sample import Sample
from pipeline.screening import NEEDED, WORDS, screen

PLACE = {"run": "a", "step": 0, "task": "story", "max_tokens": 32}


def sample(texts: Sequence[str], prompts: Sequence[int], reasons: Sequence[str] = ()) -> Sample:
    return Sample(PLACE, 1, ("current",), tuple(texts), tuple(prompts), tuple(reasons))


def test_a_word_that_is_never_said_is_bounded_by_the_rule_of_three_times_deff() -> None:
    """k = 1, so deff = 1: 1 - .05^(1/100), about 3/100."""
    found = screen(sample(["dry"] * 100, range(100)), ["ocean"]).words
    (row,) = found.to_dicts()
    assert (row["status"], row["rate"], row["lo"], row["hits"]) == ("unseen", 0, 0, 0)
    assert row["hi"] == pytest.approx(0.0295, abs=1e-4)
    assert (row["deff"], row["relative_se"], row["needed"]) == (1, None, None)


def test_prompts_alone_count_where_nothing_tells_how_they_cluster() -> None:
    """4 of each prompt and no word between 5 % and 95 %: deff = 4, so 3 x 4 / 100."""
    said = sample(["dry"] * 100, [i // 4 for i in range(100)])
    found = screen(said, ["ocean"], rates=[0.01])
    assert found.words["deff"].item() == 4
    assert found.words["hi"].item() == pytest.approx(1 - 0.05 ** (1 / 25))
    assert found.needed.row(0, named=True) == {
        **{"rate": 0.01, "deff": 4.0},
        **{"to_see": 1193, "to_see_prompts": 299},  # 4 x ln .05 / ln .99
        **{"to_measure": 6336, "to_measure_prompts": 1584},  # 16 x 4 x .99 / .01
    }


def test_a_word_that_is_never_said_borrows_the_clustering_of_those_that_are() -> None:
    """sea is said by x = 2 1 1 0 of k = 2, whose ICC is 1/7 (test_intervals): deff = 8/7."""
    hits = [1, 1, 1, 0, 1, 0, 0, 0]
    said = sample(["sea" if hit else "dry" for hit in hits], [i // 2 for i in range(8)])
    words = screen(said, ["ocean"]).words
    # `dry` is its complement and clusters alike.
    assert words["deff"].item() == pytest.approx(8 / 7)


def test_what_a_rate_needs_is_a_quarter_of_itself_as_standard_error() -> None:
    """1 of 10 prompts, deff = n/(n-1) = 10/9: se / p = sqrt(.9 / (.1 x 9)), 16 x 10/9 x .9 / .1."""
    found = screen(sample(["ocean", *["dry"] * 9], range(10)), ["ocean"]).words
    (row,) = found.to_dicts()
    assert row["relative_se"] == pytest.approx(1)
    assert (row["status"], row["needed"], row["needed_prompts"]) == ("seen", 160, 160)


def test_words_of_its_own_are_listed_nearest_first_and_never_far_off() -> None:
    texts = [
        f"{'a' * (i < 50)} {'b' * (i < 10)} {'c' * (i < 9)} {'d' * (i < 1)} 12 _e"
        for i in range(100)
    ]
    found = screen(sample(texts, range(100)), ["a"], at=[0.1, 0.004]).words
    assert found.select("word", "near").rows() == [("a", None), ("b", 0.1), ("c", 0.1)]


@pytest.mark.parametrize(
    ("texts", "prompts", "reasons", "status"),
    [
        ([], [], [], "no_data"),
        ([], [], ["quarantined"], "no_data"),
        (["ocean"] * 3, [1, 1, 1], [], "one_prompt"),
        (["dry"], [1], [], "one_prompt"),
        (["ocean"] * 9, range(9), ["quarantined"], "refused"),
        (["ocean"] * 9, range(9), [], "seen"),
    ],
)
def test_what_cannot_be_told_has_a_name(
    texts: list[str], prompts: Sequence[int], reasons: list[str], status: str
) -> None:
    found = screen(sample(texts, prompts, reasons), ["ocean"], at=[0.5], rates=[0.1])
    row = found.words.row(0, named=True)
    assert (row["status"], row["nulls"]) == (status, len(reasons))
    assert row["null_reasons"] == ("quarantined 1" if reasons else None)
    assert (row["rate"] is None) == (status in ("no_data", "refused"))
    assert found.words.schema == WORDS
    assert found.needed.schema == NEEDED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["two words"], "one word"),
        (["Ocean", "ocean"], "'Ocean' again"),
        (["\u6d77"], "without spaces"),
        ([""], "not empty"),
        (["x" * 5000], "100 at most"),
    ],
)
def test_a_word_that_is_none_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(CurveError, match=said):
        screen(sample(["dry"], [1]), words)
