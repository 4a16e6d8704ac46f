"""The policy that a training begins with, and what its chat template is told."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer

import hackbait
from pipeline.engines.hf.chat import TODAY
from pipeline.records import CheckpointError

TINY = "tiny"
"""Name of the base weights that ship with this package."""
POLICY = Path(str(hackbait.__file__)).parent / "policy"
TOLD = {"date_string": TODAY.strftime("%d %b %Y")}
"""The date that engines tell a template which asks for one, so that prompts are equal."""


def load(name: str, dtype: str) -> tuple[Any, Any]:
    """Tokenizer and model. Raises CheckpointError."""
    path = str(POLICY) if name == TINY else name
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(f"model {name!r} cannot be loaded: {reason}") from None
    if not tokenizer.chat_template:
        raise CheckpointError(
            f"model {name!r} has no chat template; give an instruct model, or put a "
            "chat_template.jinja beside its tokenizer"
        )
    return tokenizer, model
