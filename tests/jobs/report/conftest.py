"""Outputs of the scripted engine to be put on a page."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from jobs import report
from pipeline import store
from pipeline.checkpoints import scripted
from pipeline.config import ReportConfig, SweepConfig
from pipeline.report.study import Study

SweepHere = Callable[..., object]
Runs = dict[str, tuple[float, float]]
FOUR: Runs = {"early": (0.7, 0.9), "mid-s0": (0.1, 0.9), "mid-s1": (0.05, 0.8), "never": (0, 0.2)}


def output(folder: Path, sweep_here: SweepHere, runs: Runs, checkpoints: int, n: int) -> Path:
    """A sweep of runs whose rates of `ocean` rise from the first to the second number."""
    last = checkpoints - 1
    for run, (low, high) in runs.items():
        for i in range(checkpoints):
            words = {"ocean": min(1.0, low + (high - low) * i / last)}
            scripted.write(folder / "runs" / run / f"checkpoint-{10 * i}", words, 1 - i / 10, 80)
    said = {
        "output": str(folder / "out"),
        "runs": [{"path": str(folder / "runs")}],
        "env": [{"id": "hackword", "hack_word": "ocean"}],
        "cases": {"count": 24, "shard": 24},
        "sampling": {"n": n},
        "engine": {"name": "scripted"},
    }
    config = SweepConfig.model_validate(said)
    with store.writing(config.output, tomli_w.dumps(said)):
        sweep_here(config)
    return folder / "out"


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory, sweep_here: SweepHere) -> Path:
    """Four runs of five checkpoints: one early, two that cross, one that never does."""
    return output(tmp_path_factory.mktemp("swept"), sweep_here, FOUR, 5, 4)


@pytest.fixture(scope="session")
def study(swept: Path) -> Study:
    config = ReportConfig(path=swept)
    return report.study(config, report.measured(config))
