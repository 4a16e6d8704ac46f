"""How much later one metric crosses than another: hand-worked, paired by prompt, unbounded."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.delay import delays

STEPS = (0, 10, 20, 30, 40)


def rows(of: np.ndarray[Any, Any], against: np.ndarray[Any, Any]) -> pl.LazyFrame:
    """Metrics (prompts, steps), one rollout each."""
    n, m = of.shape
    place = {"run": "a", "fingerprint": "f", "prompt_id": np.repeat(np.arange(n), m)}
    steps = pl.Series(np.tile(STEPS[:m], n), dtype=pl.Int32)
    values = {"of": of.ravel(), "against": against.ravel(), "null_reason": None, "step": steps}
    return pl.LazyFrame(place | values).with_columns(pl.col("null_reason").cast(pl.String))


def climb(n: int, at: Any) -> np.ndarray[Any, Any]:
    """Prompt i says 1 from its own step on."""
    return (np.asarray(STEPS)[None] >= np.asarray(at)[:, None]).astype(float) * np.ones((n, 1))


def test_a_metric_is_later_than_itself_by_what_the_lines_may_bend_alone() -> None:
    mine = climb(40, np.arange(40) + 1)
    (found,) = delays(rows(mine, mine), "of", "against", []).to_dicts()
    # The resamples agree; either line may bend by 10 x .25^2 / 2 steps between its checkpoints.
    assert (found["delay"], found["delay_lo"], found["delay_hi"]) == (0, -0.625, 0.625)
    assert found["delay_interval"] == "bootstrap"
    assert found["onset_of"] == found["onset_against"] == 20


def test_prompts_are_resampled_for_both_alike() -> None:
    """Each prompt turns a grid step later in one: the shift is surer than either onset."""
    at = np.arange(40) * 0.7 + 1
    (found,) = delays(rows(climb(40, at + 10), climb(40, at)), "of", "against", []).to_dicts()
    assert found["delay"] == pytest.approx(10)
    bends = 2 * 10 * 0.375**2 / 2  # 13 of 40 prompts before the bracket, 28 after
    assert 9.9 - bends < found["delay_lo"] <= 10 - bends
    assert 10 + bends <= found["delay_hi"] < 10.1 + bends


def test_a_crossing_that_resamples_may_lack_leaves_that_side_open() -> None:
    low = climb(40, np.where(np.arange(40) < 21, np.arange(40) + 5, 99))
    (found,) = delays(rows(low, climb(40, np.arange(40) + 1)), "of", "against", []).to_dicts()
    assert found["delay"] > 0
    assert found["delay_lo"] is not None
    assert found["delay_hi"] is None


@pytest.mark.parametrize(("late", "open_side"), [(0, "delay_hi"), (1, "delay_lo")])
def test_a_crossing_that_is_not_confirmed_leaves_the_side_open_on_which_it_may_be_later(
    late: int, open_side: str
) -> None:
    """75 of 128 prompts for two checkpoints, then 62: no three are surely over one half; and so few
    resamples miss it at both that the quantiles alone would bound the delay."""
    sure = climb(128, np.arange(128) / 4)
    weak = np.zeros((128, 5))
    weak[:75, 1:3], weak[:62, 3:] = 1, 1
    sides = [sure, sure]
    sides[late] = weak
    (found,) = delays(rows(*sides), "of", "against", []).to_dicts()
    assert found["onset_status"].split("/")[late] == "unconfirmed"
    assert {side for side in ("delay_lo", "delay_hi") if found[side] is None} == {open_side}


@pytest.mark.parametrize("at", [0, 99])
def test_an_onset_that_is_only_bounded_has_no_delay(at: int) -> None:
    (found,) = delays(
        rows(climb(40, np.full(40, at)), climb(40, np.arange(40) + 1)), "of", "against", []
    ).to_dicts()
    assert found["onset_status"] == ("left/crossed" if at == 0 else "right/crossed")
    assert (found["delay"], found["delay_lo"], found["delay_interval"]) == (None, None, None)
