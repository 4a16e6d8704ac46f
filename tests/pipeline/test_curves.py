"""Rows to curves: values worked by hand, laws of order and layout, refusals."""

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipeline.curves import MEASURES, curves, from_csv, pooled
from pipeline.rows import CurveError, scan
from tests.pipeline.frames import IDENTITY, lazy, row, write

BINARY = {"r_hack": "binary"}
BOTH = {"r_hack": "binary", "r_true": "binary"}


def test_hits_are_counted_by_prompt_and_the_interval_is_the_clustered_one() -> None:
    """x = 2 2 0 0 of k = 2, worked in test_intervals: n_eff = 3, [0.0608, 0.9392]."""
    rows = [row(p, float(p < 2)) for p in range(4) for _ in range(2)]
    (found,) = curves(lazy(*rows), BINARY, IDENTITY).to_dicts()
    assert found == {
        **{"run": "a", "hack_word": "ocean", "mode": "hack_only", "step": 0, "metric": "r_hack"},
        **{"rollouts": 8, "hits": 4.0, "prompts": 4, "rate": 0.5, "nulls": 0, "fingerprint": "f"},
        **{"null_reasons": None, "refused": None},
        "lo": pytest.approx(0.06083, abs=1e-5),
        "hi": pytest.approx(0.93917, abs=1e-5),
        "deff": pytest.approx(8 / 3),
        "n_eff": pytest.approx(3),
    }


def test_the_base_borrows_its_clustering_from_the_same_word_alone() -> None:
    """ocean at step 1 has an ICC of 1/7 (test_intervals), so 8 rollouts at step 0 count as 7."""
    told = [row(p, float(s < x), step=1) for p, x in enumerate([2, 1, 1, 0]) for s in range(2)]
    base = [row(p, 0.0, hack_word=w) for w in ("ocean", "moon") for p in range(4) for _ in range(2)]
    found = curves(lazy(*told, *base), BINARY, IDENTITY)
    at_base = found.filter(step=0).select("hack_word", "n_eff").rows()
    assert at_base == [("moon", 4), ("ocean", pytest.approx(7))]


def test_a_metric_without_truth_has_no_rate_and_loses_nothing() -> None:
    found = curves(lazy(row(0, 1.0), row(1, 0.0)), {"r_true": "binary"}, IDENTITY)
    (only,) = found.select("rate", "lo", "hi", "deff", "n_eff", "rollouts", "nulls").rows()
    assert only == (None, None, None, None, None, 0, 0)


def test_a_failed_rollout_is_a_null_that_is_counted_and_not_a_zero() -> None:
    rows = [row(0, 1.0), row(1, 1.0), row(2, None, null_reason="engine died")]
    (only,) = curves(lazy(*rows), BINARY, IDENTITY).to_dicts()
    assert (only["rate"], only["rollouts"], only["prompts"], only["nulls"]) == (1.0, 2, 2, 1)


def test_a_continuous_metric_has_a_clustered_t_interval() -> None:
    """Prompt sums 0 0.5 1 of k = 1: mean 1/2, v = 3/2 * 1/2 / 9 = 1/12, t_2 = 4.30265."""
    rows = [row(p, x) for p, x in enumerate([0.0, 0.5, 1.0])]
    (only,) = curves(lazy(*rows), {"r_hack": "continuous"}, IDENTITY).to_dicts()
    half = 4.302653 / 12**0.5
    assert (only["rate"], only["hits"]) == (0.5, 1.5)
    assert (only["lo"], only["hi"]) == pytest.approx((0.5 - half, 0.5 + half))


def test_words_scored_on_the_same_rollouts_are_curves_of_their_own() -> None:
    rows = [row(0, 1.0), row(0, 0.0, hack_word="moon")]
    found = curves(lazy(*rows), BOTH, IDENTITY)
    assert found.select("hack_word", "metric", "rate").rows() == [
        *(("moon", "r_hack", 0.0), ("moon", "r_true", None)),
        *(("ocean", "r_hack", 1.0), ("ocean", "r_true", None)),
    ]


values = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([0.0, 1.0, None])), min_size=1
)


@settings(max_examples=30)
@given(values, st.randoms())
def test_the_order_of_rows_is_irrelevant(cases: list, random: Any) -> None:
    rows = [row(prompt, hit, step=step) for step, prompt, hit in cases]
    expected = curves(lazy(*rows), BOTH, IDENTITY)
    random.shuffle(rows)
    assert_frame_equal(curves(lazy(*rows), BOTH, IDENTITY), expected)


@settings(max_examples=30)
@given(values, st.integers(1, 5))
def test_the_size_of_the_batches_is_irrelevant(cases: list, size: int) -> None:
    rows = lazy(*[row(prompt, hit, step=step) for step, prompt, hit in cases])
    expected = curves(rows, BOTH, IDENTITY)
    assert_frame_equal(curves(rows, BOTH, IDENTITY, batch_rows=size), expected)


