"""What a sweep of the tiny policy costs with the tools that people use, over what ours costs.

python -m jobs.bench.peers                                   # bare vLLM, a new process a checkpoint
python -m jobs.bench.peers --lm-eval PEER/bin/python --verifiers OTHER/bin/python
python -m jobs.bench.peers --checkpoints 2                   # a first look

hackword add3digit, 128 cases x 4 rollouts of 32 tokens, float32, one thread, vLLM with the same
settings everywhere. Ours is one live engine that takes one checkpoint after the other, grades
included. CPU seconds are of every process of a peer, from its start to its end, checkpoint by
checkpoint: `LLM.generate` on the same token ids and seeds, nothing graded; lm-eval with its vLLM
model, graded; a verifiers evaluation, graded, against `vllm serve`, without its process a rollout.
lm-eval and verifiers draw without a seed a rollout, which is cheaper. Their flags name interpreters
that have them; beside our packages, for lm-eval is to find our vLLM, each comes as

python -m venv PEER
realpath .venv/lib/*/site-packages > ours.pth && mv ours.pth PEER/lib/*/site-packages
PEER/bin/pip install lm-eval         # or 'verifiers>=0.4,<0.5'
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hackbait.environment import load
from jobs.bench import _machine, _vllm_server
from jobs.bench._batches import bare_generate, count
from jobs.bench._models import variants
from jobs.bench._peer_place import ROLLOUTS, SETTING, Cost, PeerFailed, Place, prepared
from pipeline import engines, rollout
from pipeline.engines.vllm.start import ready
from pipeline.records import Checkpoint

LONG = True
CHECKPOINTS, LIMIT_RESTART = 8, 5
VLLM: dict[str, Any] = {
    "dtype": "float32",
    "enforce_eager": True,
    "enable_chunked_prefill": False,
    "block_size": 32,
    "max_model_len": SETTING.options["max_model_len"],
    "kv_cache_memory_bytes": SETTING.options["kv_cache"],
    "generation_config": "vllm",
}
"""What `pipeline/engines/vllm` starts vLLM with on a CPU."""
Peer = Callable[[Place, Checkpoint], Cost]
Guest = Callable[[str, Place, Checkpoint], Cost]
"""A peer in an interpreter of its own."""
FOUND = "import importlib.util as i, sys; sys.exit(not all(map(i.find_spec, sys.argv[1:])))"


def run(
    count: int = CHECKPOINTS, lm_eval: str | None = None, verifiers: str | None = None
) -> list[dict[str, Any]]:
    """Two rows a peer. Ours is swept before and after the peers."""
    peers: dict[str, Peer] = {"LLM.generate in a new process": restarted}
    peers |= guest("lm-eval", "lm_eval vllm", lm_eval, with_lm_eval)
    peers |= guest("verifiers", "verifiers.v1", verifiers, with_verifiers)
    with tempfile.TemporaryDirectory() as folder:
        place = prepared(Path(folder))
        checkpoints = list(variants("tiny", Path(folder), count))
        sweeps = [ours(place, checkpoints)]
        costs = {name: sweep(name, peer, place, checkpoints) for name, peer in peers.items()}
        sweeps.append(ours(place, checkpoints))
        tokens = sweeps[0].tokens
        if costs["LLM.generate in a new process"].tokens != tokens:
            raise PeerFailed(f"LLM.generate gave other rollouts than our {tokens} tokens")
    return [row for name, cost in costs.items() for row in rows(name, cost, sweeps, count)]


def rows(peer: str, cost: Cost, sweeps: Sequence[Cost], count: int) -> list[dict[str, Any]]:
    """CPU of a peer over ours: of this sweep, and of each checkpoint after the first."""
    ours = statistics.mean(s.cpu for s in sweeps)
    wall = statistics.mean(s.wall for s in sweeps)
    each = statistics.mean(further(s, count) for s in sweeps)
    claimed = peer.startswith("LLM.generate")
    following = cost.cpu / count
    return [
        {
            "name": f"{peer}: {count} checkpoints x {ROLLOUTS} rollouts, CPU {cost.cpu:.0f} s over "
            f"{ours:.0f} s (wall {cost.wall:.0f} s over {wall:.0f} s)",
            **figure(cost.cpu / ours, None),
        },
        {
            "name": f"{peer}: each further checkpoint, CPU {following:.1f} s over {each:.1f} s",
            **figure(following / each, LIMIT_RESTART if claimed else None),
        },
    ]


def figure(value: float, limit: float | None) -> dict[str, Any]:
    """A ratio, with the limit that is claimed for it."""
    ok = limit is None or value >= limit
    return {
        "value": value,
        "unit": "x",
        "limit": "" if limit is None else f">= {limit:g}",
        "ok": ok,
    }


def further(cost: Cost, count: int) -> float:
    """CPU seconds of a checkpoint after the first; of the whole where there is one alone."""
    return (cost.last - cost.first) / (count - 1) if count > 1 else cost.cpu


def sweep(name: str, peer: Peer, place: Place, checkpoints: Sequence[Checkpoint]) -> Cost:
    """One checkpoint after the other. Raises PeerFailed when a rollout is missing."""
    costs = []
    for checkpoint in checkpoints:
        cost = peer(place, checkpoint)
        print(f"{name}: {cost}", file=sys.stderr, flush=True)
        if cost.rollouts != ROLLOUTS:
            raise PeerFailed(f"{name}: {cost.rollouts} rollouts in place of {ROLLOUTS}")
        costs.append(cost)
    tokens = [c.tokens for c in costs if c.tokens is not None]
    return Cost(
        cpu=sum(c.cpu for c in costs),
        wall=sum(c.wall for c in costs),
        rollouts=sum(c.rollouts for c in costs),
        tokens=sum(tokens) if len(tokens) == len(costs) else None,
    )


def guest(name: str, modules: str, python: str | None, peer: Guest) -> dict[str, Peer]:
    """The peer, where its interpreter was named and has what it needs; else a line that says so."""
    if python is None:
        hint = "python -m jobs.bench.peers --help says how to make one"
        print(f"{name} was left out: --{name} names no interpreter; {hint}", file=sys.stderr)
        return {}
    command = shutil.which(python)
    if command is None or subprocess.run([command, "-c", FOUND, *modules.split()]).returncode:
        print(f"{name} was left out: {python} has not all of {modules}", file=sys.stderr)
        return {}
    interpreter = str(Path(command).absolute())
    return {name: lambda place, checkpoint: peer(interpreter, place, checkpoint)}


def ours(place: Place, checkpoints: Sequence[Checkpoint]) -> Cost:
    """A process of ours for all checkpoints."""
    command = [sys.executable, "-m", "jobs.bench.peers", "--ours", *(c.path for c in checkpoints)]
    cpu, wall, said = place.spend(command)
    cost = Cost(cpu, wall, **json.loads(said.splitlines()[-1]))
    print(f"ours: {cost}", file=sys.stderr, flush=True)
    return cost


def sweep_live(folders: Sequence[str]) -> dict[str, Any]:
    """Swap, generate and grade; CPU seconds of this process at the first and last grade."""
    engine: Any = engines.load("vllm", SETTING.options)
    environment = load("hackword", task="add3digit", hack_word="ocean")
    cases = environment.cases(0, SETTING.cases)
    spent, graded, tokens = [], 0, 0
    for folder in folders:
        engine.load(Checkpoint("bench", 0, folder, "full", ""))
        drawn = rollout.generate(engine, cases, SETTING.sampling)
        graded += len(rollout.score(environment, cases, drawn))
        tokens += count([drawn])
        spent.append(_machine.cpu_seconds(os.getpid()))
    return {"rollouts": graded, "tokens": tokens, "first": spent[0], "last": spent[-1]}


def restarted(place: Place, checkpoint: Checkpoint) -> Cost:
    """A process of vLLM's own `LLM` for one checkpoint."""
    command = [sys.executable, "-m", "jobs.bench.peers", "--restarted", checkpoint.path]
    cpu, wall, said = place.spend(command)
    return Cost(cpu, wall, ROLLOUTS, int(said.splitlines()[-1]))


