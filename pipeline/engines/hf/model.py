"""The live model: what its configuration demands of weights, and how it comes to be."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.initialization import no_init_weights

from hackbait.environment import canonical
from pipeline.engines.hf.chat import refusing
from pipeline.records import CheckpointError

CAUSAL: Any = AutoModelForCausalLM
"""Untyped as the library has it."""
IDLE_SETTINGS = {
    *("_name_or_path", "architectures", "dtype", "transformers_version", "use_cache"),
    *("bos_token_id", "eos_token_id", "pad_token_id"),
}
"""Entries of config.json that leave the forward as it is."""


LAYERS = 256
"""A configuration may ask for so many before its weights are counted."""


def read_config(folder: Path) -> Any:
    """The model's configuration, from this folder alone. Raises CheckpointError."""
    if not (folder / "config.json").exists():
        raise CheckpointError(f"{folder}: no config.json; save the model with save_pretrained")
    with refusing(f"{folder}: its config.json cannot be used"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if getattr(config, "quantization_config", None):
        raise CheckpointError(f"{folder}: quantised weights; save it in bfloat16 or float32")
    return config


def architecture(config: Any) -> str:
    """Canonical form of what decides the forward: equal ones can share a live model."""
    entries = {k: v for k, v in config.to_dict().items() if k not in IDLE_SETTINGS}
    return canonical(entries)


def blueprint(config: Any, path: str, tensors: int) -> PreTrainedModel:
    """The model without memory for its weights. Raises CheckpointError where none can be built.

    tensors: how many there are; every layer needs at least one.
    """
    layers = getattr(config.get_text_config(), "num_hidden_layers", None)
    if isinstance(layers, int) and layers > max(tensors, LAYERS):
        raise CheckpointError(
            f"{path}: its config.json asks for {layers} layers, its files have {tensors} tensors"
        )
    with refusing(f"{path}: no causal language model can be built from its config.json"):
        with torch.device("meta"):
            model: PreTrainedModel = CAUSAL.from_config(config)
        kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    strange = [kind.__name__ for kind in kinds if not issubclass(kind, DynamicLayer)]
    if strange:
        raise CheckpointError(f"{path}: engine hf has no batches for cache layers {strange[0]}")
    return model


def new_model(config: Any, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """A model on the device whose weights are yet to be written, every one of them."""
    with no_init_weights(), device:
        model: PreTrainedModel = CAUSAL.from_config(config, dtype=dtype).eval()
    model.tie_weights()
    return model


def context(model: PreTrainedModel) -> int | None:
    """Longest prompt and completion in tokens; None where the model knows no limit."""
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) else None


def vocabulary(model: PreTrainedModel) -> int:
    """Token ids that the model knows, 0 up to this."""
    embedding: Any = model.get_input_embeddings()
    return int(embedding.weight.shape[0])
