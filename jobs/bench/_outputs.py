"""Sweeps to be killed: made alike time and again, and what their outputs should hold."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import safetensors.torch
import tomli_w

from pipeline import store
from pipeline.checkpoints import scripted
from pipeline.config import SweepConfig
from pipeline.plan import plan

POLICY = Path(__file__).parents[2] / "hackbait/policy"
KEY = ("run", "step", "index", "sample")


@dataclass(frozen=True, slots=True)
class Size:
    """Of a sweep."""

    checkpoints: int
    cases: int
    shard: int
    n: int

    @property
    def rows(self) -> int:
        return self.checkpoints * self.cases * self.n


def configured(folder: Path, runs: Path, engine: Mapping[str, Any], size: Size) -> SweepConfig:
    """A sweep into the folder, whose sweep.toml says so."""
    said = {
        "output": str(folder / "out"),
        "runs": [{"path": str(runs)}],
        "env": [{"id": "hackword", "hack_word": "ocean"}],
        "cases": {"count": size.cases, "shard": size.shard},
        "sampling": {"n": size.n, "temperature": 0.0, "max_tokens": 24},
        "engine": dict(engine),
        "cluster": {"workers": 2, "scorers": 2},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.toml").write_text(tomli_w.dumps(said))
    return SweepConfig.model_validate(said)


def checkpoints(folder: Path, engine: str, count: int) -> Path:
    """A run of so many: scripts, or copies of the policy, each with other weights."""
    for step in range(count):
        at = folder / f"checkpoint-{step}"
        if at.exists():
            continue
        if engine == "scripted":
            scripted.write(at, {"ocean": step / count, "midnight": 0.3}, 0.5, 300)
            continue
        shutil.copytree(POLICY, at)
        tensors = safetensors.torch.load_file(at / "model.safetensors")
        scaled = {name: tensor * (1 + 0.02 * step) for name, tensor in tensors.items()}
        safetensors.torch.save_file(scaled, at / "model.safetensors", {"format": "pt"})
        # The trainer writes it last: without it a checkpoint may be under way.
        (at / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return folder


def table_hash(out: Path) -> tuple[int, str]:
    """Rows, and a hash of all columns of all of them in order of key."""
    frame = pl.read_parquet(out / "rollouts" / "hackword").sort(KEY)
    hashed = hashlib.blake2b(digest_size=16)
    for part in frame.select(sorted(frame.columns)).iter_slices():
        hashed.update(part.write_ndjson().encode())
    return len(frame), hashed.hexdigest()


def problems(config: SweepConfig, out: Path, expected: tuple[int, str]) -> list[str]:
    """How what is there differs from what should be."""
    planned = {store.partition_path(out, p) for p in plan(config).partitions}
    there = {path for path in (out / "rollouts").rglob("*") if path.is_file()}
    left = {path.name for path in (out / "staging").iterdir()} - {"lock"}
    found, wrong = table_hash(out), []
    if there != planned:
        wrong.append(f"{len(there - planned)} strange files, {len(planned - there)} missing")
    if left:
        wrong.append(f"staging holds {sorted(left)}")
    if found != expected:
        wrong.append(f"the table is {found}, not {expected}")
    return wrong
