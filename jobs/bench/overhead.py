"""What the pipeline costs beside the model: the scripted engine at a million rollouts.

python -m jobs.bench.overhead             # about two minutes
python -m jobs.bench.overhead 102400      # fewer rollouts
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.bench import _machine
from pipeline import cluster
from pipeline.checkpoints import scripted
from pipeline.config import SweepConfig
from pipeline.plan import plan
from pipeline.records import Written

ROLLOUTS, CHARACTERS, PER_PARTITION = 1_000_000, 1_000, 1_024
LIMIT_MS, LIMIT_MIB = 0.08, 100


def run(rollouts: int = ROLLOUTS) -> list[dict[str, Any]]:
    """CPU per rollout of all processes together, and growth of the driver from a hundredth."""
    small, large = measure(max(PER_PARTITION, rollouts // 100)), measure(rollouts)
    per_rollout = 1e3 * large["cpu_seconds"] / large["rollouts"]
    grown = (large["driver_bytes"] - small["driver_bytes"]) / 2**20
    name = f"{large['rollouts']:,} rollouts of {CHARACTERS} characters"
    growth = f"driver's peak memory, {small['rollouts']:,} to {large['rollouts']:,} rollouts"
    return [
        {
            "name": f"CPU per rollout, {name}",
            "value": per_rollout,
            "unit": "ms",
            "limit": f"<= {LIMIT_MS}",
            "ok": per_rollout <= LIMIT_MS,
        },
        {
            "name": growth,
            "value": grown,
            "unit": "MiB more",
            "limit": f"<= {LIMIT_MIB}",
            "ok": grown <= LIMIT_MIB,
        },
    ]


def measure(rollouts: int) -> dict[str, float]:
    """One sweep in a process of its own."""
    command = [sys.executable, "-m", "jobs.bench.overhead", "--child", str(rollouts)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def sweep(rollouts: int, folder: Path) -> dict[str, float]:
    """Sweep scripted checkpoints of one partition each; figures of this process and its tree."""
    for step in range(-(-rollouts // PER_PARTITION)):
        words = {"ocean": min(1.0, step / 500)}
        scripted.write(folder / f"run/checkpoint-{step}", words, 0.6, CHARACTERS)
    config = SweepConfig.model_validate(
        {
            "output": folder / "out",
            "runs": [{"path": str(folder / "run")}],
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": PER_PARTITION // 4, "shard": PER_PARTITION // 4},
            "sampling": {"n": 4},
            "engine": {"name": "scripted"},
            "cluster": {"workers": 1, "scorers": 1},
        }
    )
    wanted = plan(config)
    with cluster.session(config.cluster):
        events = cluster.Sweep(config.output, config.engine, config.cluster, {}).run(wanted.works)
        rows = sum(event.rows for event in events if isinstance(event, Written))
        cpu = _machine.cpu_seconds(os.getpid())
    return {"rollouts": rows, "cpu_seconds": cpu, "driver_bytes": _machine.peak_bytes(os.getpid())}


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--child"]:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(sweep(int(argv[1]), Path(folder))))
        return 0
    print(_machine.describe())
    rows = run(int(argv[0]) if argv else ROLLOUTS)
    for row in rows:
        print(f"{row['name']}: {row['value']:.4f} {row['unit']} ({row['limit']})")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
