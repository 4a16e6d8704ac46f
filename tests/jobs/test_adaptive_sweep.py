"""`onset sweep` in the adaptive order on a real Ray: few checkpoints, one session, any cut."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from jobs import sweep
from jobs.curves import measure
from jobs.status import look
from pipeline import cluster, onset, store
from pipeline.checkpoints import scripted
from pipeline.config import ClusterBlock, CurvesConfig, SweepConfig
from pipeline.plan import plan
from pipeline.verify import verify

pytestmark = pytest.mark.ray
ROOT = Path(__file__).parents[2]
CROSSINGS = {"early": 23.3, "late": 71.8}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with cluster.session(ClusterBlock(workers=2, scorers=1)):
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of 101 checkpoints whose rates rise within about ten steps."""
    folder = tmp_path_factory.mktemp("runs")
    for run, at in CROSSINGS.items():
        for step in range(101):
            rate = 1 / (1 + math.exp((at - step) / 2.2))
            scripted.write(folder / run / f"checkpoint-{step}", {"ocean": rate}, 0.5, 60)
    return folder


def config(runs: Path, output: Path, **order: object) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": output,
            "runs": [{"path": str(runs)}],
            "env": [{"id": "hackword", "task": "story", "hack_word": "ocean", "seed": 999}],
            "cases": {"count": 128, "shard": 32},
            "sampling": {"n": 2},
            "engine": {"name": "scripted"},
            "cluster": {"workers": 2},
            "order": {"strategy": "adaptive", **order},
        }
    )


def onsets(output: Path) -> dict[str, tuple[float, float, float]]:
    """Onset with its interval by run."""
    found = measure(CurvesConfig(path=output))
    prompts = found.prompts["r_hack"]
    table = onset.onsets(found.frame, "r_hack", found.identity, prompts=prompts)
    assert table["confirmed"].to_list() == [True, True]
    rows = table.select("run", "onset", "onset_lo", "onset_hi").rows()
    return {run: (at, low, high) for run, at, low, high in rows}


def files(output: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in store.partition_files(output)}


def test_few_checkpoints_tell_the_onsets_and_a_full_sweep_takes_over_each_partition(
    runs: Path, tmp_path: Path
) -> None:
    adaptive = config(runs, tmp_path / "out")
    assert sweep.run(adaptive) == 0
    found, few = look(tmp_path / "out"), files(tmp_path / "out")
    assert len(few) < len(plan(adaptive).partitions) / 5
    assert [len(one["steps"]) < 25 for one in found["searched"]] == [True, True]
    assert [one["owed"] + one["failed"] for one in found["runs"]] == [0, 0]
    assert any("shorter than 25 steps would be missed" in note for note in found["notes"])
    assert verify(tmp_path / "out").is_sound
    told = onsets(tmp_path / "out")
    assert sweep.run(adaptive) == 0
    assert files(tmp_path / "out") == few
    assert sweep.run(config(runs, tmp_path / "out", strategy="full")) == 0
    whole = files(tmp_path / "out")
    assert len(whole) == len(plan(adaptive).partitions)
    assert {path: whole[path] for path in few} == few
    assert look(tmp_path / "out")["searched"] == []
    for run, (of_all, _, _) in onsets(tmp_path / "out").items():
        found_by_few, low, high = told[run]
        assert low <= of_all <= high
        assert low <= CROSSINGS[run] <= high
        assert found_by_few == pytest.approx(of_all, abs=0.5)


def test_a_launch_that_was_cut_off_goes_on_with_the_same_choice(runs: Path, tmp_path: Path) -> None:
    assert sweep.run(config(runs, tmp_path / "whole")) == 0
    cut = config(runs, tmp_path / "out")
    said = cut.model_dump(mode="json", exclude_none=True)
    (tmp_path / "sweep.toml").write_text(tomli_w.dumps(said))
    assert _cut_off(tmp_path, signal.SIGINT, 6) == 130
    assert _cut_off(tmp_path, signal.SIGKILL, 25) == -signal.SIGKILL
    assert sweep.run(cut) == 0
    assert {p.name for p in files(tmp_path / "out")} == {p.name for p in files(tmp_path / "whole")}


def _cut_off(folder: Path, number: int, goal: int) -> int:
    """Launch, and send the signal once so many partitions are there; the exit code."""
    command = [sys.executable, "-m", "jobs.sweep", "@", str(folder / "sweep.toml")]
    launched = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
    )
    try:
        while launched.poll() is None and len(files(folder / "out")) < goal:
            time.sleep(0.05)
        launched.send_signal(number)
        return launched.wait(60)
    finally:
        launched.kill()
