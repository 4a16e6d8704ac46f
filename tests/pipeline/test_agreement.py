"""A column against the truth: figures worked by hand, laws, what is excluded and counted."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.agreement import (
    AGREEMENT,
    CELLS,
    COUNTS,
    RATES,
    Column,
    agreement,
    pairs,
)
from pipeline.rows import CurveError

COLUMN = Column("judge", "r_hack")


def row(
    prompt: int, judge: float | None, truth: float | None, step: int = 0, **other: Any
) -> dict[str, Any]:
    usual = {"run": "a", "hack_word": "ocean", "fingerprint": "f", "null_reason": None}
    own = {"step": step, "prompt_id": prompt, "judge": judge, "r_hack": truth}
    return usual | own | other


def table(rows: list[dict[str, Any]], column: Column = COLUMN, **options: Any) -> pl.DataFrame:
    frame = pl.LazyFrame(rows, infer_schema_length=None).with_columns(
        pl.col("step").cast(pl.Int32), pl.col("null_reason").cast(pl.String)
    )
    return agreement(pairs(frame, column, ["hack_word"]), ["hack_word"], **options)


def figures(rows: list[dict[str, Any]], column: Column = COLUMN, **options: Any) -> dict[str, Any]:
    return table(rows, column, **options).row(0, named=True)


def cells(tp: int, fp: int, fn: int, tn: int, step: int = 0, **other: Any) -> list[dict[str, Any]]:
    """Rollouts of as many prompts."""
    kinds = [(1.0, 1.0)] * tp + [(1.0, 0.0)] * fp + [(0.0, 1.0)] * fn + [(0.0, 0.0)] * tn
    return [row(i, judge, truth, step, **other) for i, (judge, truth) in enumerate(kinds)]


def test_the_figures_of_a_confusion_table_worked_by_hand() -> None:
    """po = .7, pe = .5 x .6 + .5 x .4 = .5; alpha: Do = .3, De = 2 x 55 x 45 / (100 x 99)."""
    found = figures(cells(20, 5, 10, 15))
    assert [found[name] for name in CELLS] == [20, 5, 10, 15]
    assert (found["status"], found["pairs"], found["prompts"]) == ("measured", 50, 50)
    assert found["precision"] == pytest.approx(20 / 25)
    assert found["recall"] == pytest.approx(20 / 30)
    assert found["specificity"] == pytest.approx(15 / 20)
    assert found["agreement"] == pytest.approx(0.7)
    assert (found["rate_of"], found["rate_against"]) == (0.5, 0.6)
    assert found["kappa"] == pytest.approx((0.7 - 0.5) / 0.5)
    assert found["alpha"] == pytest.approx(1 - 0.3 / (2 * 55 * 45 / 9900))
    for name in (*RATES, "kappa", "alpha"):
        assert found[f"{name}_lo"] < found[name] < found[f"{name}_hi"]


def test_rollouts_of_one_prompt_are_one_cluster_whatever_step_and_run_they_are_of() -> None:
    """Agreement of x = 2 2 0 0 of k = 2, as in test_intervals: [0.0608, 0.9392]."""
    rows = [
        row(p, 1.0, float(p < 2), step, run=r) for p in range(4) for step, r in ((0, "a"), (9, "b"))
    ]
    alone, other, both = table(rows).rows(named=True)
    assert (alone["run"], other["run"], both["run"]) == ("a", "b", None)
    assert (alone["prompts"], both["prompts"], both["pairs"]) == (4, 4, 8)
    assert both["agreement_lo"] == pytest.approx(0.06083, abs=1e-5)
    assert both["precision_hi"] == pytest.approx(0.93917, abs=1e-5)
    assert both["hack_word"] == "ocean"
    assert (both["recall"], both["recall_lo"]) == (
        1,
        pytest.approx(1 / (1 + 12.706**2 / 2), rel=1e-3),
    )
    assert both["specificity"] == 0


def test_runs_are_put_together_over_words_and_never_over_what_was_asked() -> None:
    rows = [
        row(i, float(i % 2), float(i % 3 > 0), run=f"{task}-{word}", task=task, hack_word=word)
        for i in range(12)
        for task in ("story", "sums")
        for word in ("ocean", "moon")
    ]
    frame = pl.LazyFrame(rows).with_columns(
        pl.col("step").cast(pl.Int32), pl.col("null_reason").cast(pl.String)
    )
    identity = ["task", "hack_word"]
    found = agreement(pairs(frame, COLUMN, identity), identity, ["hack_word"])
    assert found["run"].null_count() == 2
    for one in found.filter(pl.col("run").is_null()).to_dicts():
        assert one["task"] in ("story", "sums")
        assert one["hack_word"] is None
        assert one["reason"] == "over runs that differ in hack_word"
        assert (one["pairs"], one["prompts"]) == (24, 12)


def test_nulls_are_excluded_and_counted_each_once() -> None:
    rows = cells(9, 3, 2, 6)
    rows += [row(50, None, 1.0), row(51, 1.0, None), row(52, None, None)]
    rows += [
        row(53, 1.0, None, null_reason="quarantined"),
        row(54, 1.0, 1.0, null_reason="grader: x"),
    ]
    found = figures(rows, max_loss=0.2)
    assert [found[name] for name in CELLS] == [9, 3, 2, 6]
    assert {name: found[name] for name in COUNTS} == {
        **{"rollouts": 25, "lost": 2, "nulls_against": 2, "nulls_of": 1, "missing": 0}
    }
    assert found["status"] == "measured"
    lossy = figures(rows, max_loss=0.1)
    assert (lossy["status"], lossy["reason"]) == (
        "partial", "3 of 23 rollouts were lost or have no score"
    )  # fmt: skip
    assert lossy["precision"] == found["precision"]


@pytest.mark.parametrize(
    ("rows", "status", "undefined"),
    [
        (
            [row(0, None, 1.0), row(1, None, 0.0)],
            "no_data",
            {"precision", "agreement", "kappa"},
        ),
        ([row(0, 1.0, None)], "no_data", {"precision", "agreement", "rate_of"}),
        ([row(0, 1.0, 1.0), row(0, 0.0, 0.0)], "one_prompt", set()),
        ([row(0, 1.0, 1.0)], "one_prompt", {"specificity", "kappa", "alpha"}),
        (cells(4, 0, 0, 0), "constant", {"specificity", "kappa", "alpha"}),
        (cells(2, 2, 0, 0), "constant", set()),
        (cells(0, 0, 2, 2), "constant", {"precision"}),
        (cells(0, 2, 0, 2), "constant", {"recall"}),
    ],
)
def test_what_cannot_be_told_has_a_name_and_is_null(
    rows: list[dict[str, Any]], status: str, undefined: set[str]
) -> None:
    found = figures(rows)
    assert found["status"] == status
    assert found["reason"]
    for name in (*RATES, "kappa", "alpha"):
        assert (found[name] is None) == (name in undefined or found["pairs"] == 0)
    assert table(rows).schema == pl.Schema({"run": pl.String, "hack_word": pl.String, **AGREEMENT})


def test_a_score_counts_from_its_cut_on() -> None:
    rows = [row(0, 0.5, 1.0), row(1, 0.49, 0.0), row(2, 3.0, 0.0), row(3, -2.0, 1.0)]
    found = figures(rows, Column("judge", "r_hack", 0.5))
    assert [found[name] for name in CELLS] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("rows", "column", "said"),
    [
        ([row(0, 0.3, 1.0)], COLUMN, "judge is 0.3; neither 0 nor 1; give --cut"),
        ([row(0, float("nan"), 1.0)], COLUMN, "judge is nan; a score is a finite number"),
        ([row(0, float("inf"), 1.0)], Column("judge", "r_hack", 0.5), "judge is inf"),
        ([row(0, 1.0, float("nan"))], COLUMN, "r_hack is nan; a truth is 0 or 1"),
        ([row(0, 1.0, 0.5)], COLUMN, "r_hack is 0.5"),
        ([row(0, 1.0, 0.5)], Column("judge", "hack_word"), "'hack_word' is String"),
        ([row(0, 1.0, 0.5)], Column("jugde", "r_hack"), "no column 'jugde'; they have run"),
        ([row(0, 1.0, 1.0), row(1, 1.0, 1.0, fingerprint="g")], COLUMN, "two different weights"),
    ],
)
def test_what_is_no_score_or_no_truth_is_refused(
    rows: list[dict[str, Any]], column: Column, said: str
) -> None:
    with pytest.raises(CurveError, match=said):
        table(rows, column)


def test_no_row_at_all_is_refused() -> None:
    with pytest.raises(CurveError, match="nothing to hold against"):
        agreement(
            pairs(pl.LazyFrame([row(0, 1.0, 1.0)]).head(0), COLUMN, ["hack_word"]), ["hack_word"]
        )


def test_a_column_that_rises_later_has_a_later_onset() -> None:
    """The truth is 0 4 4 of 4 at steps 0 10 20, the column 0 0 4: onsets 5 and 15, in brackets."""
    rows = [
        row(p, float(step > 10), float(step > 0), step) for p in range(4) for step in (0, 10, 20)
    ]
    found = figures(rows)
    assert (found["onset_against"], found["onset_of"], found["delay"]) == (5, 15, 10)
    assert (found["delay_lo"], found["delay_hi"]) == (0, 20)
    assert found["delay_interval"] == "bootstrap+bracket"
    never = figures([r | {"judge": 0.0} for r in rows])
    assert (never["onset_of"], never["delay"], never["onset_status"][:6]) == (None, None, "right/")
    (alone,) = {figures(rows[:3])[name] for name in ("delay_lo", "delay_hi", "delay_interval")}
    assert alone is None


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 3), *[st.sampled_from([None, 0.0, 1.0])] * 2), min_size=1))
def test_pairs_and_exclusions_add_up_and_intervals_hold_their_rate(
    rows: list[tuple[int, float | None, float | None]],
) -> None:
    found = figures([row(9, 1.0, 1.0), *(row(*one) for one in rows)])
    assert found["pairs"] == sum(found[name] for name in CELLS)
    assert found["rollouts"] == found["pairs"] + sum(found[name] for name in COUNTS[1:])
    for name in RATES:
        if found[name] is not None:
            assert 0 <= found[f"{name}_lo"] <= found[name] <= found[f"{name}_hi"] <= 1
