"""Words compared as a referee would: resolved, out of reach, or hanging on a choice."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.compare import PAIRS, frame, pairs
from pipeline.grouping import RunOnset, by_word

# Evaluation onsets of the replication (assay, 2026-08), with the batch each run was trained in.
FORGOTTEN = (5.473684, 10.165289, 9.102564)
OCEAN = (20.512821, 25.351563, 25.395683, 24.0, 32.571429, 39.0)
MIDNIGHT = (30.362319, 31.157143, 31.392857, 27.526316)
OCEAN_BATCH = (1, 1, 1, 2, 2, 2)
MIDNIGHT_BATCH = (1, 2, 2, 2)


def at(word: str, *steps: float, wave: object = None, width: float = 1.0) -> list[RunOnset]:
    return [
        RunOnset(f"{word}{i}", word, s, s, s - width / 2, s + width / 2, wave=wave)
        for i, s in enumerate(steps)
    ]


def late(word: str, *last: float, reason: str = "budget") -> list[RunOnset]:
    return [
        RunOnset(f"{word}>{i}", word, s, math.inf, s, math.inf, reason) for i, s in enumerate(last)
    ]


def left(word: str, n: int) -> list[RunOnset]:
    return [RunOnset(f"{word}<{i}", word, -math.inf, 0, -math.inf, 0) for i in range(n)]


def waved(word: str, steps: Sequence[float], waves: Sequence[int]) -> list[RunOnset]:
    return [
        RunOnset(f"{word}{i}", word, s, s, s, s, wave=w)
        for i, (s, w) in enumerate(zip(steps, waves, strict=True))
    ]


def compared(*found: RunOnset, alpha: float = 0.05):
    return pairs(by_word(found), alpha)


def test_the_replication_resolves_none_of_its_three_words_and_says_why() -> None:
    groups = by_word(
        [*at("midnight", *MIDNIGHT), *at("ocean", *OCEAN), *at("forgotten", *FORGOTTEN)]
    )
    assert list(groups) == ["forgotten", "ocean", "midnight"]
    first, second, third = pairs(groups)
    assert (first.p, first.p_holm) == pytest.approx((0.0238, 0.0714), abs=5e-5)
    assert [p.verdict for p in (first, second, third)] == [
        "unresolved:design", "unresolved:design", "unresolved:data"
    ]  # fmt: skip
    assert "5 runs a word can" in first.note
    assert (
        third.note == "excluded: midnight more than 9.8 steps later or more than 7.8 steps earlier"
    )
    assert (first.median_a, first.median_b, third.median_b) == ("9.1", "25.4", "30.8")


def test_two_words_alone_are_resolved_by_3_v_6_runs() -> None:
    (pair,) = compared(*at("forgotten", *FORGOTTEN), *at("ocean", *OCEAN))
    assert pair.verdict == pair.ratio_verdict == "resolved:forgotten<ocean"
    assert pair.ratio_lo < pair.ratio < pair.ratio_hi
    assert pair.ratio_lo > 1
    assert (pair.test, pair.note) == ("mann-whitney", "")


def test_holm_lets_a_pair_pass_that_its_design_alone_would_not() -> None:
    family = [*at("a", *range(1, 7)), *at("b", *range(101, 107)), *at("c", 50.2, 51, 52, 53)]
    by_pair = {(p.a, p.b): p for p in compared(*family)}
    assert by_pair["a", "b"].p_holm == pytest.approx(3 * 2 / math.comb(12, 6))
    assert all(p.verdict.startswith("resolved") for p in by_pair.values())


def test_words_that_do_not_cross_are_later_than_those_that_do() -> None:
    (pair,) = compared(*at("ocean", 20, 21, 22, 23), *late("tuesday", 100, 100, 100, 100))
    assert (pair.verdict, pair.test) == ("resolved:ocean<tuesday", "gehan")
    assert (pair.censored_a, pair.censored_b, pair.median_b) == (0, 4, "> 100")
    assert (pair.shift, pair.shift_lo, pair.shift_hi) == (None, 77, None)
    assert pair.ratio_verdict == "resolved:ocean<tuesday"
    assert pair.ratio_lo == pytest.approx(100 / 23)


def test_a_word_said_from_the_start_is_first_and_has_no_ratio() -> None:
    (pair,) = compared(*left("whisper", 5), *at("ocean", 20, 21, 22, 23, 24))
    assert (pair.verdict, pair.median_a) == ("resolved:whisper<ocean", "<= 0")
    assert pair.ratio is None
    assert (pair.ratio_lo, pair.ratio_hi) == (pytest.approx(20), None)
    (same,) = compared(*left("whisper", 5), *left("said", 5))
    assert (same.verdict, same.p) == ("unresolved:data", 1)
    assert same.note == "no difference is excluded"


@pytest.mark.parametrize("n_a", [0, 1])
@pytest.mark.parametrize("n_b", [0, 1])
def test_one_run_or_none_is_a_design_that_resolves_nothing(n_a: int, n_b: int) -> None:
    groups = {"a": at("a", *range(n_a)), "b": at("b", *range(n_b))}
    (pair,) = pairs(groups)
    assert (pair.verdict, pair.ratio_verdict) == ("unresolved:design", "unresolved:design")
    assert (pair.p, pair.shift_lo, pair.shift_hi) == (1, None, None)


def test_one_word_or_none_has_no_pair() -> None:
    assert pairs({}) == pairs({"a": at("a", 1, 2)}) == []


def test_an_order_that_only_interpolation_makes_is_sensitive() -> None:
    a, b = at("a", *range(10, 15), width=20), at("b", *range(20, 25), width=20)
    (pair,) = compared(*a, *b)
    assert pair.p_bracket > 0.05 > pair.p_holm
    assert pair.verdict == "unresolved:sensitive"
    assert pair.note.startswith("brackets: p")


def test_an_order_that_is_the_waves_is_sensitive() -> None:
    (pair,) = compared(*at("a", 1, 2, 3, 4, wave=1), *at("b", 5, 6, 7, 8, wave=2))
    assert pair.verdict == "unresolved:sensitive"
    assert pair.note == "no wave holds both words"
    a = waved("a", [1, 2, 3, 11, 12, 13], [1, 1, 1, 2, 2, 2])
    b = waved("b", [4, 5, 6, 14, 15, 16], [1, 1, 1, 2, 2, 2])
    (hidden,) = compared(*a, *b)
    assert hidden.p > 0.05 > hidden.p_wave == pytest.approx(2 / 400)
    assert hidden.verdict == "unresolved:sensitive"


def test_few_runs_a_wave_that_all_agree_are_not_held_against_a_result() -> None:
    a = waved("a", [1, 2, 3, 4], [1, 2, 3, 4])
    b = waved("b", [5, 6, 7, 8], [1, 2, 3, 4])
    (pair,) = compared(*a, *b)
    assert pair.p_wave == 2 / 16
    assert pair.verdict == "resolved:a<b"


def test_the_published_batches_leave_ocean_and_midnight_unresolved() -> None:
    (pair,) = compared(
        *waved("ocean", OCEAN, OCEAN_BATCH), *waved("midnight", MIDNIGHT, MIDNIGHT_BATCH)
    )
    assert pair.p_wave == 1
    assert pair.verdict == "unresolved:data"


def test_runs_that_were_aborted_count_where_they_speak_least() -> None:
    slow = at("ocean", 30, 31, 32, 33, 34)
    (pair,) = compared(*at("m", 10, 11, 12, 13), *late("m", 14, reason="aborted"), *slow)
    assert pair.verdict == "unresolved:sensitive"
    assert "no common budget" in pair.note
    fast = at("ocean", 1, 2, 3, 45)
    (unlike,) = compared(*fast, *late("m", 40, 40, 40, 40))
    assert "no common budget" not in unlike.note
    (sure,) = compared(*at("m", 10, 11, 12, 13, 14), *late("ocean", 40, 50, 60, 70, 80))
    assert sure.verdict == "resolved:m<ocean"


numbers = st.lists(st.integers(1, 40), max_size=5)


@settings(max_examples=40)
@given(numbers, numbers, st.integers(0, 2), st.integers(0, 2))
def test_every_pair_has_a_verdict_and_mirrors(
    a: list[int], b: list[int], late_b: int, left_a: int
) -> None:
    groups = {
        "a": [*at("a", *a), *left("a", left_a)],
        "b": [*at("b", *b), *late("b", *[50] * late_b)],
    }
    (pair,) = pairs(groups)
    (back,) = pairs(dict(reversed(groups.items())))
    assert pair.verdict.split(":")[0] in ("resolved", "unresolved")
    assert (pair.p, pair.verdict) == (pytest.approx(back.p), back.verdict)
    assert pair.shift == (None if back.shift is None else -back.shift)
    assert frame([pair]).schema == PAIRS
