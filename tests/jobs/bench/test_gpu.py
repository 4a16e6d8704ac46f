"""The prediction by hand, and that it can be made where only an engine is installed."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.bench import gpu

ROOT = Path(__file__).parents[3]
MEASURED = gpu.Measured(start=60.0, swap=2.0, rollouts=64.0, tokens=16_384.0, memory=2**31)
LIGHT = (
    "jobs.bench, pipeline.rollout, pipeline.checkpoints.identity, "
    "pipeline.engines.hf, pipeline.engines.vllm.start"
)


def test_one_gpu_takes_every_checkpoint_after_one_start() -> None:
    # 2 s + 1,024 / 64 s = 18 s each; 5,000 of them and 60 s are 90,060 s
    assert gpu.hours(MEASURED, 1) == pytest.approx(90_060 / 3600)


def test_eight_gpus_take_an_eighth_each_and_all_start() -> None:
    # 625 x 18 s + 60 s
    assert gpu.hours(MEASURED, 8) == pytest.approx(11_310 / 3600)


def test_the_gpu_with_one_checkpoint_more_decides() -> None:
    assert gpu.hours(MEASURED, 8, checkpoints=9) == gpu.hours(MEASURED, 1, checkpoints=2)


@given(st.integers(1, 64), st.integers(1, 10_000), st.floats(0, 100))
def test_no_number_of_gpus_is_faster_than_its_share_of_the_work(
    gpus: int, checkpoints: int, swap: float
) -> None:
    measured = replace(MEASURED, start=0.0, swap=swap)
    alone = gpu.hours(measured, 1, checkpoints)
    together = gpu.hours(measured, gpus, checkpoints)
    assert alone / gpus <= together * (1 + 1e-9)
    assert together <= alone


def test_rows_say_the_engine_the_sweep_and_the_number_of_gpus() -> None:
    rows = {row["name"]: (row["value"], row["unit"]) for row in gpu.rows("hf", MEASURED, 256)}
    sweep = "hf: predicted: 5,000 checkpoints x 1,024 rollouts x 256 tokens"
    assert rows[f"{sweep}, GPUs 1"] == (pytest.approx(25.01667, abs=1e-4), "h")
    assert rows[f"{sweep}, GPUs 8"] == (pytest.approx(3.14167, abs=1e-4), "h")
    assert rows["hf: swap"] == (2000.0, "ms")
    assert rows["hf: peak memory"] == (2.0, "GiB")


def test_an_engine_that_takes_what_it_is_given_has_no_peak() -> None:
    rows = gpu.rows("vllm", replace(MEASURED, memory=None), 256)
    assert not [row for row in rows if "memory" in row["name"]]


def test_the_shape_has_the_size_that_its_name_says() -> None:
    shape, config = gpu.Shape(), gpu.Shape().config()
    attention = 2 * shape.hidden * (config.num_attention_heads + config.num_key_value_heads) * 64
    mlp = 3 * shape.hidden * config.intermediate_size
    weights = shape.vocabulary * shape.hidden + shape.layers * (attention + mlp)
    assert 1.2e9 < weights < 1.3e9


def test_sizes_that_no_model_has_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main(["--hidden", "100"])
    assert "multiple of 64" in capsys.readouterr().err


def test_nothing_around_the_engines_needs_more_than_python() -> None:
    names = "{m.partition('.')[0] for m in sys.modules}"
    program = (
        f"import sys; before = {names}; import {LIGHT}; "
        f"print(*{names} - before - sys.stdlib_module_names - {{'jobs', 'pipeline', 'hackbait'}})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []
