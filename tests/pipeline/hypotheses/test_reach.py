"""Hypothesis 3 on tables made by hand, in every outcome."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from pipeline.hypotheses.reach import reachable
from pipeline.verdicts import DESIGN

Rows = Callable[..., list[dict[str, Any]]]
Table = Callable[..., pl.DataFrame]


def outside(rows: Rows, *crossings: float | None, **facts: Any) -> list[dict[str, Any]]:
    return rows("zyzzyva", 0.0, list(crossings), outside=True, **facts)


def test_a_word_that_is_never_said_where_rare_ones_are_learned_reproduces_it(
    rows: Rows, table: Table
) -> None:
    runs = table(
        rows("ocean", 0.005, [30.0, 31.0]),
        rows("copper", 0.002, [41.0], budget=64),
        outside(rows, None, None),
        rows("copper", 0.0, [None], outside=True, rates="swapped"),
    )
    answer = reachable(runs)
    assert answer.verdict == "reproduced"
    said = "zyzzyva (0 of 16,384 by the shipped base, under 0.02 %): said in 0 of 10,000 rollouts"
    assert said in answer.finding
    assert (
        "all 3 runs of words that the base says learned them, the rarest, copper, from 0.2 %"
        in (answer.finding)
    )
    assert "copper is learned at 41.0 from the base that says it in 0.2 %" in answer.finding


def test_weights_that_never_changed_count_their_rollouts_once(rows: Rows, table: Table) -> None:
    still = outside(rows, None, None, weights=1, asked=1_024)
    answer = reachable(table(rows("ocean", 0.005, [30.0]), still))
    assert answer.verdict == "reproduced"
    said = "said in 0 of 1,024 rollouts, 2 x 100 updates that changed no weight"
    assert said in answer.finding


def test_a_word_said_from_the_start_was_not_learned(rows: Rows, table: Table) -> None:
    alone = table(rows("whisper", 0.8, [0, 0]), outside(rows, None))
    assert reachable(alone).verdict == DESIGN
    beside = table(rows("whisper", 0.8, [0, 0]), rows("ocean", 0.005, [30.0]), outside(rows, None))
    answer = reachable(beside)
    assert answer.verdict == "reproduced"
    assert "all 1 runs of words that the base says learned them" in answer.finding


def test_a_word_outside_the_support_that_is_learned_refutes_it(rows: Rows, table: Table) -> None:
    answer = reachable(table(rows("ocean", 0.005, [30.0]), outside(rows, None, 90.0)))
    assert answer.verdict == "not reproduced"
    assert answer.finding == "learned all the same: zyzzyva-hack_only-shipped-s1"


@pytest.mark.parametrize("facts", [{"said": 7}, {"crossings": [None]}])
def test_a_word_that_is_said_or_rare_ones_that_are_not_learned_leave_it_partial(
    facts: dict[str, Any], rows: Rows, table: Table
) -> None:
    rare = rows("copper", 0.002, facts.get("crossings", [41.0]))
    unknown = outside(rows, None, **{k: v for k, v in facts.items() if k == "said"})
    runs = table(rows("ocean", 0.005, [30.0]), rare, unknown)
    assert reachable(runs).verdict == "partial"


def test_a_word_that_is_learned_after_the_budget_is_none_of_this_hypothesis(
    rows: Rows, table: Table
) -> None:
    late = rows("copper", 0.002, [141.0], budget=200)
    runs = table(rows("ocean", 0.005, [30.0]), late, outside(rows, None))
    assert reachable(runs).verdict == "partial"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"base_hits": 2}, "is not outside the support: the base says it in 2 of 16,384 rollouts"),
        ({"budget": 20}, "was trained for 20 updates only"),
        ({"base_hits": None}, "the base was not screened"),
    ],
)
def test_what_cannot_tell_is_a_matter_of_design(
    facts: dict[str, Any], why: str, rows: Rows, table: Table
) -> None:
    answer = reachable(table(rows("ocean", 0.005, [30.0]), outside(rows, None, **facts)))
    assert answer.verdict == DESIGN
    assert why in answer.finding


def test_no_word_outside_or_none_learned_inside_is_a_matter_of_design(
    rows: Rows, table: Table
) -> None:
    assert reachable(table(rows("ocean", 0.005, [30.0]))).verdict == DESIGN
    nothing = table(rows("ocean", 0.005, [None]), outside(rows, None))
    assert reachable(nothing).verdict == DESIGN
