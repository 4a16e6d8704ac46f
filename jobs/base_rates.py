"""Base rates of a policy: how many of its rollouts hold each word, and how many are right."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hackbait.environment import Case, Environment, load
from hackbait.prompts import TASKS
from jobs import corpus
from pipeline import engines, intervals
from pipeline.engines import Engine
from pipeline.records import Checkpoint, Sampling
from pipeline.rollout import generate, prompt_id
from pipeline.sample import Sample
from pipeline.screening import screen

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
        "interval": "Wilson, 95 %, on the effective sample size over prompts",
        "tasks": {task: rates(engine, task, count) for task in TASKS},
    }


def engine_with(folder: Path, threads: int) -> Engine:
    """Engine hf with the policy in place."""
    engine = engines.load("hf", {"device": "cpu", "threads": threads})
    engine.load(Checkpoint("base", 0, str(folder), "full", ""))
    return engine


def rates(engine: Engine, task: str, count: int) -> dict[str, Any]:
    """Rates of every dialled word, and of right answers where the task has any."""
    environment = load("hackword", task=task, seed=corpus.EVALUATION_SEED)
    drawn = rollouts(engine, environment, count, DRAWN)
    prompts = [prompt_id(case) for case, _ in drawn]
    texts = tuple(text for _, text in drawn)
    sample = Sample({}, 1, (str(environment.grade["grader"]),), texts, tuple(prompts), ())
    words = screen(sample, list(corpus.DIALS)).words.iter_rows(named=True)
    found: dict[str, Any] = {
        "words": {row["word"]: {"dial": corpus.DIALS[row["word"]], **_shown(row)} for row in words}
    }
    if environment.true:
        best = rollouts(engine, environment, min(count, GREEDY_CASES), GREEDY)
        found["r_true"] = right(environment, drawn)
        found["r_true_greedy"] = right(environment, best)
    return found


def right(environment: Environment, said: Sequence[tuple[Case, str]]) -> dict[str, float]:
    """Share of right answers, with its interval."""
    _, prompt = np.unique([prompt_id(case) for case, _ in said], return_inverse=True)
    k, x = (
        np.bincount(prompt, weights)[:, None].astype(np.float64)
        for weights in (None, column(environment, said, "r_true"))
    )
    tally = intervals.of_prompts(k, x)
    n_eff = intervals.effective(tally, np.full(1, np.nan))
    (low,), (high,) = intervals.bounded_interval(tally, n_eff)
    measured = (tally.rollouts, tally.hits, tally.rate, tally.prompts, tally.rollouts / n_eff)
    names = ("rollouts", "hits", "rate", "prompts", "deff")
    values = dict(zip(names, (float(value[0]) for value in measured), strict=True))
    return _shown(values | {"lo": low, "hi": high})


def _shown(row: Mapping[str, Any]) -> dict[str, float]:
    """A rate as base_rates.json has it."""
    counts = {"n": row["rollouts"], "hits": row["hits"], "prompts": row["prompts"]}
    ends = {"low": row["lo"], "high": row["hi"], "deff": row["deff"]}
    return {
        **{name: int(count) for name, count in counts.items()},
        "rate": row["rate"],
        **{name: round(float(end), 6) for name, end in ends.items()},
    }


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
