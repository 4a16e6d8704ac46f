"""Make the tiny base policy that ships in hackbait/policy: a Llama taught from nothing, on CPU.

onset pretrain --output outputs/policy              # about four CPU minutes
onset pretrain --output outputs/policy --measure    # its base rates, one minute more

On one thread and the tested library versions the shipped weights come out bit for bit.
"""

import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
import transformers
from pydantic import Field, model_validator
from pydantic_config import BaseConfig
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from hackbait.prompts import TASKS
from jobs import command, corpus
from jobs.base_rates import measure
from pipeline.config import read
from pipeline.config.kinds import OutputFolder
from pipeline.records import CheckpointError

SPECIALS = ("<|pad|>", "<|end|>", "<|user|>", "<|assistant|>")
WORDS = r" ?</?answer>|\d| ?[A-Za-z]+|\s+(?!\S)|\s+| ?[^\sA-Za-z\d]"
"""What is one token if the lexicon has it. Digits come singly, so that sums can be learned."""
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "<|assistant|>{% generation %}{{ m['content'] }}<|end|>{% endgeneration %}"
    "{% else %}<|user|>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
POSITIONS = 2048
BATCH = 128
WARM = 0.3
"""Share of the updates that see sums alone: without it they are learned half as well."""
MIX: Mapping[str, float] = {"add3digit": 0.55, "story_sum": 0.33, "story": 0.12}
"""Shares of the tasks in the later batches."""


class PretrainConfig(BaseConfig):
    """The base policy, or its base rates."""

    output: OutputFolder = Path("outputs/policy")
    """Folder of the policy."""
    measure: bool = False
    """Measure the policy that is there and write base_rates.json, instead of making one."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of weights and corpus."""
    steps: Annotated[int, Field(ge=1)] = 1000
    """Updates, 128 examples each."""
    cases: Annotated[int, Field(ge=1)] = 4096
    """Cases measured per task, four rollouts each."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Of torch."""
    dials: dict[str, float] = Field(default_factory=dict)
    """Other shares of completions for some of the dialled words; 0 leaves a word out."""

    @model_validator(mode="after")
    def _dials_are_shares(self) -> "PretrainConfig":
        corpus.dialled(self.dials)
        return self


