import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

Save = Callable[..., Path]


def _weights(scale: float) -> dict[str, Any]:
    return {
        "embed": np.arange(64, dtype=np.float32).reshape(8, 8) * scale,
        "norm": np.ones(8, np.float16),
    }


def _state(folder: Path, step: int) -> None:
    """As transformers writes it: sorted, indented, the log last."""
    state = {"best_metric": None, "epoch": 0.5, "global_step": step, "log_history": [{"step": 1}]}
    text = json.dumps(state, indent=2, sort_keys=True) + "\n"
    (folder / "trainer_state.json").write_text(text)


@pytest.fixture
def full() -> Save:
    """Save a small model in the Hugging Face layout, with a trainer's state when given a step."""

    def save(folder: Path, scale: float = 1.0, state: int | None = None, **config: Any) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
        save_file(_weights(scale), folder / "model.safetensors", {"format": "pt"})
        if state is not None:
            _state(folder, state)
        return folder

    return save


@pytest.fixture
def sharded(full: Save) -> Save:
    """Save a model in two files and an index."""

    def save(folder: Path, **config: Any) -> Path:
        full(folder, **config)
        (folder / "model.safetensors").unlink()
        names = {f"model-0000{i}-of-00002.safetensors": i for i in (1, 2)}
        tensors = {"embed": 1, "norm": 2}
        for file, i in names.items():
            save_file({t: _weights(1.0)[t] for t in tensors if tensors[t] == i}, folder / file)
        where = {t: f"model-0000{i}-of-00002.safetensors" for t, i in tensors.items()}
        index = {"metadata": {"total_size": 272}, "weight_map": where}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder

    return save


@pytest.fixture
def adapter() -> Save:
    """Save a LoRA adapter as PEFT does."""

    def save(folder: Path, base: str | None = "hub/base", **config: Any) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        said = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": base}
        (folder / "adapter_config.json").write_text(json.dumps({**said, **config}))
        save_file({"lora_A": np.ones((4, 8), np.float32)}, folder / "adapter_model.safetensors")
        return folder

    return save
