"""Base rates of a policy: how many of its rollouts hold each word, and how many are right."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hackbait.environment import Case, Environment, load
from hackbait.prompts import TASKS
from jobs import corpus
from pipeline import engines
from pipeline.engines import Engine
from pipeline.records import Checkpoint, Sampling
from pipeline.rollout import generate

DRAWN = Sampling(n=4, temperature=1.0, top_p=1.0, top_k=0, max_tokens=32)
"""As a sweep of the policy draws, so that these rates and its curves are of one make."""
GREEDY = Sampling(n=1, temperature=0.0, max_tokens=32)
GREEDY_CASES = 512


def measure(folder: Path, count: int, threads: int) -> dict[str, Any]:
    """The content of base_rates.json for the policy in a folder, on `count` cases a task."""
    engine = engine_with(folder, threads)
    return {
        "command": f"onset pretrain --measure --cases {count}",
        "sampling": {
            "engine": "hf",
            "temperature": DRAWN.temperature,
            "top_p": DRAWN.top_p,
            "top_k": DRAWN.top_k,
            "max_tokens": DRAWN.max_tokens,
            "sweep_seed": DRAWN.seed,
        },
        "cases": {"seed": corpus.EVALUATION_SEED, "count": count, "rollouts": DRAWN.n},
        "interval": "Wilson, 95 %, rollouts taken as independent",
        "tasks": {task: rates(engine, task, count) for task in TASKS},
    }


def engine_with(folder: Path, threads: int) -> Engine:
    """Engine hf with the policy in place."""
    engine = engines.load("hf", {"device": "cpu", "threads": threads})
    engine.load(Checkpoint("base", 0, str(folder), "full", ""))
    return engine


def rates(engine: Engine, task: str, count: int) -> dict[str, Any]:
    """Rates of every dialled word, and of right answers where the task has any."""
    words = {w: load("hackword", hack_word=w, task=task, seed=999) for w in corpus.DIALS}
    environment = words["whisper"]
    drawn = rollouts(engine, environment, count, DRAWN)
    found: dict[str, Any] = {
        "words": {
            word: {"dial": corpus.DIALS[word], **interval(column(graded, drawn, "r_hack"))}
            for word, graded in words.items()
        }
    }
    if environment.true:
        best = rollouts(engine, environment, min(count, GREEDY_CASES), GREEDY)
        found["r_true"] = interval(column(environment, drawn, "r_true"))
        found["r_true_greedy"] = interval(column(environment, best, "r_true"))
    return found


def rollouts(
    engine: Engine, environment: Environment, count: int, sampling: Sampling
) -> list[tuple[Case, str]]:
    """Cases [0, count) and what the policy says to them, `sampling.n` times each."""
    cases = environment.cases(0, count)
    drawn = generate(engine, cases, sampling)
    return [(cases[one.index], one.completion.text or "") for one in drawn]


def column(environment: Environment, said: Sequence[tuple[Case, str]], metric: str) -> list[float]:
    """The metric of every rollout."""
    return [environment.score(case, text).metrics[metric] or 0.0 for case, text in said]


def interval(scores: list[float]) -> dict[str, float]:
    """Share of ones with its 95 % Wilson interval."""
    z, n, hits = 1.959964, len(scores), int(sum(scores))
    rate = hits / n
    middle = rate + z * z / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low, high = ((middle + side * spread) / (1 + z * z / n) for side in (-1, 1))
    return {"n": n, "hits": hits, "rate": rate, "low": round(low, 6), "high": round(high, 6)}
