"""What a sweep of 5,000 checkpoints of a 1B model would take, from what this machine measures.

python -m jobs.bench.gpu             # a CUDA GPU; a shape as Llama-3.2-1B has it, random, bfloat16
python -m jobs.bench.gpu --small     # a trial of this script on a CPU: no figure of a GPU
python -m jobs.bench.gpu --hidden 1024 --layers 8 --tokens 64 --only hf

Run it in a clone of the repository: torch, transformers and safetensors are all it needs, and vLLM
for vLLM's part. Seconds are of the wall clock. A swap is of a file in the page cache: add what a
slower disk takes. A random model hardly ever stops, so each rollout is `--tokens` long; policies
that stop sooner take less.
"""

import argparse
import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.utils import logging

from hackbait.environment import load
from jobs.bench import _machine
from pipeline import engines, rollout
from pipeline.records import Checkpoint, Sampling

LONG = True
POLICY = Path(__file__).parents[2] / "hackbait/policy"
SPEECH = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
CAUSAL: Any = AutoModelForCausalLM
CASES, N = 256, 4
CHECKPOINTS, GPUS = 5_000, (1, 8)
FILES, ROUNDS = 3, 2
PARTS = ("vllm", "hf")
REFUSED = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A Llama with heads of 64, four of which share a key and a value."""

    hidden: int = 2048
    layers: int = 16
    vocabulary: int = 128_256
    tokens: int = 256
    """Length of a rollout."""
    cases: int = CASES

    def config(self) -> LlamaConfig:
        heads = self.hidden // 64
        return LlamaConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.hidden,
            intermediate_size=4 * self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=heads,
            num_key_value_heads=max(1, heads // 4),
            head_dim=64,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            eos_token_id=1,
            bos_token_id=None,
        )


SMALL = Shape(hidden=256, layers=4, vocabulary=4096, tokens=32, cases=32)


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine on one machine, in seconds of the wall clock."""

    start: float
    """Until the first checkpoint is in place, the engine's imports included."""
    swap: float
    """To put another checkpoint in place."""
    rollouts: float
    """Rollouts per second."""
    tokens: float
    """Tokens per second."""
    memory: int | None
    """Most bytes that were in use; None where the engine takes what it is given."""


def hours(
    measured: Measured, gpus: int, checkpoints: int = CHECKPOINTS, rollouts: int = CASES * N
) -> float:
    """Of a sweep: each GPU starts an engine and takes its share of checkpoints one by one."""
    each = measured.swap + rollouts / measured.rollouts
    return (measured.start + math.ceil(checkpoints / gpus) * each) / 3600


def rows(engine: str, measured: Measured, tokens: int) -> list[dict[str, Any]]:
    """The figures of one engine and what they come to."""
    sweep = f"{CHECKPOINTS:,} checkpoints x {CASES * N:,} rollouts x {tokens} tokens"
    figures = [
        ("start", measured.start, "s"),
        ("swap", 1e3 * measured.swap, "ms"),
        ("tokens", measured.tokens, "/s"),
        *([("peak memory", measured.memory / 2**30, "GiB")] if measured.memory else []),
        *((f"predicted: {sweep}, GPUs {gpus}", hours(measured, gpus), "h") for gpus in GPUS),
    ]
    return [
        {"name": f"{engine}: {name}", "value": value, "unit": unit, "limit": "", "ok": True}
        for name, value, unit in figures
    ]


def run(shape: Shape | None = None, parts: Sequence[str] = PARTS) -> list[dict[str, Any]]:
    """Figures of both engines, or of one; of a small model where there is no GPU."""
    gpu = torch.cuda.is_available()
    shape = shape or (Shape() if gpu else SMALL)
    note(torch.cuda.get_device_name() if gpu else "no GPU: a trial on a CPU, no figure of a GPU")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), shape)
        for part in parts:
            if part == "vllm" and importlib.util.find_spec("vllm") is None:
                note("vllm: not installed, left out")
                continue
            measured = child(part, folder, shape)
            if measured:
                figures += rows(part if gpu else f"{part}, CPU", measured, shape.tokens)
    return figures


