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


def test_a_metric_is_never_later_than_itself() -> None:
    mine = climb(40, np.arange(40) + 1)
    (found,) = delays(rows(mine, mine), "of", "against", []).to_dicts()
    assert (found["delay"], found["delay_lo"], found["delay_hi"]) == (0, 0, 0)
    assert found["delay_interval"] == "bootstrap"
    assert found["onset_of"] == found["onset_against"] == 20


def test_prompts_are_resampled_for_both_alike() -> None:
    """Each prompt turns a grid step later in one: the shift is surer than either onset."""
    at = np.arange(40) * 0.7 + 1
    (found,) = delays(rows(climb(40, at + 10), climb(40, at)), "of", "against", []).to_dicts()
    assert found["delay"] == pytest.approx(10)
    assert 9.9 < found["delay_lo"] <= 10 <= found["delay_hi"] < 10.1


def test_a_crossing_that_resamples_may_lack_leaves_that_side_open() -> None:
    low = climb(40, np.where(np.arange(40) < 21, np.arange(40) + 5, 99))
    (found,) = delays(rows(low, climb(40, np.arange(40) + 1)), "of", "against", []).to_dicts()
    assert found["delay"] > 0
    assert found["delay_lo"] is not None
    assert found["delay_hi"] is None


@pytest.mark.parametrize("at", [0, 99])
def test_an_onset_that_is_only_bounded_has_no_delay(at: int) -> None:
    (found,) = delays(
        rows(climb(40, np.full(40, at)), climb(40, np.arange(40) + 1)), "of", "against", []
    ).to_dicts()
    assert found["onset_status"] == ("left/crossed" if at == 0 else "right/crossed")
    assert (found["delay"], found["delay_lo"], found["delay_interval"]) == (None, None, None)
