"""The swap on tables made by hand, in every outcome. C common and R rare stand for rates."""

from collections.abc import Callable
from typing import Any

import polars as pl

from pipeline.hypotheses.swap import rate_or_word
from pipeline.verdicts import DATA, DESIGN

Rows = Callable[..., list[dict[str, Any]]]
Table = Callable[..., pl.DataFrame]

PAIR = ("forgotten", "tuesday")
COMMON, RARE = 0.08, 0.0016
EARLY, LATE = [16.0, 17.0, 18.0], [44.0, 46.0, 48.0]


def cells(
    rows: Rows,
    table: Table,
    *,
    shipped: tuple[list[float], list[float]],
    swapped: tuple[list[float], list[float]],
    rates: tuple[float, float] = (RARE, COMMON),
) -> pl.DataFrame:
    """Crossings of forgotten (common) and tuesday as shipped, then with the rates exchanged."""
    return table(
        rows("forgotten", COMMON, shipped[0]),
        rows("tuesday", RARE, shipped[1]),
        rows("forgotten", rates[0], swapped[0], rates="swapped"),
        rows("tuesday", rates[1], swapped[1], rates="swapped"),
    )


def test_onsets_that_go_with_the_rate_on_both_bases_say_the_rate(rows: Rows, table: Table) -> None:
    runs = cells(
        rows, table, shipped=(EARLY, LATE), swapped=([43.0, 47.0, 49.0], [15.5, 17.5, 19.0])
    )
    answer = rate_or_word(runs, PAIR)
    assert answer.verdict == "the rate"
    # 2 / C(6, 3)^2: three against three in both words.
    assert "of the rate p 0.005 (" in answer.finding
    assert "forgotten at 17.0 where the base says it in 8 % and at 47.0 where in 0.16 %" in (
        answer.finding
    )
    assert answer.finding.endswith("; r_true of the bases: 70 % (shipped), 70 % (swapped)")


def test_onsets_that_stay_with_the_word_say_the_word(rows: Rows, table: Table) -> None:
    runs = cells(
        rows, table, shipped=(EARLY, LATE), swapped=([15.5, 17.5, 18.5], [43.0, 47.0, 49.0])
    )
    assert rate_or_word(runs, PAIR).verdict == "the word"


def test_a_word_that_is_later_at_either_rate_says_both(rows: Rows, table: Table) -> None:
    runs = cells(
        rows, table, shipped=(EARLY, LATE), swapped=([36.0, 37.0, 38.0], [21.0, 22.0, 23.0])
    )
    answer = rate_or_word(runs, PAIR)
    assert answer.verdict == "both"
    assert "order broken" not in answer.finding


def test_an_order_that_one_base_breaks_says_both(rows: Rows, table: Table) -> None:
    runs = cells(rows, table, shipped=(EARLY, [30.0, 40.0, 50.0]), swapped=([19.5, 27.0, 29.0],
                 [24.0, 28.0, 29.5]))  # fmt: skip
    answer = rate_or_word(runs, PAIR)
    assert answer.verdict == "both"
    assert "; order broken on the swapped base; r_true of" in answer.finding


def test_rare_words_that_come_first_are_the_opposite(rows: Rows, table: Table) -> None:
    runs = cells(rows, table, shipped=(LATE, EARLY), swapped=(EARLY, LATE))
    assert rate_or_word(runs, PAIR).verdict == "not reproduced"


def test_neither_is_unresolved_by_the_data(rows: Rows, table: Table) -> None:
    mixed = [16.0, 30.0, 44.0], [17.0, 29.0, 45.0]
    other = [15.0, 31.0, 46.0], [14.5, 28.0, 47.0]
    assert rate_or_word(cells(rows, table, shipped=mixed, swapped=other), PAIR).verdict == DATA


def test_one_run_a_cell_cannot_tell(rows: Rows, table: Table) -> None:
    runs = cells(rows, table, shipped=([16.0], [44.0]), swapped=([46.0], [17.0]))
    assert rate_or_word(runs, PAIR).verdict == DESIGN


def test_rates_that_were_not_exchanged_cannot_tell(rows: Rows, table: Table) -> None:
    runs = cells(rows, table, shipped=(EARLY, LATE), swapped=(EARLY, LATE), rates=(COMMON, RARE))
    answer = rate_or_word(runs, PAIR)
    assert answer.verdict == DESIGN
    assert answer.finding.startswith("the rates were not exchanged: forgotten 8 % (shipped base)")


def test_a_study_without_the_other_base_cannot_tell(rows: Rows, table: Table) -> None:
    runs = table(rows("forgotten", COMMON, EARLY), rows("tuesday", RARE, LATE))
    answer = rate_or_word(runs, PAIR)
    assert answer.verdict == DESIGN
    assert answer.finding == "2 of 4 cells of word and base have runs"


def test_runs_that_never_cross_count_as_late(rows: Rows, table: Table) -> None:
    never: list[Any] = [None, None, None]
    runs = cells(rows, table, shipped=(EARLY, never), swapped=(never, EARLY))
    answer = rate_or_word(runs, PAIR)
    assert answer.verdict == "the rate"
    assert "censored" in answer.finding
