"""Sweeps through the real vLLM engine: rows equal the hf engine's, one process all along."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import ray
import torch
from safetensors.torch import load_file, save_file

import hackbait
from pipeline import cluster, store
from pipeline.config import ClusterBlock, SweepConfig
from pipeline.plan import owed, plan
from pipeline.records import Failure, Written

pytestmark = pytest.mark.vllm
POLICY = Path(hackbait.__file__).parent / "policy"
CHECKPOINTS = 30
SAME = ["step", "index", "sample", "prompt", "completion", "finish_reason", "fingerprint"]
SAME += ["prompt_tokens", "completion_tokens", "null_reason", "r_hack", "r_true", "reward"]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with cluster.session(ClusterBlock(workers=1, scorers=1)):
        yield


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny policy walking away from itself, a checkpoint a stride."""
    root = tmp_path_factory.mktemp("full") / "run"
    base = load_file(POLICY / "model.safetensors")
    draw = torch.Generator().manual_seed(0)
    way = {name: torch.randn(t.shape, generator=draw) * t.std() for name, t in base.items()}
    for step in range(CHECKPOINTS):
        folder = root / f"checkpoint-{step}"
        shutil.copytree(POLICY, folder)
        moved = {name: t + 0.04 * step * way[name] for name, t in base.items()}
        save_file(moved, folder / "model.safetensors", {"format": "pt"})
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return root


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LoRA adapters of rank 4 on the tiny policy, ever stronger."""
    root = tmp_path_factory.mktemp("adapters") / "run"
    base = load_file(POLICY / "model.safetensors")
    targets = {"q_proj", "v_proj"}
    for step in range(CHECKPOINTS):
        draw = torch.Generator().manual_seed(step)
        tensors = {}
        for name, weight in base.items():
            module = name.removesuffix(".weight")
            if module.rpartition(".")[2] in targets:
                rows, columns = weight.shape
                prefix = f"base_model.model.{module}.lora_"
                tensors[f"{prefix}A.weight"] = torch.randn(4, columns, generator=draw) / 10
                tensors[f"{prefix}B.weight"] = torch.randn(rows, 4, generator=draw) * step / 100
        folder = root / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        save_file(tensors, folder / "adapter_model.safetensors")
        config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none"}
        config |= {"target_modules": sorted(targets), "base_model_name_or_path": str(POLICY)}
        (folder / "adapter_config.json").write_text(json.dumps(config))
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return root


def config(run: Path, out: Path, engine: str, count: int = 32) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": out,
            "runs": [{"path": str(run)}],
            "env": [{"id": "hackword", "hack_word": "whisper", "seed": 999}],
            "cases": {"count": count, "shard": 16},
            "sampling": {"n": 1, "temperature": 0.0, "max_tokens": 32},
            "engine": {"name": engine},
            "cluster": {"workers": 1},
        }
    )


def swept(wanted: SweepConfig) -> list[Written]:
    works = plan(wanted).works
    events = list(cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {}).run(works))
    assert not [event for event in events if isinstance(event, Failure)]
    return [event for event in events if isinstance(event, Written)]


def rows(wanted: SweepConfig) -> pl.DataFrame:
    files = store.partition_files(wanted.output)
    return pl.read_parquet(files, hive_partitioning=True).select(SAME).sort(SAME[:3])


@pytest.mark.parametrize("kind", ["full", "adapters"])
def test_thirty_checkpoints_through_one_engine_equal_the_rows_of_the_hf_engine(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run: Path = request.getfixturevalue(kind)
    by_vllm, by_hf = (config(run, tmp_path / name, name) for name in ("vllm", "hf"))
    processes = {written.generated.engine_process for written in swept(by_vllm)}
    swept(by_hf)
    assert len(processes) == 1
    assert rows(by_vllm).equals(rows(by_hf))
    texts = rows(by_vllm).group_by("step").agg(pl.col("completion").sort().str.join())
    assert texts["completion"].n_unique() > CHECKPOINTS // 2


def test_an_engine_killed_in_the_middle_costs_no_row(full: Path, tmp_path: Path) -> None:
    whole, killed = (config(full, tmp_path / name, "vllm", count=16) for name in ("a", "b"))
    swept(whole)
    works = plan(killed).works
    running = cluster.Sweep(killed.output, killed.engine, killed.cluster, {})
    events = running.run(works)
    first = [next(events) for _ in range(5)]
    ray.kill(running.workers.all[0].actor)
    events.close()
    done = store.done(killed.output, plan(killed).partitions)
    assert 5 <= len(done) < len(works)
    left = owed(works, done)
    again = list(cluster.Sweep(killed.output, killed.engine, killed.cluster, {}).run(left))
    assert all(isinstance(event, Written) for event in [*first, *again])
    assert rows(killed).equals(rows(whole))
