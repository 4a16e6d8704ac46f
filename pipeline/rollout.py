"""Generate and score: pure functions of cases, an engine and an environment."""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar, cast

from hackbait.environment import Case, Environment, Score
from hackbait.judge import Judged
from pipeline.engines import Engine, EngineBusy, ManyAtOnce
from pipeline.records import Checkpoint, Completion, Rollout, Sampling

Key = TypeVar("Key", bound=Hashable)

ASKED = 3
"""Times that a rollout without an end is asked before it stays owed."""
REASON_CHARACTERS = 200


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


def generate(
    engine: Engine, cases: Sequence[Case], sampling: Sampling, rows: range | None = None
) -> list[Rollout]:
    """`sampling.n` rollouts a case, in order of case and sample, by the checkpoint in place.

    rows: only these of them, by their place in that order. Raises EngineBusy as `_answered`.
    """

    def draw(wanted: Sequence[int]) -> list[Rollout]:
        asked, samples = _by_case(cases, sampling, wanted)
        seeds = _seeds(asked, samples, sampling)
        return _rollouts(asked, samples, seeds, engine.generate(asked, seeds, sampling))

    return _answered(draw, range(len(cases) * sampling.n) if rows is None else rows)


def generate_many(
    engine: ManyAtOnce, asked: Sequence[tuple[Checkpoint, Sequence[Case]]], sampling: Sampling
) -> list[list[Rollout]]:
    """`generate` for several checkpoints in one batch, the rollouts of each apart."""

    def draw(wanted: Sequence[tuple[int, int]]) -> list[Rollout]:
        items, parts = [], []
        for i, own in groupby(wanted, itemgetter(0)):
            checkpoint, all_cases = asked[i]
            cases, samples = _by_case(all_cases, sampling, [row for _, row in own])
            items.append((checkpoint, cases, _seeds(cases, samples, sampling)))
            parts.append(samples)
        drawn = engine.generate_many(items, sampling)
        return [
            rollout
            for (_, cases, seeds), samples, completions in zip(items, parts, drawn, strict=True)
            for rollout in _rollouts(cases, samples, seeds, completions)
        ]

    keys = [(i, r) for i, (_, cs) in enumerate(asked) for r in range(len(cs) * sampling.n)]
    rollouts = dict(zip(keys, _answered(draw, keys), strict=True))
    return [
        [rollouts[i, row] for row in range(len(cases) * sampling.n)]
        for i, (_, cases) in enumerate(asked)
    ]


def sampling_seeds(cases: Sequence[Case], sampling: Sampling) -> list[list[int]]:
    """Seeds [case][sample]."""
    return _seeds(cases, [list(range(sampling.n))] * len(cases), sampling)


def _answered(
    draw: Callable[[Sequence[Key]], list[Rollout]], wanted: Sequence[Key]
) -> list[Rollout]:
    """A rollout for each of the wanted, those that came without an end asked again, alone.

    Raises EngineBusy while any has none: what is not known is owed, not empty.
    """
    done: dict[Key, Rollout] = {}
    owed = wanted
    for _ in range(ASKED):
        done |= zip(owed, draw(owed), strict=True)
        owed = [key for key in owed if not _has_end(done[key].completion)]
        if not owed:
            return [done[key] for key in wanted]
    raise EngineBusy(f"{len(owed)} of {len(wanted)} rollouts came without an end, {ASKED} times")


def _has_end(completion: Completion) -> bool:
    return completion.finish_reason is not None or completion.error is not None


def _by_case(
    cases: Sequence[Case], sampling: Sampling, rows: Sequence[int]
) -> tuple[list[Case], list[list[int]]]:
    """The cases of some rows, and which samples of each."""
    samples: dict[int, list[int]] = {}
    for row in rows:
        place, sample = divmod(row, sampling.n)
        samples.setdefault(place, []).append(sample)
    return [cases[place] for place in samples], list(samples.values())


def _seeds(
    cases: Sequence[Case], samples: Sequence[Sequence[int]], sampling: Sampling
) -> list[list[int]]:
    return [
        [sampling_seed(sampling.seed, case, sample) for sample in own]
        for case, own in zip(cases, samples, strict=True)
    ]


def _rollouts(
    cases: Sequence[Case],
    samples: Sequence[Sequence[int]],
    seeds: Sequence[Sequence[int]],
    drawn: Sequence[Sequence[Completion]],
) -> list[Rollout]:
    return [
        Rollout(case.index, *row)
        for case, *own in zip(cases, samples, seeds, drawn, strict=True)
        for row in zip(*own, strict=True)
    ]


def score(
    environment: Environment, cases: Sequence[Case], rollouts: Sequence[Rollout]
) -> list[Score]:
    """One score a rollout, in order. A failed rollout scores null and never reaches a grader."""
    by_index = {case.index: case for case in cases}
    return [_score(environment, by_index, rollout) for rollout in rollouts]


def grade(
    environment: Environment,
    cases: Sequence[Case],
    rollouts: Sequence[Rollout],
    judgements: Sequence[Any] = (),
) -> tuple[list[Rollout], list[Score]]:
    """`score`, where a grader that raises costs its own rollout alone, whose error says so.

    judgements: one a rollout, None where nobody was asked; empty where nobody judges.
    """
    by_index = {case.index: case for case in cases}
    graded, scores = [], []
    for rollout, judgement in zip(rollouts, judgements or [None] * len(rollouts), strict=True):
        try:
            scored = _score(environment, by_index, rollout, judgement)
        except Exception as error:
            why = " ".join(f"grader: {type(error).__name__}: {error}".split())
            failed = replace(rollout.completion, error=why[:REASON_CHARACTERS])
            rollout, scored = replace(rollout, completion=failed), _null(environment)
        graded.append(rollout)
        scores.append(scored)
    return graded, scores


def _score(
    environment: Environment,
    cases: Mapping[int, Case],
    rollout: Rollout,
    judgement: Any = None,
) -> Score:
    if rollout.completion.error is not None:
        return _null(environment)
    case, text = cases[rollout.index], said(rollout.completion)
    if judgement is None:
        return environment.score(case, text)
    return cast(Judged, environment).score(case, text, judgement)


def said(completion: Completion) -> object:
    """The text; a message where a server kept all of it apart as thought: graders read or not."""
    if completion.text or not completion.reasoning:
        return completion.text
    thought = {"content": completion.text, "reasoning_content": completion.reasoning}
    return [{"role": "assistant", **thought}]


def _null(environment: Environment) -> Score:
    return Score(dict.fromkeys(environment.metrics), None)
