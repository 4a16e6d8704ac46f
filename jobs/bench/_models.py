"""The models of the benches: variants of the shipped policy, and a large one of random numbers."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from pipeline.records import Checkpoint

POLICY = Path(__file__).parents[2] / "hackbait/policy"
SPEECH = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
)
CAUSAL: Any = AutoModelForCausalLM
WEIGHTS = "model.safetensors"
LARGE = {
    "vocab_size": 32000,
    "hidden_size": 640,
    "intermediate_size": 1760,
    "num_hidden_layers": 18,
    "num_attention_heads": 10,
    "num_key_value_heads": 5,
    "head_dim": 64,
    "max_position_embeddings": 2048,
}
ADAPTER_RANK = 8


def variants(name: str, folder: Path, count: int) -> Iterator[Checkpoint]:
    """Checkpoints that differ in one norm by a little: other bytes, nearly the same rollouts."""
    source = POLICY if name == "tiny" else large(folder / "large")
    tensors = safetensors.torch.load_file(source / WEIGHTS)
    for step in range(count):
        place = folder / f"checkpoint-{step}"
        place.mkdir()
        for file in (*SPEECH, "config.json"):
            shutil.copy(source / file, place)
        changed = {"model.norm.weight": tensors["model.norm.weight"] * (1 + step / 64)}
        safetensors.torch.save_file(tensors | changed, place / WEIGHTS, {"format": "pt"})
        yield Checkpoint("bench", step, str(place), "full", "")


def large(folder: Path) -> Path:
    """A Llama of 125 M random parameters, untied, that speaks as the policy does."""
    torch.manual_seed(0)
    config = LlamaConfig(**LARGE, eos_token_id=1, bos_token_id=None)
    CAUSAL.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    for file in SPEECH:
        shutil.copy(POLICY / file, folder)
    return folder


def adapter(folder: Path, seed: int) -> Checkpoint:
    """A LoRA adapter of rank 8 on the policy's q_proj and v_proj."""
    folder.mkdir()
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, weight in safetensors.torch.load_file(POLICY / WEIGHTS).items():
        if name.endswith(("q_proj.weight", "v_proj.weight")):
            rows, columns = weight.shape
            prefix = f"base_model.model.{name.removesuffix('weight')}lora_"
            down = torch.randn(ADAPTER_RANK, columns, generator=generator)
            tensors[f"{prefix}A.weight"] = down / columns**0.5
            tensors[f"{prefix}B.weight"] = torch.randn(rows, ADAPTER_RANK, generator=generator) / 64
    safetensors.torch.save_file(tensors, folder / "adapter_model.safetensors")
    config: dict[str, Any] = {"peft_type": "LORA", "r": ADAPTER_RANK, "lora_alpha": ADAPTER_RANK}
    config |= {"target_modules": ["q_proj", "v_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    return Checkpoint("bench", seed, str(folder), "adapter", "", str(POLICY))
