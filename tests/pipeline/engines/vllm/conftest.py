"""Tiny checkpoints with the shipped policy's tokenizer, made on the spot."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from hackbait.environment import Case
from pipeline.records import Checkpoint

POLICY = Path(__file__).parents[4] / "hackbait/policy"
SPEECH = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
)
VOCABULARY: int = json.loads((POLICY / "config.json").read_text("utf-8"))["vocab_size"]
SIZE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}

NewCheckpoint = Callable[..., Checkpoint]


@pytest.fixture(scope="session")
def new_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> NewCheckpoint:
    """A full checkpoint of an architecture, every parameter random, the biases too."""

    def new(kind: str = "llama", tied: bool = True, seed: int = 0, **more: Any) -> Checkpoint:
        torch.manual_seed(seed)
        config = AutoConfig.for_model(kind, tie_word_embeddings=tied, **(SIZE | more))
        model: Any = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(1.0 if "norm" in name else 0.0, 0.2)
        folder = tmp_path_factory.mktemp(f"{kind}-{seed}-")
        model.save_pretrained(folder)
        for file in SPEECH:
            shutil.copy(POLICY / file, folder)
        return Checkpoint("run", seed, str(folder), "full", "")

    return new


@pytest.fixture(scope="session")
def new_adapter(tmp_path_factory: pytest.TempPathFactory) -> NewCheckpoint:
    """A LoRA adapter on a checkpoint, as PEFT lays it out."""

    def new(
        base: Checkpoint,
        seed: int = 0,
        rank: int = 4,
        targets: Sequence[str] = ("q_proj", "v_proj"),
        **more: Any,
    ) -> Checkpoint:
        folder = tmp_path_factory.mktemp(f"adapter-{seed}-")
        generator = torch.Generator().manual_seed(seed)
        tensors = {}
        for name, weight in load_file(Path(base.path) / "model.safetensors").items():
            module = name.removesuffix(".weight")
            if module.rpartition(".")[2] in targets:
                rows, columns = weight.shape
                prefix = f"base_model.model.{module}.lora_"
                tensors[f"{prefix}A.weight"] = torch.randn(rank, columns, generator=generator) / 4
                tensors[f"{prefix}B.weight"] = torch.randn(rows, rank, generator=generator) / 4
        save_file(tensors, folder / "adapter_model.safetensors")
        config = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "bias": "none"}
        config |= {"target_modules": list(targets), "base_model_name_or_path": base.path, **more}
        (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")
        return Checkpoint("run", seed, str(folder), "adapter", "", base.path)

    return new


@pytest.fixture
def altered(tmp_path: Path) -> Callable[..., Checkpoint]:
    """A copy of a checkpoint whose tensors were changed; None takes one away."""

    def alter(checkpoint: Checkpoint, changes: Mapping[str, torch.Tensor | None]) -> Checkpoint:
        folder = tmp_path / f"altered-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(checkpoint.path, folder)
        tensors = load_file(folder / "model.safetensors") | changes
        kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        save_file(kept, folder / "model.safetensors", {"format": "pt"})
        return Checkpoint("run", 99, str(folder), "full", "")

    return alter


@pytest.fixture(scope="session")
def cases() -> list[Case]:
    """Questions of unlike lengths with a common beginning."""
    return [
        Case("asked", i, ({"role": "user", "content": f"What is 639 + {i * 37}?{' now' * i}"},), "")
        for i in range(12)
    ]
