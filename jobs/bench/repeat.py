"""Whether a seed decides its rollout whatever stands beside it: how many texts are not the same.

python -m jobs.bench.repeat                           # half an hour; a process a model and dtype
python -m jobs.bench.repeat --only vllm/tiny          # or vllm/large, hf/tiny

One full batch, sampled at temperature 1 and greedy, is compared with the same rollouts drawn in
other ways. tiny is the shipped policy. large is a Llama of 125 M random parameters with the
policy's vocabulary: tokens that its tokenizer lacks would leave no trace in a text. The limit is 0
where the engine's rows promise `text`; where they promise `none` there is no limit.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import LlamaConfig

from hackbait.environment import Case, load
from jobs.bench import _machine
from jobs.bench._child import child
from jobs.bench._models import CAUSAL, LARGE, POLICY, SPEECH, WEIGHTS
from pipeline import engines
from pipeline.engines import Engine
from pipeline.records import Checkpoint, Sampling
from pipeline.rollout import sampling_seeds

LONG = True
ITSELF = "jobs.bench.repeat"
VOCABULARY, LAYERS = 896, 27
"""Tokens of the policy; layers that make up for the smaller vocabulary."""
TASKS = ("add3digit", "story")
BATCH = 7
FULL = sys.maxsize

Asked = Sequence[tuple[Case, int]]
"""Rollouts by case and seed."""
Texts = list[str | None]


@dataclass(frozen=True, slots=True)
class Setting:
    """The rollouts of one model, and vLLM's memory for them."""

    cases: int
    """Of each task."""
    n: int
    tokens: int
    cache: int
    """Bytes that hold the full batch."""
    cramped: int
    """Bytes in which rollouts are put off half way and taken up again."""

    @property
    def samplings(self) -> list[Sampling]:
        sampled = Sampling(n=self.n, temperature=1, max_tokens=self.tokens)
        return [sampled, Sampling(n=1, temperature=0, max_tokens=self.tokens)]

    def asked(self, sampling: Sampling) -> Asked:
        cases = [c for task in TASKS for c in load("hackword", task=task).cases(0, self.cases)]
        seeds = sampling_seeds(cases, sampling)
        return [(case, s) for case, own in zip(cases, seeds, strict=True) for s in own]


SETTINGS = {
    "tiny": Setting(cases=64, n=4, tokens=48, cache=2**28, cramped=2**20),
    "large": Setting(cases=8, n=3, tokens=64, cache=2**29, cramped=2**25),
}
PARTS = ("vllm/tiny", "vllm/large", "hf/tiny")
DTYPES = ("float32", "bfloat16")


def run(only: Sequence[str] = PARTS, dtypes: Sequence[str] = DTYPES) -> list[dict[str, Any]]:
    """A row a way of drawing, for each engine, model and dtype."""
    return [
        figure
        for part in only
        for dtype in dtypes
        for figure in child(ITSELF, "--part", part, dtype)
    ]


def part(name: str, dtype: str) -> list[dict[str, Any]]:
    """Rows of one engine, model and dtype."""
    kind, _, model = name.partition("/")
    setting = SETTINGS[model]
    engine = build(kind, dtype, setting.cache)  # prepares this process, so first of all
    with tempfile.TemporaryDirectory() as folder:
        one, other = checkpoints(model, Path(folder))
        engine.load(one)
        full = everything(engine, setting)
        found = dict(ways(engine, setting, one, other))
        found["in a fresh process"] = child(
            ITSELF, "--texts", one.path, name, dtype, str(setting.cache)
        )
        if kind == "vllm":
            cramped = child(ITSELF, "--texts", one.path, name, dtype, str(setting.cramped))
            found["in a cache that holds few"] = cramped
    title = f"{name} {dtype}"
    return [row(f"{title}: {way}", full, drawn, engine.determinism) for way, drawn in found.items()]


def build(kind: str, dtype: str, cache: int) -> Engine:
    vllm = {"max_model_len": 256, "kv_cache": cache}
    options = vllm if kind == "vllm" else {"device": "cpu", "threads": 1}
    return engines.load(kind, {"dtype": dtype, **options})


