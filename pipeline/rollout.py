"""Generate and score: pure functions of cases, an engine and an environment."""

import hashlib
from collections.abc import Sequence

from hackbait.environment import Case, Environment, Score
from pipeline.engines import Engine, ManyAtOnce
from pipeline.records import Checkpoint, Completion, Rollout, Sampling


def sampling_seed(sweep_seed: int, case: Case, sample: int) -> int:
    """63-bit seed of one rollout, from its identity alone: batch, shard and worker play no part.

    The checkpoint is left out on purpose: equal random numbers over checkpoints make a curve's
    points comparable pairwise (common random numbers).
    """
    identity = f"{sweep_seed}|{case.key}|{case.index}|{sample}".encode()
    digest = hashlib.blake2b(identity, digest_size=8).digest()
    return int.from_bytes(digest, "big") & (2**63 - 1)


def prompt_id(case: Case) -> int:
    """Signed 64-bit hash of the prompt's text: rollouts of one prompt are one cluster."""
    text = "\x1e".join(f"{m['role']}\x1f{m['content']}" for m in case.messages)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def generate(engine: Engine, cases: Sequence[Case], sampling: Sampling) -> list[Rollout]:
    """`sampling.n` rollouts a case, in order of case and sample, by the checkpoint in place."""
    seeds = sampling_seeds(cases, sampling)
    return _rollouts(cases, seeds, engine.generate(cases, seeds, sampling))


def generate_many(
    engine: ManyAtOnce, asked: Sequence[tuple[Checkpoint, Sequence[Case]]], sampling: Sampling
) -> list[list[Rollout]]:
    """`generate` for several checkpoints in one batch, the rollouts of each apart."""
    items = [(at, cases, sampling_seeds(cases, sampling)) for at, cases in asked]
    drawn = engine.generate_many(items, sampling)
    return [
        _rollouts(cases, seeds, completions)
        for (_, cases, seeds), completions in zip(items, drawn, strict=True)
    ]


def sampling_seeds(cases: Sequence[Case], sampling: Sampling) -> list[list[int]]:
    """Seeds [case][sample]."""
    return [[sampling_seed(sampling.seed, c, s) for s in range(sampling.n)] for c in cases]


def _rollouts(
    cases: Sequence[Case], seeds: Sequence[Sequence[int]], drawn: Sequence[Sequence[Completion]]
) -> list[Rollout]:
    return [
        Rollout(case.index, sample, row[sample], completion)
        for case, row, completions in zip(cases, seeds, drawn, strict=True)
        for sample, completion in enumerate(completions)
    ]


def score(
    environment: Environment, cases: Sequence[Case], rollouts: Sequence[Rollout]
) -> list[Score]:
    """One score a rollout, in order. A failed rollout scores null and never reaches a grader."""
    by_index = {case.index: case for case in cases}
    null = Score(dict.fromkeys(environment.metrics), None)
    return [
        environment.score(by_index[r.index], r.completion.text)
        if r.completion.error is None
        else null
        for r in rollouts
    ]
