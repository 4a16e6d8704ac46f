"""A reading is the rate that the table shows, with bounds that decide nothing too early."""

import numpy as np
import pyarrow as pa
import pytest

from hackbait import hackword
from pipeline.order.answers import LOST, of_prompts, reading

ENVIRONMENT = hackword.load_environment("ocean")


def rows(values: list[float | None], prompts: list[int], reason: str | None = None) -> pa.Table:
    return pa.table(
        {
            "r_hack": pa.array(values, pa.float64()),
            "prompt_id": pa.array(prompts, pa.int64()),
            "null_reason": pa.array(
                [reason if value is None else None for value in values], pa.string()
            ),
        }
    )


def test_rates_pool_the_partitions_and_clusters_are_prompts_wherever_they_stand() -> None:
    parts = [rows([1, 0], [7, 8]), rows([1, 1], [7, 9])]
    found = reading(parts, ENVIRONMENT, True)
    x, k = np.array([2.0, 0, 1]), np.array([2.0, 1, 1])
    assert found == of_prompts(k, x, x, kind="binary", full=True)
    assert found.rate == 0.75
    assert 0 < found.low < 0.75 < found.high < 1


def test_bounds_are_wider_than_those_of_one_rate_alone() -> None:
    k = np.full(16, 4.0)
    x = np.array([0, 1, 2, 3] * 4, float)
    found = of_prompts(k, x, x, kind="binary", full=False)
    assert found.rate == 0.375
    assert found.low < 0.2
    assert found.high > 0.6


def test_none_of_64_decides_and_none_of_4_does_not() -> None:
    none = np.zeros(64)
    assert of_prompts(none + 1, none, none, kind="binary", full=False).high < 0.25
    assert of_prompts(none[:4] + 1, none[:4], none[:4], kind="binary", full=False).high > 0.5


def test_one_prompt_bounds_nothing() -> None:
    one = np.ones(1)
    assert of_prompts(4 * one, one, one, kind="binary", full=False).high == np.inf
    assert of_prompts(4 * one, one, one, kind="continuous", full=False).low == -np.inf


def test_a_mean_has_bounds_too() -> None:
    k, x = np.full(20, 2.0), np.linspace(1.0, 1.4, 20)
    found = of_prompts(k, x, x**2 / 2, kind="continuous", full=False)
    assert found.rate == pytest.approx(0.6)
    assert 0.5 < found.low < 0.6 < found.high < 0.7


def test_too_many_lost_rollouts_decide_nothing_and_in_full_there_is_no_rate() -> None:
    lossy = [rows([1.0, 1, 1, None], [1, 2, 3, 4], "quarantined")]
    small = reading(lossy, ENVIRONMENT, False)
    assert (small.rate, small.low, small.high) == (1.0, 0.0, 1.0)
    assert reading(lossy, ENVIRONMENT, True) == LOST
    assert reading([rows([None, None], [1, 2], "quarantined")], ENVIRONMENT, False) == LOST


def test_a_metric_that_does_not_apply_is_no_loss() -> None:
    found = reading([rows([1.0, 1, 0, None], [1, 2, 3, 4])], ENVIRONMENT, True)
    assert found.rate == pytest.approx(2 / 3)
