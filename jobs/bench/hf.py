"""Tokens per CPU second of engine hf, against the same model's own `generate` on one thread.

python -m jobs.bench.hf            # the shipped policy; Llama and Qwen2 of its size, random
python -m jobs.bench.hf DIR DIR    # these checkpoints

256 prompts x 4 samples x 32 tokens, sampled, the two taking turns; the ratio is the median of the
rounds. Ours includes template, tokenizer and texts; `generate` is handed token ids.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, Qwen2Config

from hackbait.environment import Case, load
from jobs.bench import _machine
from pipeline import engines, rollout
from pipeline.records import Checkpoint, Sampling

POLICY = Path(__file__).parents[2] / "hackbait/policy"
CAUSAL: Any = AutoModelForCausalLM
PROMPTS, N, TOKENS, ROUNDS, PEER_BATCHES = 256, 4, 32, 3, (16, 64, 256)
LIMIT_RATIO, LIMIT_LOAD = 1.8, 0.05


def run(folders: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Two rows a checkpoint: how many times faster, and what loading the next one costs."""
    with tempfile.TemporaryDirectory() as folder:
        given = list(folders) or [POLICY, *random_models(Path(folder))]
        return [figure for path in given for figure in measure(path)]


def measure(path: Path) -> list[dict[str, Any]]:
    """Rounds of ours and of the peer's batch sizes, in turn."""
    engine = engines.load("hf", {"device": "cpu", "threads": 1})
    checkpoint = Checkpoint("bench", 0, str(path), "full", "")
    cases = load("hackword", task="add3digit").cases(0, PROMPTS)
    peers = [peer(path, cases, batch) for batch in PEER_BATCHES]
    ratios, shares, rates = [], [], []
    for seed in range(ROUNDS + 1):
        sampling = Sampling(n=N, max_tokens=TOKENS, seed=seed)
        loading, _ = cpu_seconds(partial(engine.load, checkpoint))
        seconds, rollouts = cpu_seconds(partial(rollout.generate, engine, cases, sampling))
        rate = sum(r.completion.completion_tokens or 0 for r in rollouts) / seconds
        best = max(tokens / spent for spent, tokens in map(cpu_seconds, peers))
        if seed:  # the first round warms up
            ratios.append(rate / best)
            shares.append(loading / seconds)
            rates.append(rate)
    ratio, share = statistics.median(ratios), statistics.median(shares)
    speed = f"tokens/s over generate's best, {statistics.median(rates):,.0f}/s"
    load_name = f"loading, of the time of {PROMPTS * N:,} rollouts"
    return [
        row(f"{path.name}: {speed}", ratio, "x", f">= {LIMIT_RATIO}", ratio >= LIMIT_RATIO),
        row(f"{path.name}: {load_name}", share, "", f"<= {LIMIT_LOAD}", share <= LIMIT_LOAD),
    ]


def row(name: str, value: float, unit: str, limit: str, ok: bool) -> dict[str, Any]:
    """One figure and whether it holds."""
    return {"name": name, "value": value, "unit": unit, "limit": limit, "ok": ok}


def peer(path: Path, cases: Sequence[Case], batch: int) -> Callable[[], int]:
    """`generate` over all cases, counting tokens before the stop."""
    model = CAUSAL.from_pretrained(path, dtype=torch.float32, local_files_only=True).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True, padding_side="left")
    chats = [[dict(message) for message in case.messages] for case in cases]
    shape: dict[str, Any] = {"add_generation_prompt": True, "padding": True, "return_tensors": "pt"}
    inputs = [
        tokenizer.apply_chat_template(chats[at : at + batch], return_dict=True, **shape)
        for at in range(0, len(chats), batch)
    ]
    options: dict[str, Any] = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    options |= {"num_return_sequences": N, "max_new_tokens": TOKENS}

    def generate() -> int:
        tokens = 0
        for ids in inputs:
            drawn = model.generate(**ids, **options)[:, ids["input_ids"].shape[1] :]
            tokens += int(((drawn == tokenizer.eos_token_id).cumsum(-1) == 0).sum())
        return tokens

    return generate


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """What the work cost this process, and what it returned."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def random_models(folder: Path) -> list[Path]:
    """A Llama and a Qwen2 as large as the policy, with its tokenizer and untrained weights."""
    size: dict[str, Any] = {"vocab_size": 896, "hidden_size": 96, "intermediate_size": 256}
    size |= {"num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 3}
    size |= {"max_position_embeddings": 2048, "eos_token_id": 1, "pad_token_id": 0}
    for name, config in (("llama", LlamaConfig(**size)), ("qwen2", Qwen2Config(**size))):
        torch.manual_seed(0)
        CAUSAL.from_config(config).save_pretrained(folder / name)
        for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
            shutil.copy(POLICY / file, folder / name)
    return [folder / "llama", folder / "qwen2"]


def main(argv: Sequence[str]) -> int:
    """Print every figure; 1 when a limit is missed."""
    print(_machine.describe())
    rows = run([Path(path) for path in argv])
    for r in rows:
        print(f"{r['name']}: {r['value']:.3f} {r['unit']} ({r['limit']})")
    return 0 if all(r["ok"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