def write(folder: Path, shape: Shape) -> None:
    """Random weights, and the same with one norm changed a little: other bytes, the same work."""
    logging.disable_progress_bar()
    torch.manual_seed(0)
    model = CAUSAL.from_config(shape.config(), dtype=torch.bfloat16)
    note(f"{sum(p.numel() for p in model.parameters()):,} parameters, {FILES} checkpoints")
    for step in range(FILES):
        place = folder / f"checkpoint-{step}"
        with torch.no_grad():
            model.model.norm.weight.fill_(1 + step / 8)
        model.save_pretrained(place, max_shard_size="1TB")
        for file in SPEECH:
            shutil.copy(POLICY / file, place)


def checkpoint(folder: Path, step: int) -> Checkpoint:
    return Checkpoint("bench", step, str(folder / f"checkpoint-{step}"), "full", "")


def child(part: str, folder: str, shape: Shape) -> Measured | None:
    """One part in a process of its own, whose GPU memory goes with it; None where it is refused."""
    command = [sys.executable, "-m", "jobs.bench.gpu", "--child", part, folder]
    done = subprocess.run([*command, json.dumps(asdict(shape))], stdout=subprocess.PIPE)
    if done.returncode == REFUSED:
        return None
    done.check_returncode()
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def measure(part: str, made: Sequence[Checkpoint], shape: Shape) -> Measured:
    """Start, swaps and rounds of all cases, by the wall clock."""
    gpu = torch.cuda.is_available()
    options: dict[str, Any] = {"dtype": "bfloat16" if gpu else "float32"}
    options |= {"max_model_len": shape.tokens + 256} if part == "vllm" else {}
    engine, building = wall(partial(engines.load, part, options))
    _, first = wall(partial(engine.load, made[0]))
    cases = load("hackword", task="add3digit").cases(0, shape.cases)

    def generate(seed: int, tokens: int) -> int:
        drawn = rollout.generate(engine, cases, Sampling(n=N, max_tokens=tokens, seed=seed))
        return sum(r.completion.completion_tokens or 0 for r in drawn)

    generate(0, 8)  # kernels are compiled and memory is taken
    swaps, rates = [], []
    for at, following in enumerate([*made[1:], *made[:1]]):
        engine.prefetch(following)
        _, spent = wall(partial(engine.load, following))
        swaps.append(spent)
        if at < ROUNDS:
            drawn, spent = wall(partial(generate, at + 1, shape.tokens))
            rates.append((shape.cases * N / spent, drawn / spent))
    of_rollouts, of_tokens = (statistics.median(rate) for rate in zip(*rates, strict=True))
    memory = peak(gpu) if part == "hf" else None
    return Measured(building + first, statistics.median(swaps), of_rollouts, of_tokens, memory)


def peak(gpu: bool) -> int:
    """Most bytes of the GPU that tensors held, or of this process's own memory."""
    return torch.cuda.max_memory_allocated() if gpu else _machine.peak_bytes(os.getpid())


def wall(work: Callable[[], Any]) -> tuple[Any, float]:
    """What came of the work, and its seconds, those of a GPU included."""
    began = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result, time.perf_counter() - began


def note(text: str) -> None:
    print(text, file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--child"]:
        part, folder, described = argv[1:]
        made = [checkpoint(Path(folder), step) for step in range(FILES)]
        try:
            print(json.dumps(asdict(measure(part, made, Shape(**json.loads(described))))))
        except engines.EngineError as error:
            note(f"{part}: left out: {error}")
            return REFUSED
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="the default where there is no GPU")
    parser.add_argument("--hidden", type=int, help="a multiple of 64; 2048")
    parser.add_argument("--layers", type=int, help="16")
    parser.add_argument("--tokens", type=int, help="of a rollout; 256")
    parser.add_argument("--only", choices=PARTS)
    chosen = parser.parse_args(argv)
    given = {k: v for k in ("hidden", "layers", "tokens") if (v := vars(chosen)[k]) is not None}
    if given.get("hidden", 64) % 64 or min(given.values(), default=1) < 1:
        parser.error("--hidden is a multiple of 64, and every size at least 1")
    small = chosen.small or not torch.cuda.is_available()
    print(_machine.describe())
    shape = Shape(**(asdict(SMALL if small else Shape()) | given))
    for row in run(shape, [chosen.only] if chosen.only else PARTS):
        print(f"{row['name']}: {row['value']:,.2f} {row['unit']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