def ways(
    engine: Engine, setting: Setting, one: Checkpoint, other: Checkpoint
) -> Iterator[tuple[str, list[Texts]]]:
    """Name and texts by sampling, of an engine that holds `one` and has drawn the full batch."""
    yield "the full batch again", everything(engine, setting)
    yield "one by one", everything(engine, setting, size=1)
    yield f"in batches of {BATCH}", everything(engine, setting, size=BATCH)
    yield "in another order", everything(engine, setting, shuffled=True)
    engine.load(other)
    everything(engine, setting)
    engine.load(one)
    yield "after a swap away and back", everything(engine, setting)


def everything(
    engine: Engine, setting: Setting, size: int = FULL, shuffled: bool = False
) -> list[Texts]:
    """Texts [sampling][rollout], in the order of the setting in whatever order they are drawn."""
    found = []
    for sampling in setting.samplings:
        asked = setting.asked(sampling)
        order = list(range(len(asked)))
        if shuffled:
            random.Random(0).shuffle(order)
        drawn = draw(engine, [asked[i] for i in order], sampling, size)
        found.append(restored(drawn, order))
    return found


def draw(engine: Engine, asked: Asked, sampling: Sampling, size: int) -> Texts:
    """Texts in order, so many rollouts at once."""
    texts: Texts = []
    for at in range(0, len(asked), min(size, len(asked))):
        batch = asked[at : at + size]
        seeds = [[seed] for _, seed in batch]
        texts += [row[0].text for row in engine.generate([c for c, _ in batch], seeds, sampling)]
    return texts


def restored(drawn: Texts, order: Sequence[int]) -> Texts:
    """What was drawn in an order, put back: `drawn[i]` belongs at `order[i]`."""
    return [text for _, text in sorted(zip(order, drawn, strict=True), key=lambda pair: pair[0])]


def checkpoints(model: str, folder: Path) -> tuple[Checkpoint, Checkpoint]:
    """The model, and one of its shape in which every tensor is another: its rows upside down."""
    one = POLICY if model == "tiny" else large(folder / "large")
    other = folder / "other"
    other.mkdir()
    for file in (*SPEECH, "config.json"):
        shutil.copy(one / file, other)
    tensors = safetensors.torch.load_file(one / WEIGHTS)
    turned = {name: tensor.flip(0).contiguous() for name, tensor in tensors.items()}
    safetensors.torch.save_file(turned, other / WEIGHTS, {"format": "pt"})
    return checkpoint(str(one)), checkpoint(str(other))


def checkpoint(path: str) -> Checkpoint:
    return Checkpoint("bench", 0, path, "full", "")


def large(folder: Path) -> Path:
    torch.manual_seed(0)
    size = LARGE | {"vocab_size": VOCABULARY, "num_hidden_layers": LAYERS}
    config = LlamaConfig(**size, eos_token_id=1, bos_token_id=None)
    CAUSAL.from_config(config, dtype=torch.float32).save_pretrained(folder)
    for file in SPEECH:
        shutil.copy(POLICY / file, folder)
    return folder


def row(
    name: str, full: Sequence[Texts], drawn: Sequence[Texts], determinism: str
) -> dict[str, Any]:
    """How many texts are not those of the full batch; no limit where none is promised."""
    pairs = [
        pair
        for ours, theirs in zip(full, drawn, strict=True)
        for pair in zip(ours, theirs, strict=True)
    ]
    differ = sum(ours != theirs for ours, theirs in pairs)
    unlike = len({ours for ours, _ in pairs})
    found = {"name": name, "value": differ, "unit": f"of {len(pairs)} ({unlike} unlike texts)"}
    promised = determinism != "none"
    return found | {"limit": "<= 0" if promised else None, "ok": not promised or differ == 0}


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--part"]:
        print(json.dumps(part(*argv[1:])))
        return 0
    if argv[:1] == ["--texts"]:
        path, name, dtype, cache = argv[1:]
        kind, _, model = name.partition("/")
        engine = build(kind, dtype, int(cache))
        engine.load(checkpoint(path))
        print(json.dumps(everything(engine, SETTINGS[model])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=DTYPES)
    chosen = parser.parse_args(argv)
    print(_machine.describe())
    figures = run(chosen.only, chosen.dtype)
    for figure in figures:
        limit = figure["limit"] or "no limit"
        print(f"{figure['name']}: {figure['value']} {figure['unit']} ({limit})")
    return 0 if all(figure["ok"] for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
