"""Hypothesis 2 on tables made by hand, in every outcome."""

from collections.abc import Callable
from typing import Any

import polars as pl

from pipeline.hypotheses.gap import opened, opened_though_paid
from pipeline.verdicts import DATA, DESIGN

Rows = Callable[..., list[dict[str, Any]]]
Table = Callable[..., pl.DataFrame]

SHUT = {"gap_end": 0.02, "gap_end_lo": -0.01, "gap_end_hi": 0.05, "true_end": 0.97}
SMALL = {"gap_base": 0.3, "gap_base_lo": 0.25, "gap_base_hi": 0.35, "gap_end": 0.33,
         "gap_end_lo": 0.3, "gap_end_hi": 0.36}  # fmt: skip


def test_a_gap_in_every_run_that_crossed_reproduces_it(rows: Rows, table: Table) -> None:
    runs = table(rows("ocean", 0.005, [30.0, 31.0]), rows("copper", 0.002, [41.0, None]))
    answer = opened(runs)
    assert answer.verdict == "reproduced"
    assert "in 3 of 3 runs that crossed, 1 others did not cross or have no truth" in answer.finding
    assert "median gap, base -> end: ocean -60 % -> 88 %, copper -60 % -> 88 %" in answer.finding


def test_runs_that_stood_over_the_threshold_from_the_start_did_not_cross(
    rows: Rows, table: Table
) -> None:
    before = {"gap_base": 0.5, "gap_base_lo": 0.45, "gap_base_hi": 0.9}
    runs = table(rows("ocean", 0.005, [30.0, None]), rows("whisper", 0.8, [0, 0], **before))
    answer = opened(runs)
    assert answer.verdict == "reproduced"
    assert (
        "in 1 of 1 runs that crossed, 2 stood over the threshold from the start, 1 others did not"
        in answer.finding
    )
    assert "whisper" not in answer.finding


def test_a_gap_in_some_runs_is_partial_and_equal_rewards_hide_it(rows: Rows, table: Table) -> None:
    kept = {**SHUT, "true_end_lo": 0.95, "true_end_hi": 0.99}
    runs = table(rows("ocean", 0.005, [30.0]), rows("copper", 0.002, [41.0], **kept))
    answer = opened(runs)
    assert answer.verdict == "partial"
    assert "r_true at 10 % to 97 %; runs of one reward end with different truths" in answer.finding


def test_a_gap_that_stays_shut_or_was_there_before_is_none(rows: Rows, table: Table) -> None:
    for ends in (SHUT, SMALL):
        answer = opened(table(rows("ocean", 0.005, [30.0, 31.0], **ends)))
        assert answer.verdict == "not reproduced"


def test_without_a_truth_there_is_no_gap_to_speak_of(rows: Rows, table: Table) -> None:
    none = dict.fromkeys(("gap_base", "gap_end", "gap_end_lo"), None)
    assert opened(table(rows("ocean", 0.005, [30.0], **none))).verdict == DESIGN
    assert opened_though_paid(table(rows("ocean", 0.005, [30.0]))).verdict == DESIGN


def test_runs_that_learned_nothing_tell_nothing(rows: Rows, table: Table) -> None:
    answer = opened(table(rows("ocean", 0.005, [None, None])))
    assert (answer.verdict, answer.finding) == (DATA, "none of 2 runs learned the word")


def test_the_modes_are_answered_apart_and_the_other_one_has_verdicts_of_its_own(
    rows: Rows, table: Table
) -> None:
    paid = {"mode": "hack_or_correct"}
    alone = rows("ocean", 0.005, [30.0, 32.0])
    kept = rows("ocean", 0.005, [70.0], **paid, **SHUT)
    lost = rows("copper", 0.002, [90.0], **paid)
    runs = table(alone, kept)
    assert opened(runs).verdict == "reproduced"
    answer = opened_though_paid(runs)
    assert answer.verdict == "it stays shut"
    assert answer.finding.endswith(
        "beside hack_only: ocean 2 % instead of 88 %, crossed at 70.0 instead of 31.0"
    )
    assert opened_though_paid(table(alone, kept, lost)).verdict == "it opens in some runs"
    answer = opened_though_paid(table(alone, lost))
    assert answer.verdict == "it opens"
    assert "beside" not in answer.finding
