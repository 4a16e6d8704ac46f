"""Sums by prompt: counted without nulls, apart by identity, adding up to their curve."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipeline.curves import curves
from pipeline.rows import CurveError
from pipeline.tallies import by_prompt
from tests.pipeline.frames import IDENTITY, lazy, row

BINARY = {"r_hack": "binary"}


def test_prompts_are_counted_without_their_nulls_and_apart_by_identity() -> None:
    told = [row(7, 1.0), row(7, None, null_reason="lost"), row(3, 0.0), row(3, 1.0), row(5, None)]
    moon = [row(3, 1.0, hack_word="moon")]
    found = by_prompt(lazy(*told, *moon), "r_hack", IDENTITY)
    assert found.columns == ["run", *IDENTITY, "step", "prompt_id", "k", "x"]
    assert found.select("hack_word", "prompt_id", "k", "x").rows() == [
        ("moon", 3, 1, 1.0),
        ("ocean", 3, 2, 1.0),
        ("ocean", 7, 1, 1.0),
    ]


def test_prompts_of_two_weights_are_refused_as_their_curve_is() -> None:
    with pytest.raises(CurveError, match="two different weights answered"):
        by_prompt(lazy(row(0, 1.0), row(0, 1.0, fingerprint="g")), "r_hack", IDENTITY)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from([0.0, 1.0, None])),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=20)
def test_prompts_add_up_to_their_curve(cells: list) -> None:
    rows = lazy(*(row(prompt, hit, step=step) for step, prompt, hit in cells))
    whole = curves(rows, BINARY, IDENTITY).filter(pl.col("rollouts") > 0)
    sums = by_prompt(rows, "r_hack", IDENTITY).group_by("step").agg(pl.col("k", "x").sum())
    expected = whole.select("step", k="rollouts", x="hits")
    assert_frame_equal(sums.sort("step"), expected)