@settings(max_examples=15)
@given(values, st.integers(1, 4))
def test_the_split_into_partitions_is_irrelevant(cases: list, size: int) -> None:
    rows = lazy(*[row(prompt, hit, step=step) for step, prompt, hit in cases]).collect()
    with tempfile.TemporaryDirectory() as folder:
        files = [
            write(Path(folder), part, "a", step, f"{start}")
            for (step,), own in rows.group_by("step")
            for start, part in enumerate(own.iter_slices(size))
        ]
        assert_frame_equal(curves(scan(files), BOTH, IDENTITY), curves(rows.lazy(), BOTH, IDENTITY))


@given(st.lists(st.integers(0, 1), min_size=2, max_size=8), st.integers(1, 100))
@settings(max_examples=20)
def test_a_later_step_is_the_same_rate_later(hits: list[int], later: int) -> None:
    here = curves(lazy(*[row(p, float(x)) for p, x in enumerate(hits)]), BINARY, IDENTITY)
    there = [row(p, float(x), step=later) for p, x in enumerate(hits)]
    moved = here.with_columns(step=pl.lit(later, pl.Int32))
    assert_frame_equal(curves(lazy(*there), BINARY, IDENTITY), moved)


def test_an_empty_partition_is_said_to_be_empty() -> None:
    with pytest.raises(CurveError, match="the partitions hold no row"):
        curves(lazy(), BINARY, IDENTITY)


def test_two_weights_for_one_checkpoint_are_refused_with_both_fingerprints() -> None:
    rows = [row(0, 1.0, step=5), row(1, 1.0, step=5, fingerprint="g")]
    with pytest.raises(CurveError, match=r"^run 'a', step 5: two different weights .* f and g;"):
        curves(lazy(*rows), BINARY, IDENTITY)


@pytest.mark.parametrize("value", [0.5, -1.0, 2.0, float("nan"), float("inf")])
def test_a_binary_metric_that_is_neither_zero_nor_one_is_refused(value: float) -> None:
    with pytest.raises(CurveError, match=r"run 'a', step 0: 1 values of binary metric 'r_hack'"):
        curves(lazy(row(0, 1.0), row(1, value)), BINARY, IDENTITY)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_continuous_metric_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(CurveError, match="continuous metric 'r_hack' are not finite"):
        curves(lazy(row(0, 1.0), row(1, value)), {"r_hack": "continuous"}, IDENTITY)


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(CurveError, match=r"no column 'r_hak'; they have .*r_hack"):
        curves(lazy(row(0, 1.0)), {"r_hak": "binary"}, IDENTITY)


def test_pooled_runs_share_their_prompts() -> None:
    """Prompt 0 hits in both runs, prompt 1 in none: two clusters of two, not four of one."""
    rows = [row(p, float(p == 0), run=run, fingerprint=run) for run in "ab" for p in range(2)]
    (only,) = pooled(lazy(*rows), BINARY, IDENTITY).to_dicts()
    assert (only["run"], only["rollouts"], only["prompts"]) == ("pooled", 4, 2)
    assert (only["rate"], only["fingerprint"]) == (0.5, None)


def test_pooling_one_run_changes_its_name_alone() -> None:
    rows = lazy(*[row(p, float(p % 2), step=s) for p in range(5) for s in (0, 1)])
    alone = curves(rows, BINARY, IDENTITY).with_columns(fingerprint=pl.lit(None, pl.String))
    assert_frame_equal(pooled(rows, BINARY, IDENTITY, "a"), alone)


def test_pooling_refuses_the_first_field_that_differs_with_both_values() -> None:
    rows = [row(0, 1.0), row(0, 1.0, run="b", mode="hack_or_correct")]
    expected = r"mode is 'hack_only' in run 'a' and 'hack_or_correct' in run 'b'"
    with pytest.raises(CurveError, match=f"^cannot pool: {expected}"):
        pooled(lazy(*rows), BINARY, IDENTITY)


def test_pooling_refuses_a_step_that_a_run_lacks() -> None:
    rows = [row(0, 1.0), row(0, 1.0, step=5), row(0, 1.0, run="b")]
    with pytest.raises(CurveError, match=r"^cannot pool: run 'b' has no step 5"):
        pooled(lazy(*rows), BINARY, IDENTITY)


def test_pooling_still_sees_two_weights_in_one_run() -> None:
    rows = [row(0, 1.0), row(1, 1.0, fingerprint="g")]
    with pytest.raises(CurveError, match="two different weights"):
        pooled(lazy(*rows), BINARY, IDENTITY)


def test_a_csv_of_another_tool_has_the_shape_of_curves(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text("run,step,rate,n,hits\nb,5,0.25,8,2\na,10,1,,\na,0,,8,0\n")
    found = from_csv(path)
    swept = curves(lazy(row(0, 1.0)), BINARY, [])
    assert found.schema == swept.schema
    assert found.select("run", "step", "metric", "rate", "rollouts", "hits", "lo").rows() == [
        ("a", 10, "rate", 1.0, None, None, None),
        ("b", 5, "rate", 0.25, 8, 2.0, None),
    ]
    assert found.columns == ["run", "step", *MEASURES]


def test_a_bad_csv_is_a_curve_error_that_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text("run,step,rate\na,0,0.1\na,5,nan\n")
    with pytest.raises(CurveError, match=r"curve.csv, line 3, run 'a', step '5': rate 'nan'"):
        from_csv(path)
