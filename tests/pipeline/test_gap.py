"""The proxy-true gap: values worked by hand, an oracle, and null where there is no truth."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from pipeline import curves, gap
from pipeline.intervals import mover
from pipeline.nulls import refuse
from pipeline.tallies import by_prompts

BOTH = {"r_hack": "binary", "r_true": "binary"}


def arrays(*values: float) -> list[np.ndarray]:
    return [np.array([value]) for value in values]


@pytest.mark.parametrize(
    ("correlation", "low", "high"),
    [
        (0.0, 0.8 - 0.02**0.5, 0.8 + (0.06**2 + 0.05**2) ** 0.5),
        (1.0, 0.8, 0.8 + 0.01),
        (-1.0, 0.8 - 0.2, 0.8 + 0.11),
    ],
)
def test_the_interval_adds_squares_less_what_the_two_rates_share(
    correlation: float, low: float, high: float
) -> None:
    """0.9 [0.8, 0.96] less 0.1 [0.05, 0.2]: distances 0.1 and 0.1 below, 0.06 and 0.05 above."""
    found = mover(arrays(0.9, 0.8, 0.96), arrays(0.1, 0.05, 0.2), np.array([correlation]))
    assert (found[0][0], found[1][0]) == pytest.approx((low, high))


@given(st.integers(0, 40), st.integers(0, 40))
def test_without_correlation_it_is_newcombes_interval_of_statsmodels(a: int, b: int) -> None:
    sides = [arrays(x / 40, *proportion_confint(x, 40, 0.05, "wilson")) for x in (a, b)]
    low, high = mover(*sides, np.zeros(1))
    expected = confint_proportions_2indep(a, 40, b, 40, "newcomb", "diff", 0.05)
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9)


def rows(pairs: list[tuple[float | None, float | None]], step: int = 0) -> pl.DataFrame:
    """Rollouts of one checkpoint as (r_hack, r_true), two a prompt."""
    records: list[dict[str, Any]] = [
        {"run": "a", "step": step, "fingerprint": "f", "prompt_id": i // 2, "null_reason": None}
        | {"r_hack": hack, "r_true": true}
        for i, (hack, true) in enumerate(pairs)
    ]
    schema = {"step": pl.Int32, "null_reason": pl.String, "r_hack": pl.Float64}
    return pl.DataFrame(records, schema_overrides=schema | {"r_true": pl.Float64})


def gaps(frame: pl.DataFrame, max_loss: float = 1.0) -> pl.DataFrame:
    lazy = frame.lazy()
    tallies = by_prompts(lazy, list(BOTH), [])
    kept = refuse(curves.curves(lazy, BOTH, []), max_loss)
    return gap.rows(kept, "r_hack", "r_true", [tallies["r_hack"], tallies["r_true"]])


def test_prompts_that_are_hacked_or_solved_are_wholly_opposed() -> None:
    """r_hack 1 1 0 0 and r_true 0 0 1 1 by prompt: gap 0, correlation -1, each [0.0608, 0.9392]."""
    frame = rows([(1, 0)] * 4 + [(0, 1)] * 4)
    tallies = by_prompts(frame.lazy(), list(BOTH), [])
    found = gap.correlations(tallies["r_hack"], tallies["r_true"], ["run", "step"])
    assert found["correlation"].to_list() == [-1]
    (only,) = gaps(frame).select("metric", "rate", "lo", "hi", "rollouts", "prompts").rows()
    assert only[0] == "gap"
    assert only[1:4] == pytest.approx((0, -0.87834, 0.87834), abs=1e-4)
    assert only[4:] == (8, 4)


def test_without_truth_the_gap_is_null_and_not_the_proxy() -> None:
    frame = pl.concat([rows([(1, None)] * 8), rows([(1, 0)] * 8, step=5)])
    assert gaps(frame).select("step", "rate", "lo").rows()[0] == (0, None, None)
    assert gaps(frame)["rate"].to_list() == [None, 1.0]


def test_a_gap_of_a_refused_rate_is_refused() -> None:
    frame = rows([(1, 0)] * 8 + [(1, None)] * 8)
    lost = frame.with_columns(null_reason=pl.when(pl.col("r_true").is_null()).then(pl.lit("judge")))
    (only,) = gaps(lost, 0.1).select("rate", "lo", "refused").rows()
    assert only[:2] == (None, None)
    assert only[2].startswith("50.0 % of 16 rollouts lost (judge 8)")


def test_the_gap_has_the_shape_of_the_curves_it_is_joined_to() -> None:
    frame = rows([(1, 0), (0, 1), (1, 1), (0, 0)])
    lazy = curves.curves(frame.lazy(), BOTH, [])
    joined = curves.join([lazy, gaps(frame)])
    assert joined["metric"].to_list() == ["r_hack", "r_true", "gap"]
    assert joined.schema == lazy.schema
