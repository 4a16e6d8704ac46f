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
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from hackbait.environment import Case, load
from jobs.bench import _machine
from pipeline import engines, rollout
from pipeline.records import Checkpoint, Sampling

LONG = True
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
ROUNDS, SWAPS = 8, 21
ADAPTERS, ADAPTER_RANK = 64, 8
LIMIT_RATE, LIMIT_RESTART, LIMIT_COPY, LIMIT_MS, LIMIT_LORA = 0.95, 20, 1.6, 20.0, 2.0


@dataclass(frozen=True, slots=True)
class Setting:
    """One sweep of the bench."""

    checkpoints: int
    files: int
    """Different checkpoints on disk, gone through in turn."""
    cases: int
    n: int
    tokens: int
    options: dict[str, Any]

    @property
    def sampling(self) -> Sampling:
        return Sampling(n=self.n, max_tokens=self.tokens)


SETTINGS = {
    "tiny": Setting(100, 100, 128, 4, 32, {"max_model_len": 256, "kv_cache": 2**28}),
    "large": Setting(8, 4, 16, 4, 64, {"max_model_len": 256, "kv_cache": 2**29}),
}


def run(rounds: int = ROUNDS, only: str | None = None) -> list[dict[str, Any]]:
    """Each part in a process of its own, on one thread."""
    parts = [only] if only else [*SETTINGS, "adapters"]
    return [figure for part in parts for figure in child(["--child", part, str(rounds)])]


def child(arguments: Sequence[str]) -> Any:
    """What this module prints last when it is run with these arguments."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-m", "jobs.bench.engines", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
    )
    return json.loads(done.stdout.splitlines()[-1])


def sweeps(name: str, rounds: int) -> list[dict[str, Any]]:
    """Swapping and sweeping of one model."""
    setting = SETTINGS[name]
    engine: Any = engines.load("vllm", setting.options)  # prepares this process, so first of all
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = list(variants(name, Path(folder), setting.files))
        restart = float(child(["--start", checkpoints[0].path, json.dumps(setting.options)]))
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
        floor = float(child(["--floor", *(checkpoint.path for checkpoint in checkpoints)]))
        ratio = row("large: swap over read and copy", swap / floor, "x", "<=", LIMIT_COPY)
        return [ratio | {"name": f"{ratio['name']} ({1e3 * swap:.0f} ms)"}, *figures]


def describe(setting: Setting) -> str:
    return f"{setting.checkpoints} x {setting.cases * setting.n} rollouts"


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


def sweep(
    engine: Any,
    checkpoints: Sequence[Checkpoint],
    cases: Sequence[Case],
    setting: Setting,
    seed: int,
) -> int:
    """Tokens of all checkpoints in turn, each read while the one before it generates."""
    for checkpoint in checkpoints:  # so that none of them counts as read
        os.utime(Path(checkpoint.path) / WEIGHTS)
    tokens = 0
    with ThreadPoolExecutor(1) as background:
        for i in range(setting.checkpoints):
            engine.load(checkpoints[i % len(checkpoints)])
            read = background.submit(engine.prefetch, checkpoints[(i + 1) % len(checkpoints)])
            sampling = Sampling(n=setting.n, max_tokens=setting.tokens, seed=seed)
            tokens += count([rollout.generate(engine, cases, sampling)])
            read.result()
    return tokens


def bare_generate(
    checkpoint: Checkpoint, engine: Any, cases: Sequence[Case], setting: Setting
) -> Callable[[int], int]:
    """The same batches through vLLM's own `LLM`, from token ids to texts, nothing swapped."""
    from vllm import LLM, SamplingParams  # after the engine has prepared this process for it

    llm = LLM(
        checkpoint.path,
        dtype="float32",
        enforce_eager=True,
        enable_chunked_prefill=False,
        block_size=32,
        max_model_len=setting.options["max_model_len"],
        kv_cache_memory_bytes=setting.options["kv_cache"],
        generation_config="vllm",
        use_tqdm_on_load=False,
    )
    tokenizer = llm.get_tokenizer()
    asked = [
        {"prompt_token_ids": ids}
        for case in cases
        for ids in [
            tokenizer.apply_chat_template(
                [dict(m) for m in case.messages], add_generation_prompt=True, return_dict=False
            )
        ]
        for _ in range(setting.n)
    ]

    def generate(seed: int) -> int:
        sampling = Sampling(n=setting.n, max_tokens=setting.tokens, seed=seed)
        seeds = [s for own in rollout.sampling_seeds(cases, sampling) for s in own]
        tokens = 0
        for _ in range(setting.checkpoints):
            llm.reset_prefix_cache()
            params = [
                SamplingParams(temperature=1.0, seed=s, max_tokens=setting.tokens) for s in seeds
            ]
            outputs = llm.generate(asked, params, use_tqdm=False)
            answers = [output.outputs[0] for output in outputs]
            tokens += sum(len(a.token_ids) - (a.finish_reason == "stop") for a in answers)
        return tokens

    return generate


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


def count(drawn: Sequence[Sequence[Any]]) -> int:
    return sum(r.completion.completion_tokens or 0 for rows in drawn for r in rows)


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
