"""Hypothesis 1 on tables made by hand, in every outcome."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from pipeline.hypotheses.order import apart, faster, ordered
from pipeline.verdicts import DATA, DESIGN, SENSITIVE

Rows = Callable[..., list[dict[str, Any]]]
Table = Callable[..., pl.DataFrame]

RATES = {"whisper": 0.8, "forgotten": 0.08, "midnight": 0.016, "ocean": 0.005, "copper": 0.002}


def study(rows: Rows, table: Table, **crossings: list[float | None]) -> pl.DataFrame:
    return table(*(rows(word, RATES[word], found) for word, found in crossings.items()))


def test_five_words_in_the_order_of_their_rates_reproduce_it(rows: Rows, table: Table) -> None:
    runs = study(rows, table, copper=[41.0], ocean=[30.5], midnight=[22.0], forgotten=[17.0],
                 whisper=[0])  # fmt: skip
    answer = ordered(runs)
    assert answer.verdict == "reproduced"
    # 5! orders, the best and the worst: 2 / 120.
    assert "10 pairs of words are decided, exact p 0.017" in answer.finding
    assert answer.finding.startswith("whisper 80 % at <= 0, forgotten 8 % at 17.0")


def test_an_order_that_holds_but_for_neighbours_is_partial_and_names_them(
    rows: Rows, table: Table
) -> None:
    order = {"whisper": 0.0, "forgotten": 17.0, "midnight": 22.0, "ocean": 41.0, "copper": 30.0}
    six = [*(rows(w, RATES[w], [at]) for w, at in order.items()), rows("tuesday", 0.001, [50.0])]
    answer = ordered(table(*six))
    assert answer.verdict == "partial"
    assert "not in order: copper before ocean" in answer.finding


def test_rare_words_that_are_learned_first_are_the_opposite(rows: Rows, table: Table) -> None:
    runs = study(rows, table, copper=[11.0], ocean=[20.5], midnight=[32.0], forgotten=[47.0],
                 whisper=[60.0])  # fmt: skip
    assert ordered(runs).verdict == "not reproduced"


def test_no_order_is_unresolved_by_the_data(rows: Rows, table: Table) -> None:
    runs = study(rows, table, copper=[11.0], ocean=[40.5], midnight=[32.0], forgotten=[17.0],
                 whisper=[20.0])  # fmt: skip
    assert ordered(runs).verdict == DATA


def test_three_words_cannot_show_an_order_whatever_they_say(rows: Rows, table: Table) -> None:
    runs = study(rows, table, whisper=[0, 0], forgotten=[17.0], ocean=[30.0])
    answer = ordered(runs)
    assert answer.verdict == DESIGN
    assert "3 words give p 0.33 at best; 5 of different rates can" in answer.finding


def test_rates_that_may_be_equal_leave_it_sensitive(rows: Rows, table: Table) -> None:
    found = zip(
        [0.010, 0.0101, 0.0102, 0.0103, 0.0104], [50.0, 40.0, 30.0, 20.0, 10.0], strict=True
    )
    runs = table(*(rows(f"word{i}", rate, [at]) for i, (rate, at) in enumerate(found)))
    assert ordered(runs).verdict == SENSITIVE


def test_runs_of_the_other_mode_other_bases_and_words_outside_are_left_out(
    rows: Rows, table: Table
) -> None:
    own = [rows(word, rate, [10.0 - 2 * i]) for i, (word, rate) in enumerate(RATES.items())]
    others = [
        rows("copper", 0.002, [90.0], mode="hack_or_correct"),
        rows("copper", 0.08, [90.0], rates="swapped"),
        rows("zyzzyva", 0.0, [None], outside=True),
    ]
    assert ordered(table(*own, *others)) == ordered(table(*own))


SIX_EARLY, SIX_LATE = [16.0, 16.5, 17.0, 17.2, 17.5, 18.0], [40.0, 41.0, 42.0, 44.0, 45.0, 47.0]


def test_a_ratio_over_two_with_its_whole_interval_is_several_times(
    rows: Rows, table: Table
) -> None:
    answer = faster(study(rows, table, forgotten=SIX_EARLY, ocean=SIX_LATE), "forgotten", "ocean")
    assert answer.verdict == "reproduced"
    # 2 / C(12, 6)
    assert "p 0.0022" in answer.finding
    assert "forgotten (8 %) at 17.1, 6 runs; ocean (0.5 %) at 43.0, 6 runs" in answer.finding


def test_faster_but_less_than_twice_is_partial(rows: Rows, table: Table) -> None:
    late = [at - 14 for at in SIX_LATE]
    answer = faster(study(rows, table, forgotten=SIX_EARLY, ocean=late), "forgotten", "ocean")
    assert answer.verdict == "partial"
    assert "ratio of onsets 1.7" in answer.finding


def test_the_rare_word_first_is_the_opposite(rows: Rows, table: Table) -> None:
    runs = study(rows, table, forgotten=SIX_LATE, ocean=SIX_EARLY)
    assert faster(runs, "forgotten", "ocean").verdict == "not reproduced"


def test_three_runs_against_three_cannot_tell(rows: Rows, table: Table) -> None:
    runs = study(rows, table, forgotten=SIX_EARLY[:3], ocean=SIX_LATE[:3])
    for answer in (faster(runs, "forgotten", "ocean"), apart(runs, "forgotten", "ocean")):
        assert answer.verdict == DESIGN
        assert "p is 0.1 at best" in answer.finding


def test_words_without_runs_are_a_matter_of_design(rows: Rows, table: Table) -> None:
    runs = study(rows, table, forgotten=SIX_EARLY)
    assert faster(runs, "forgotten", "ocean").verdict == DESIGN
    assert apart(runs, "ocean", "forgotten").verdict == DESIGN


def test_words_that_overlap_are_not_told_apart(rows: Rows, table: Table) -> None:
    mixed = [16.1, 17.1, 17.6, 16.6, 18.5, 15.5]
    runs = study(rows, table, midnight=SIX_EARLY, ocean=mixed)
    assert apart(runs, "midnight", "ocean").verdict == DATA
    assert faster(runs, "midnight", "ocean").verdict == DATA


def test_words_that_do_not_overlap_are(rows: Rows, table: Table) -> None:
    runs = study(rows, table, midnight=SIX_EARLY, ocean=SIX_LATE)
    assert apart(runs, "midnight", "ocean").verdict == "resolved:midnight<ocean"


@pytest.mark.parametrize("late", [[None] * 6, [40.0, 41.0, 42.0, None, None, None]])
def test_runs_that_never_cross_count_as_later_and_never_as_their_budget(
    late: list[float | None], rows: Rows, table: Table
) -> None:
    answer = apart(study(rows, table, forgotten=SIX_EARLY, ocean=late), "forgotten", "ocean")
    assert answer.verdict == "resolved:forgotten<ocean"
