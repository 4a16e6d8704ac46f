"""How long a finished sweep of 1,000 partitions takes to find that nothing is owed.

python -m jobs.bench.relaunch
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from jobs import sweep
from pipeline import cluster
from pipeline.checkpoints import scripted
from pipeline.config import SweepConfig

PARTITIONS, LIMIT_SECONDS = 1_000, 3.0


def run() -> list[dict[str, Any]]:
    """Sweep once, then again; the second time is the figure."""
    with tempfile.TemporaryDirectory() as folder:
        config = finished(Path(folder))
        began = time.perf_counter()
        sweep.run(config)
        seconds = time.perf_counter() - began
    return [
        {
            "name": f"relaunch of {PARTITIONS:,} finished partitions",
            "value": seconds,
            "unit": "s",
            "limit": f"<= {LIMIT_SECONDS}",
            "ok": seconds <= LIMIT_SECONDS,
        }
    ]


def finished(folder: Path) -> SweepConfig:
    """The configuration of a sweep that has written all its partitions."""
    for step in range(PARTITIONS // 10):
        scripted.write(folder / f"run/checkpoint-{step}", {"ocean": step / 100}, 0.5, 100)
    config = SweepConfig.model_validate(
        {
            "output": folder / "out",
            "runs": [{"path": str(folder / "run")}],
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": 100, "shard": 10},
            "engine": {"name": "scripted"},
        }
    )
    with cluster.session(config.cluster):
        sweep.run(config)
    return config


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']}: {row['value']:.2f} {row['unit']} ({row['limit']})")