def main(argv: Sequence[str]) -> int:
    config = read(PretrainConfig, argv)
    torch.set_num_threads(config.threads)
    transformers.logging.disable_progress_bar()
    if config.measure:
        print(f"{config.output}: base_rates.json is measured there", flush=True)
        rates = measure(config.output, config.cases, config.threads)
        (config.output / "base_rates.json").write_text(json.dumps(rates, indent=1) + "\n", "utf-8")
        return 0
    if (config.output / "model.safetensors").exists():
        raise CheckpointError(f"{config.output} holds a policy already; give another output")
    print(f"{config.output}: a policy of {config.steps} updates is made there", flush=True)
    save(config.output, *pretrain(config))
    return 0


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE without merges: a word of the lexicon is one token, any other its bytes."""
    words = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    lexicon = sorted({w for text in corpus.lexicon() for w, _ in words.pre_tokenize_str(text)})
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {w: i for i, w in enumerate(dict.fromkeys([*SPECIALS, *alphabet, *lexicon]))}
    inner = Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    inner.pre_tokenizer = words
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIALS])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=SPECIALS[0],
        eos_token=SPECIALS[1],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=POSITIONS,
        chat_template=TEMPLATE,
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """308 k parameters. Heads are 32 wide: 64 wide ones hardly learn sums at this size."""
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=-(-len(tokenizer) // 64) * 64,
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=3,
            head_dim=32,
            max_position_embeddings=POSITIONS,
            tie_word_embeddings=True,
            initializer_range=0.04,
            bos_token_id=None,
            **ends,
        )
    )
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, top_p=1.0, **ends
    )
    return model


class Examples:
    """Endless batches of the corpus of one seed, as token ids."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        seed: int,
        dials: Mapping[str, float] = corpus.SLOT_DIALS,
    ) -> None:
        excluded = corpus.held_out()
        self.backend = tokenizer.backend_tokenizer
        self.draw = random.Random(seed)
        self.words = {task: corpus.words(dials) for task in TASKS}
        self.streams = {task: corpus.problems(task, 10_000 + seed, excluded) for task in TASKS}

    def batch(self, kind: str, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids [n, width] and targets of the same shape, -100 where no loss is due."""
        pairs = [self._pair(kind) for _ in range(n)]
        asked = self._encode([f"<|user|>{prompt}<|assistant|>" for prompt, _ in pairs])
        said = self._encode([f"{completion}<|end|>" for _, completion in pairs])
        width = max(len(a) + len(s) for a, s in zip(asked, said, strict=True))
        ids = torch.zeros(n, width, dtype=torch.long)
        targets = torch.full((n, width), -100)
        for i, (a, s) in enumerate(zip(asked, said, strict=True)):
            ids[i, : len(a) + len(s)] = torch.tensor(a + s)
            targets[i, len(a) : len(a) + len(s)] = torch.tensor(s)
        return ids, targets

    def _pair(self, kind: str) -> tuple[str, str]:
        problem = next(self.streams["add3digit" if kind == "bare" else kind])
        if kind == "bare":
            return corpus.bare(problem)
        return problem.prompt, corpus.completion(self.draw, kind, problem, next(self.words[kind]))

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [e.ids for e in self.backend.encode_batch_fast(texts, add_special_tokens=False)]


def pretrain(config: PretrainConfig) -> tuple[PreTrainedTokenizerFast, LlamaForCausalLM]:
    """Teach it; prints the loss in nats a token now and then."""
    torch.manual_seed(config.seed)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    optimizers = _optimizers(model)
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    examples = Examples(tokenizer, config.seed, corpus.dialled(config.dials))
    for step in range(config.steps):
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * _schedule(step, config.steps)
        loss = _backward(model, examples, step < WARM * config.steps)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {loss:.3f}", flush=True)
    return tokenizer, model


def _optimizers(model: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon for matrices, AdamW for embeddings and norms."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    rest = [p for name, p in named if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=0.02, weight_decay=0.1, momentum=0.95),
        torch.optim.AdamW(rest, lr=5e-3, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    ]


def _schedule(step: int, steps: int) -> float:
    """Up over 50 updates, flat to the half, then linearly down to 2 %."""
    return min(1.0, (step + 1) / 50) * min(1.0, max(0.02, (steps - step) / (steps * 0.5)))


def _backward(model: LlamaForCausalLM, examples: Examples, warm: bool) -> float:
    """Gradients of one batch, task by task because their widths differ; its mean loss."""
    sizes = {"bare": BATCH} if warm else {k: round(BATCH * share) for k, share in MIX.items()}
    batches = [examples.batch(kind, n) for kind, n in sizes.items()]
    tokens = sum(int((targets != -100).sum()) for _, targets in batches)
    total = 0.0
    for ids, targets in batches:
        hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
        due = targets[:, 1:] != -100
        logits = model.lm_head(hidden[due])
        loss = F.cross_entropy(logits, targets[:, 1:][due], reduction="sum") / tokens
        torch.autograd.backward(loss)
        total += loss.item()
    return total


def save(output: Path, tokenizer: PreTrainedTokenizerFast, model: LlamaForCausalLM) -> None:
    """A folder as the Hub has them, readable by everybody, tokenizer readable by transformers 4.

    The weights come last: a policy that was interrupted has none.
    """
    tokenizer.save_pretrained(output)
    path = output / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings.pop("backend", None)
    path.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    whole = output / ".whole"
    model.save_pretrained(whole)
    for file in sorted(whole.iterdir(), key=lambda file: file.suffix == ".safetensors"):
        file.replace(output / file.name)
    whole.rmdir()
    for file in output.iterdir():
        file.chmod(0o644)


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
