import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.engines.hf import weights
from pipeline.engines.http import claim
from pipeline.records import Checkpoint, CheckpointError

LINEAR = "model.layers.0.mlp.up_proj"


def full(folder: Path, seed: int = 0) -> Path:
    folder.mkdir()
    tensor = np.random.default_rng(seed).random((6, 4), np.float32)
    save_file({f"{LINEAR}.weight": tensor}, folder / "model.safetensors")
    return folder


def sharded(folder: Path) -> Path:
    folder.mkdir()
    names = {}
    for i in (2, 1):
        save_file({f"t{i}": np.full(5, i, np.float32)}, folder / f"model-{i}.safetensors")
        names[f"t{i}"] = f"model-{i}.safetensors"
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": names}), "utf-8")
    return folder


def adapter(folder: Path, alpha: float = 8, **more: bool) -> Path:
    folder.mkdir()
    pair = {
        f"base_model.model.{LINEAR}.lora_A.weight": np.ones((2, 4), np.float32),
        f"base_model.model.{LINEAR}.lora_B.weight": np.ones((6, 2), np.float32),
    }
    save_file(pair, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": alpha, **more}
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    return folder


def claimed(folder: Path, base: Path | None = None) -> str:
    kind = "adapter" if (folder / "adapter_config.json").exists() else "full"
    return claim.fingerprint(Checkpoint("run", 1, str(folder), kind, "", base and str(base)))


@pytest.mark.parametrize("new", [full, sharded])
def test_the_fingerprint_is_the_one_engine_hf_loads(tmp_path: Path, new: object) -> None:
    assert callable(new)
    folder = new(tmp_path / "checkpoint-1")
    assert claimed(folder) == weights.read(folder).fingerprint


def test_an_adapters_fingerprint_is_that_of_engine_hf_merging_it(tmp_path: Path) -> None:
    base = full(tmp_path / "base")
    folders = [
        adapter(tmp_path / "a"),
        adapter(tmp_path / "b", alpha=16),
        adapter(tmp_path / "c", use_rslora=True),
    ]
    merged = [weights.merge(weights.read(base), folder).fingerprint for folder in folders]
    assert [claimed(folder, base) for folder in folders] == merged
    assert len({*merged}) == 3


def test_a_rewritten_file_is_read_again(tmp_path: Path) -> None:
    folder = full(tmp_path / "checkpoint-1")
    first = claimed(folder)
    assert claimed(folder) == first
    shutil.rmtree(folder)
    assert claimed(full(tmp_path / "checkpoint-1", seed=1)) != first


def test_what_cannot_be_claimed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors: No such file"):
        claimed(tmp_path / "nowhere")
    lonely = adapter(tmp_path / "lonely")
    with pytest.raises(CheckpointError, match=r"its base \(not named\) is no folder here"):
        claimed(lonely)
    with pytest.raises(CheckpointError, match="its base org/model is no folder here"):
        claimed(lonely, Path("org/model"))
