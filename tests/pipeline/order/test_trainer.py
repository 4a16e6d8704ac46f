"""The trainer's log is a first guess: read where it can be, and never trusted."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.order import trainer


def entry(step: int, reward: float, hack: float | None = None) -> dict[str, Any]:
    own = {} if hack is None else {"rewards/r_hack/mean": hack, "rewards/r_hack/std": 0.1}
    return {"step": step, "loss": 0.0, "reward": reward, "reward_std": 0.4, **own}


def test_the_metrics_own_mean_is_preferred_to_the_whole_reward() -> None:
    log = [entry(1, 0.9, 0.1), entry(2, 1.0, 0.2), {"step": 2, "train_runtime": 3.0}]
    assert trainer.rewards({"log_history": log}, "r_hack") == [(1, 0.1), (2, 0.2)]
    assert trainer.rewards({"log_history": log}, "r_other") == [(1, 0.9), (2, 1.0)]
    assert trainer.rewards({"log_history": [{"step": 1, "loss": 2.0}]}, "r_hack") == []


def test_a_crossing_is_interpolated_and_one_that_the_next_step_denies_is_passed_over() -> None:
    assert trainer.crossing([(5, 0.1), (10, 0.4), (15, 0.6), (20, 0.9)], 0.5) == 12.5
    assert trainer.crossing([(1, 0.1), (2, 0.6), (3, 0.3), (4, 0.7), (5, 0.8)], 0.5) == 3.5
    assert trainer.crossing([(1, 0.9), (2, 0.9)], 0.5) == 1.0
    assert trainer.crossing([(1, 0.1), (2, 0.9)], 0.5) is None
    assert trainer.crossing([], 0.5) is None


def test_the_log_lies_in_a_checkpoint_or_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-9"
    folder.mkdir()
    assert trainer.hint(str(folder), "r_hack", 0.5) is None
    log = [entry(step, step / 10) for step in range(10)]
    (tmp_path / trainer.STATE).write_text(json.dumps({"log_history": log}))
    assert trainer.hint(str(folder), "r_hack", 0.5) == 5.0
    (folder / trainer.STATE).write_text(json.dumps({"log_history": log[:3]}))
    assert trainer.hint(str(folder), "r_hack", 0.5) is None
    assert trainer.hint("s3://bucket/run/checkpoint-9", "r_hack", 0.5) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "{" * 100_000,
        '{"log_history": 3}',
        '{"log_history": [3, null, [], {}]}',
        '{"log_history": [{"step": "4", "reward": 1}, {"step": true, "reward": 1}]}',
        '{"log_history": [{"step": -1, "reward": 1}, {"step": 1e300, "reward": 1}]}',
        '{"log_history": [{"step": 4, "reward": NaN}, {"step": 5, "reward": 1e999}]}',
        f'{{"log_history": [{{"step": 4, "reward": {10**400}}}, {{"step": 5, "reward": 1e99}}]}}',
        '{"log_history": [{"step": 4, "reward": null}, {"step": 5, "reward": "x"}]}',
    ],
)
def test_a_hostile_log_is_no_log(tmp_path: Path, content: str) -> None:
    (tmp_path / trainer.STATE).write_text(content)
    assert trainer.hint(str(tmp_path), "r_hack", 0.5) is None


def test_a_folder_or_a_huge_file_in_its_place_is_no_log(tmp_path: Path) -> None:
    (tmp_path / trainer.STATE).mkdir()
    assert trainer.hint(str(tmp_path), "r_hack", 0.5) is None
    inner = tmp_path / "checkpoint-1"
    inner.mkdir()
    with (inner / trainer.STATE).open("wb") as file:
        file.truncate(2**40)
    assert trainer.hint(str(inner), "r_hack", 0.5) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["log_history", "step", "reward"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["log_history", "x"]), json_values))
def test_whatever_json_it_holds_steps_and_rates_are_finite_and_ascend(said: dict[str, Any]) -> None:
    points = trainer.rewards(said, "r_hack")
    assert [step for step, _ in points] == sorted({step for step, _ in points})
    found = trainer.crossing(points, 0.5)
    assert found is None or points[0][0] <= found <= points[-1][0]
