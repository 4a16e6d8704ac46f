"""What `onset curves` costs beside a bare polars scan and group-by of the same columns.

python -m jobs.bench.curves          # 5,000 partitions, about a minute
python -m jobs.bench.curves 500      # fewer
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from jobs.bench import _machine
from pipeline import curves
from pipeline.rows import scan

PARTITIONS, STEPS, PROMPTS, SAMPLES = 5_000, 100, 256, 4
ROUNDS = 3
LIMIT_RATIO, LIMIT_MIB = 3.0, 1024
METRICS = {"r_hack": "binary", "r_true": "binary"}
IDENTITY = {
    "env_version": "1",
    "task": "add3digit",
    "seed": 999,
    "hack_word": "ocean",
    "mode": "hack_only",
    "grader": "current",
    "grader_fingerprint": "0" * 64,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "max_tokens": 256,
    "sweep_seed": 0,
}


def run(partitions: int = PARTITIONS) -> list[dict[str, Any]]:
    """Both ways in turn, each in a process of its own; medians of the rounds."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), partitions)
        rounds = [[measure(way, folder) for way in ("bare", "ours")] for _ in range(ROUNDS)]
    cpu, wall = (median(o[of] / b[of] for b, o in rounds) for of in ("cpu", "wall"))
    peak = max(ours["peak"] for _, ours in rounds) / 2**20
    name = f"curves of {partitions:,} x {PROMPTS * SAMPLES:,} rows"
    return [
        _row(f"CPU, {name}", cpu, "x bare", LIMIT_RATIO),
        _row(f"time, {name}", wall, "x bare", LIMIT_RATIO),
        _row(f"peak memory, {name}", peak, "MiB", LIMIT_MIB),
    ]


def _row(name: str, value: float, unit: str, limit: float) -> dict[str, Any]:
    found = {"name": name, "value": value, "unit": unit, "limit": f"<= {limit:g}"}
    return found | {"ok": value <= limit}


def write(folder: Path, partitions: int) -> None:
    """Partitions of one checkpoint each, STEPS a run, rates rising along the run."""
    rng = np.random.default_rng(0)
    prompts = np.repeat(rng.integers(-(2**63), 2**63 - 1, PROMPTS), SAMPLES)
    constant = [pl.lit(value).alias(name) for name, value in IDENTITY.items()]
    for number in range(partitions):
        run, step = divmod(number, STEPS)
        rate = 1 / (1 + np.exp((40 + run - step) / 8))
        draws = rng.random((2, len(prompts)))
        scores = {"r_hack": draws[0] < rate, "r_true": draws[1] < 0.6}
        rows = pl.DataFrame({"prompt_id": prompts, **scores}).with_columns(
            *constant,
            pl.col(*scores).cast(pl.Float64),
            fingerprint=pl.lit(f"{number:064x}"),
            null_reason=pl.lit(None, pl.String),
        )
        path = folder / f"run=ocean%2Fs{run}" / f"step={step}" / "key.parquet"
        path.parent.mkdir(parents=True)
        rows.write_parquet(path)


def bare(rows: pl.LazyFrame) -> pl.DataFrame:
    """The cheapest group-by that reads the same columns."""
    metrics = [pl.col(metric).sum() for metric in METRICS]
    others = [pl.col("null_reason").count(), pl.col("fingerprint", "prompt_id").first()]
    keys = ["run", *IDENTITY, "step"]
    return rows.group_by(keys).agg(pl.len(), *metrics, *others).collect(engine="streaming")


def ours(rows: pl.LazyFrame) -> pl.DataFrame:
    return curves.curves(rows, METRICS, list(IDENTITY))


WAYS: dict[str, Callable[[pl.LazyFrame], pl.DataFrame]] = {"bare": bare, "ours": ours}


def measure(way: str, folder: str) -> dict[str, float]:
    """CPU and wall seconds, and peak bytes, of one way in a process of its own."""
    command = [sys.executable, "-m", "jobs.bench.curves", "--child", way, folder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def child(way: str, folder: Path) -> dict[str, float]:
    files = sorted(folder.glob("run=*/step=*/*.parquet"))
    cpu, wall = time.process_time(), time.perf_counter()
    WAYS[way](scan(files))
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return spent | {"peak": _machine.peak_bytes(os.getpid())}


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--child"]:
        print(json.dumps(child(argv[1], Path(argv[2]))))
        return 0
    print(_machine.describe())
    rows = run(int(argv[0]) if argv else PARTITIONS)
    for row in rows:
        print(f"{row['name']}: {row['value']:.2f} {row['unit']} ({row['limit']})")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
