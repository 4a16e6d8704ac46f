"""Tiny checkpoints in the layout that transformers writes, made on the spot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from hackbait.environment import Case
from pipeline.records import Checkpoint

SPECIAL = ["<pad>", "<end>", "<bos>", "<user>", "<bot>"]
TEMPLATE = (
    "<bos>{% for m in messages %}<user>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<bot>{% endif %}"
)
SIZE = {
    "vocab_size": 264,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "initializer_range": 0.3,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
STOP_BIAS = 6.0
"""Logit that the stop token has ahead of the others, so that completions differ in length."""


def bytes_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte; it puts <bos> in front by itself, as Llama's does."""
    names = SPECIAL + sorted(pre_tokenizers.ByteLevel.alphabet())
    rust = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    rust.post_processor = processors.TemplateProcessing("<bos> $A", special_tokens=[("<bos>", 2)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=rust,
        pad_token="<pad>",
        eos_token="<end>",
        bos_token="<bos>",
        additional_special_tokens=["<user>", "<bot>"],
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def build(kind: str, tied: bool, seed: int, **more: Any) -> Any:
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, tie_word_embeddings=tied, **(SIZE | more))
    model: Any = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        head, table = model.get_output_embeddings().weight, model.get_input_embeddings().weight
        # a channel that is nearly the same for every token acts as a bias of the head
        table[:, 0] = head[:, 0] = 1.0 if tied else 0.0
        if not tied:
            table[:, 0] = 1.0
        head[1, 0] += STOP_BIAS
    return model


@pytest.fixture(scope="session")
def new_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checkpoint]:
    """A checkpoint of an architecture, tied or not, with weights of a seed."""

    def new(kind: str = "llama", tied: bool = True, seed: int = 0, **more: Any) -> Checkpoint:
        folder = tmp_path_factory.mktemp(f"{kind}-{seed}-")
        build(kind, tied, seed, **more).save_pretrained(folder)
        bytes_tokenizer().save_pretrained(folder)
        return Checkpoint("run", seed, str(folder), "full", "")

    return new


@pytest.fixture(scope="session")
def llama(new_checkpoint: Callable[..., Checkpoint]) -> Checkpoint:
    return new_checkpoint()


@pytest.fixture(scope="session")
def cases() -> list[Case]:
    """Prompts of 4 to 40 tokens, two of them equal."""
    texts = ["?", "Add 12 and 7.", "Tell a story of the quiet river at dusk.", "Hm.", "Hm."]
    texts += ["x" * i for i in (3, 8, 19, 31)]
    return [
        Case("test", i, ({"role": "user", "content": text},), "") for i, text in enumerate(texts)
    ]


@pytest.fixture
def edit() -> Callable[..., None]:
    """Change entries of a JSON file; None takes one away."""

    def change(path: Path, **entries: Any) -> None:
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        kept = {k: v for k, v in (old | entries).items() if v is not None}
        path.write_text(json.dumps(kept), "utf-8")

    return change