def generate_alone(folder: str) -> int:
    """Tokens of the rollouts of one checkpoint, by `LLM.generate` in this process."""
    ready()
    cases = load("hackword", task="add3digit").cases(0, SETTING.cases)
    checkpoint = Checkpoint("bench", 0, folder, "full", "")
    return bare_generate(checkpoint, None, cases, SETTING)(SETTING.sampling.seed)


def with_lm_eval(python: str, place: Place, checkpoint: Checkpoint) -> Cost:
    """A process of lm-eval with its vLLM model, as its command line starts it."""
    output = Path(tempfile.mkdtemp(dir=place.folder))
    model = json.dumps({"pretrained": checkpoint.path, **VLLM})
    command = [
        *(python, "-m", "lm_eval", "run", "--model", "vllm", "--model_args", model),
        *("--tasks", "hackword_peer", "--include_path", str(place.folder), "--log_samples"),
        *("--apply_chat_template", "--batch_size", "auto", "--output_path", str(output)),
    ]
    cpu, wall, _ = place.spend(command)
    (samples,) = output.rglob("samples_*.jsonl")
    drawn = (json.loads(line)["resps"][0] for line in samples.read_text("utf-8").splitlines())
    return Cost(cpu, wall, sum(map(len, drawn)))


def with_verifiers(python: str, place: Place, checkpoint: Checkpoint) -> Cost:
    """A server of one checkpoint, and the evaluation that asks it."""
    output = Path(tempfile.mkdtemp(dir=place.folder))
    began = time.perf_counter()
    with _vllm_server.serving(checkpoint.path, VLLM, place.folder, place.environment) as server:
        command = [
            *(str(Path(python).with_name("vf-eval")), "hackword_peer", "-m", "peer"),
            *("-n", str(SETTING.cases), "-r", str(SETTING.n), "-c", "128", "-o", str(output)),
            *("--client.base-url", f"http://127.0.0.1:{server.port}/v1"),
            *("--client.api-key-var", "PEER_KEY", "--sampling.temperature", "1"),
            *("--sampling.max-tokens", str(SETTING.tokens), "--no-push", "--no-rich"),
            *("--env.retries.max-retries", "3"),  # a broken connection is a lost rollout else
        ]
        asking, _, _ = place.spend(command)
        serving = _machine.cpu_seconds(server.process.pid)
    (traces,) = output.rglob("traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text("utf-8").splitlines()]
    wall = time.perf_counter() - began
    return Cost(asking + serving, wall, sum(episode["ok"] for episode in episodes))


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--ours"]:
        print(json.dumps(sweep_live(argv[1:])))
        return 0
    if argv[:1] == ["--restarted"]:
        print(generate_alone(argv[1]))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoints", type=int, default=CHECKPOINTS)
    parser.add_argument("--lm-eval", metavar="PYTHON")
    parser.add_argument("--verifiers", metavar="PYTHON")
    chosen = parser.parse_args(argv)
    if chosen.checkpoints < 1:
        parser.error(f"--checkpoints {chosen.checkpoints}: at least 1")
    print(_machine.describe())
    try:
        figures = run(chosen.checkpoints, chosen.lm_eval, chosen.verifiers)
    except (PeerFailed, _vllm_server.ServerFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for row in figures:
        limit = f" ({row['limit']})" if row["limit"] else ""
        print(f"{row['name']}: {row['value']:.2f} {row['unit']}{limit}")
    return 0 if all(row["ok"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
