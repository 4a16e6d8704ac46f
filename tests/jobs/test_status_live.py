"""`onset status` beside a sweep that goes on, and after its driver was killed."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.status import look
from pipeline import store
from pipeline.checkpoints import scripted
from pipeline.holdings import StoreError

pytestmark = pytest.mark.ray
ROOT = Path(__file__).parents[2]


def awaited(out: Path, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """How the sweep stands once partitions are written and others run."""
    while process.poll() is None:
        try:
            found = look(out)
        except StoreError:
            found = {"state": "", "runs": []}
        states = {name: sum(run[name] for run in found["runs"]) for name in ("done", "running")}
        if found["state"] == "running" and all(states.values()) and found["rows_per_second"]:
            return found
        time.sleep(0.2)
    raise AssertionError(f"the sweep ended, with exit code {process.returncode}")


def test_a_sweep_is_told_while_it_runs_and_after_its_driver_was_killed(tmp_path: Path) -> None:
    # However fast the machine is, each worker hangs before long and the sweep goes on.
    for step in range(0, 600, 2):
        scripted.write(tmp_path / f"run/checkpoint-{step}", {"ocean": step / 1000}, 0.5, 300)
    out = tmp_path / "out"
    (tmp_path / "sweep.toml").write_text(
        f'output = "{out}"\n[[runs]]\npath = "{tmp_path / "run"}"\n'
        '[[env]]\nid = "hackword"\nhack_word = "ocean"\n'
        '[cases]\ncount = 512\nshard = 32\n[engine]\nname = "chaos"\nhangs = 0.05\n'
    )
    command = [sys.executable, "-m", "jobs", "sweep", "@", str(tmp_path / "sweep.toml")]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        found = awaited(out, process)
        assert found["eta_seconds"] > 0
        assert sum(run["partitions"] for run in found["runs"]) == 300 * 16
    finally:
        process.kill()
        process.wait()
    after = look(out)
    assert after["state"] == "stopped (killed)"
    (run,) = after["runs"]
    assert run["running"] == run["failed"] == 0
    assert run["done"] == len(store.partition_files(out))
    assert run["done"] + run["owed"] == 300 * 16
