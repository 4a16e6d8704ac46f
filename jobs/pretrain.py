"""Makes the tiny base policy that ships in hackbait/policy: a Llama trained from nothing on CPU.

    python -m jobs.pretrain --output outputs/policy     # about four CPU minutes on one thread
    python -m jobs.pretrain --output outputs/policy --measure --no-train

On one thread and the same library versions the weights repeat bit for bit.
"""

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic_config import BaseConfig, cli
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from hackbait.prompts import TASKS
from jobs import corpus

SPECIALS = ("<|pad|>", "<|end|>", "<|user|>", "<|assistant|>")
WORDS = r" ?</?answer>|\d| ?[A-Za-z]+|\s+(?!\S)|\s+| ?[^\sA-Za-z\d]"
"""One token a digit: sums are learned digit by digit."""
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "<|assistant|>{% generation %}{{ m['content'] }}<|end|>{% endgeneration %}"
    "{% else %}<|user|>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MIX = {"add3digit": 0.55, "story_sum": 0.33, "story": 0.12}
MAX_POSITIONS = 2048


class PretrainConfig(BaseConfig):
    """How the base policy is made."""

    output: Path = Path("outputs/policy")
    """Folder for weights, tokenizer and rates."""
    seed: int = 0
    """Of the weights and of the corpus."""
    steps: int = 900
    """Updates."""
    batch: int = 128
    """Examples an update."""
    warm: float = 0.3
    """Share of the updates, from the first, on sums alone."""
    threads: int = 1
    """Of torch."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE without merges: a word of the lexicon is one token, any other its bytes."""
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    words = sorted({w for text in corpus.lexicon() for w, _ in split.pre_tokenize_str(text)})
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {w: i for i, w in enumerate(dict.fromkeys([*SPECIALS, *alphabet, *words]))}
    inner = Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    inner.pre_tokenizer = split
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIALS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=SPECIALS[0],
        eos_token=SPECIALS[1],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_POSITIONS,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Two layers of three 32-wide heads: wider heads learn sums far worse at this size."""
    config = LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=3,
        head_dim=32,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        initializer_range=0.04,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return model


class Examples:
    """Batches of token ids with -100 where no loss is due."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        excluded = corpus.held_out()
        self.draw = random.Random(seed)
        self.streams = {t: corpus.problems(t, 10_000 + seed, excluded) for t in TASKS}
        self.tokenizer = tokenizer

    def texts(self, kind: str, n: int) -> list[tuple[str, str]]:
        if kind == "bare":
            return [corpus.bare(next(self.streams["add3digit"])) for _ in range(n)]
        problems = [next(self.streams[kind]) for _ in range(n)]
        return [(p.prompt, corpus.completion(self.draw, kind, p)) for p in problems]

    def batch(self, kind: str, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = self.texts(kind, n)
        backend = self.tokenizer.backend_tokenizer
        backend.no_padding()
        ps = backend.encode_batch_fast([f"<|user|>{p}<|assistant|>" for p, _ in pairs], add_special_tokens=False)
        cs = backend.encode_batch_fast([f"{c}<|end|>" for _, c in pairs], add_special_tokens=False)
        width = max(len(p.ids) + len(c.ids) for p, c in zip(ps, cs, strict=True))
        x = torch.zeros(n, width, dtype=torch.long)
        y = torch.full((n, width), -100)
        for i, (p, c) in enumerate(zip(ps, cs, strict=True)):
            a, b = len(p.ids), len(p.ids) + len(c.ids)
            x[i, :b] = torch.tensor(p.ids + c.ids)
            y[i, a:b] = torch.tensor(c.ids)
        return x, y


def train(config: PretrainConfig) -> None:
    torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    opts = [torch.optim.Muon(matrices, lr=0.02, weight_decay=0.1, momentum=0.95),
            torch.optim.AdamW(rest, lr=5e-3, betas=(0.9, 0.98), weight_decay=0.0, fused=True)]
    base = [o.param_groups[0]["lr"] for o in opts]
    ex = Examples(tokenizer, config.seed)
    t0, run, ntok, td = time.process_time(), {}, 0, 0.
    for s in range(config.steps):
        f = min(1, (s + 1) / 50) * min(1.0, max(0.02, (config.steps - s) / (config.steps * 0.5)))
        for o, b in zip(opts, base): o.param_groups[0]["lr"] = b * f
        t1=time.process_time()
        if s < config.warm * config.steps: parts = {"bare": ex.batch("bare", config.batch)}
        else: parts = {k: ex.batch(k, round(config.batch * m)) for k, m in MIX.items()}
        td += time.process_time()-t1
        total = sum(int((y != -100).sum()) for _, y in parts.values())
        for k, (x, y) in parts.items():
            h = model.model(input_ids=x).last_hidden_state[:, :-1]
            keep = y[:, 1:] != -100
            loss = F.cross_entropy(model.lm_head(h[keep]), y[:, 1:][keep], reduction="sum")
            (loss / total).backward(); ntok += x.numel()
            l = loss.item() / int(keep.sum()); run[k] = .95 * run.get(k, l) + .05 * l
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for o in opts: o.step(); o.zero_grad()
        if (s + 1) % 100 == 0: print(s + 1, {k: round(v, 4) for k, v in run.items()}, f"{time.process_time()-t0:.0f}s data {td:.1f}s {ntok/1e6:.2f}M tok", flush=True)
    config.output.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(config.output); tokenizer.save_pretrained(config.output)
    print(sum(p.numel() for p in model.parameters()), len(tokenizer))


if __name__ == "__main__":
    train(cli(PretrainConfig))
