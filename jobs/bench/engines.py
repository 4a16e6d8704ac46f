"""What a sweep through one vLLM engine costs beside the model, in CPU seconds of its process.

python -m jobs.bench.engines                      # an hour and a half; three processes in turn
python -m jobs.bench.engines --rounds 1           # a first look
python -m jobs.bench.engines --only tiny          # or large, adapters

Rates are tokens per CPU second, of all threads of the engine's process, swaps, prefetch, hashing,
templates and texts included, against `LLM.generate` on the same token ids with the same settings.
The two take turns (ABBA). The large model is about 250 MB in bfloat16 and runs in float32. Its file
is warm; it is read into new memory and copied into tensors of the live dtype in another process.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from hackbait.environment import load
from jobs.bench import _machine
from jobs.bench._batches import Setting, bare_generate, count, sweep
from jobs.bench._child import child
from jobs.bench._models import WEIGHTS, adapter, variants
from pipeline import engines, rollout
from pipeline.records import Checkpoint, Sampling

LONG = True
ITSELF = "jobs.bench.engines"
ROUNDS, SWAPS = 8, 21
ADAPTERS = 64
LIMIT_RATE, LIMIT_RESTART, LIMIT_COPY, LIMIT_MS, LIMIT_LORA = 0.95, 20, 1.6, 20.0, 2.0
SETTINGS = {
    "tiny": Setting(100, 100, 128, 4, 32, {"max_model_len": 256, "kv_cache": 2**28}),
    "large": Setting(8, 4, 16, 4, 64, {"max_model_len": 256, "kv_cache": 2**29}),
}


def run(rounds: int = ROUNDS, only: str | None = None) -> list[dict[str, Any]]:
    """Each part in a process of its own, on one thread."""
    parts = [only] if only else [*SETTINGS, "adapters"]
    return [figure for part in parts for figure in child(ITSELF, "--child", part, str(rounds))]


def sweeps(name: str, rounds: int) -> list[dict[str, Any]]:
    """Swapping and sweeping of one model."""
    setting = SETTINGS[name]
    engine: Any = engines.load("vllm", setting.options)  # prepares this process, so first of all
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = list(variants(name, Path(folder), setting.files))
        restart = float(child(ITSELF, "--start", checkpoints[0].path, json.dumps(setting.options)))
        cases = load("hackword", task="add3digit").cases(0, setting.cases)
        swaps = swap_seconds(engine, checkpoints)
        check, note = cpu_seconds(lambda: engine.self_check(checkpoints[1]))
        print(f"{name}: start {restart:.1f} s, fresh-engine check {check:.1f} s, {note or 'made'}")
        bare = bare_generate(checkpoints[0], engine, cases, setting)
        rates = turns(lambda seed: sweep(engine, checkpoints, cases, setting, seed), bare, rounds)
        swap = statistics.median(swaps)
        figures = [
            row(f"{name}: restart over swap", restart / swap, "x", ">=", LIMIT_RESTART),
            row(f"{name}: {describe(setting)} over LLM.generate", rates, "x", ">=", LIMIT_RATE),
        ]
        if name == "tiny":
            return [row("tiny: swap", 1e3 * swap, "ms", "<=", LIMIT_MS), *figures]
        floor = float(child(ITSELF, "--floor", *(checkpoint.path for checkpoint in checkpoints)))
        ratio = row("large: swap over read and copy", swap / floor, "x", "<=", LIMIT_COPY)
        return [ratio | {"name": f"{ratio['name']} ({1e3 * swap:.0f} ms)"}, *figures]


def describe(setting: Setting) -> str:
    return f"{setting.checkpoints} x {setting.cases * setting.n} rollouts"


def swap_seconds(engine: Any, checkpoints: Sequence[Checkpoint]) -> list[float]:
    """`load` of one checkpoint after the other, each read ahead and hashed before."""
    for checkpoint in checkpoints:
        engine.load(checkpoint)
    seconds = []
    for i in range(SWAPS):
        spent, _ = cpu_seconds(partial(engine.load, checkpoints[i % len(checkpoints)]))
        seconds.append(spent)
    return seconds


def read_and_copy(folders: Sequence[str]) -> Iterator[float]:
    """CPU seconds to read a warm file into new memory, and its tensors into live ones."""
    files = [Path(folder) / WEIGHTS for folder in folders]
    live = {
        name: torch.zeros(tensor.shape)
        for name, tensor in safetensors.torch.load_file(files[0]).items()
    }

    def once(path: Path) -> None:
        for name, tensor in safetensors.torch.load(path.read_bytes()).items():
            live[name].copy_(tensor)

    for i in range(SWAPS):
        yield cpu_seconds(partial(once, files[i % len(files)]))[0]


def turns(ours: Callable[[int], int], theirs: Callable[[int], int], rounds: int) -> float:
    """Median ratio of tokens per CPU second, a round being ours and theirs in either order."""
    ratios: list[float] = []
    for seed in range(rounds):
        order = (ours, theirs) if seed % 2 == 0 else (theirs, ours)
        rate = {}
        for generate in order:
            seconds, tokens = cpu_seconds(partial(generate, seed))
            rate[generate] = tokens / seconds
        ratios.append(rate[ours] / rate[theirs])
        print(f"round {seed}: {rate[ours]:,.0f} and {rate[theirs]:,.0f} tokens/s", file=sys.stderr)
    return statistics.median(ratios)


def adapters(rounds: int) -> list[dict[str, Any]]:
    """Adapters of the policy in one batch against one by one, the same rollouts."""
    with tempfile.TemporaryDirectory() as folder:
        made = [adapter(Path(folder) / f"checkpoint-{i}", i) for i in range(ADAPTERS)]
        engine: Any = engines.load("vllm", {"max_loras": ADAPTERS, "max_model_len": 256})
        cases = load("hackword", task="add3digit").cases(0, 4)
        sampling = Sampling(n=4, max_tokens=32)
        loading, _ = cpu_seconds(lambda: [engine.load(checkpoint) for checkpoint in made])

        def together(seed: int) -> int:
            asked = [(checkpoint, cases) for checkpoint in made]
            return count(rollout.generate_many(engine, asked, sampling))

        def one_by_one(seed: int) -> int:
            tokens = 0
            for checkpoint in made:
                engine.load(checkpoint)
                tokens += count([rollout.generate(engine, cases, sampling)])
            return tokens

        for warm in (together, one_by_one):
            warm(0)
        gain = turns(together, one_by_one, rounds)
    name = f"{ADAPTERS} adapters x {len(cases) * sampling.n} rollouts: one batch over one by one"
    print(f"adapters: {1e3 * loading / ADAPTERS:.1f} ms to load one, engine start included")
    return [row(name, gain, "x", ">=", LIMIT_LORA)]


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, all threads, and what came of it."""
    began = time.process_time()
    result = work()
    spent: float = time.process_time() - began
    return spent, result


def row(name: str, value: float, unit: str, than: str, limit: float) -> dict[str, Any]:
    ok = value <= limit if than == "<=" else value >= limit
    return {"name": name, "value": value, "unit": unit, "limit": f"{than} {limit:g}", "ok": ok}


def start(path: str, options: str) -> float:
    """CPU seconds of this process until a checkpoint is loaded."""
    engine: Any = engines.load("vllm", json.loads(options))
    engine.load(Checkpoint("bench", 0, path, "full", ""))
    return time.process_time()


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--start"]:
        print(start(*argv[1:]))
        return 0
    if argv[:1] == ["--floor"]:
        print(statistics.median(read_and_copy(argv[1:])))
        return 0
    if argv[:1] == ["--child"]:
        part, rounds = argv[1], int(argv[2])
        print(json.dumps(adapters(rounds) if part == "adapters" else sweeps(part, rounds)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=[*SETTINGS, "adapters"])
    chosen = parser.parse_args(argv)
    print(_machine.describe())
    figures = run(chosen.rounds, chosen.only)
    for figure in figures:
        print(f"{figure['name']}: {figure['value']:.3f} {figure['unit']} ({figure['limit']})")
    return 0 if all(figure["ok"] for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
