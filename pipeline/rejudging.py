"""Stored rollouts under another grade: planned from what an output holds, with no inference."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hackbait.environment import Case, canonical
from hackbait.stage import Stage, unstaged
from pipeline import contents, store
from pipeline.actors import Scorer, make_cases
from pipeline.arguments import resolve
from pipeline.config import EngineBlock, EnvironmentBlock, JudgeBlock
from pipeline.holdings import Held, StoreError, folder_of, holdings
from pipeline.judging import Answers
from pipeline.places import Where
from pipeline.plan import build, key_of
from pipeline.records import (
    Checkpoint,
    Completion,
    EnvironmentSpec,
    Generated,
    Partition,
    PlanError,
    Rollout,
    Sampling,
    Shard,
    Span,
    Work,
    Written,
)
from pipeline.rollout import prompt_id
from pipeline.runs import Run

GRADER = "grader:"
"""How the null reason of a rollout begins that only a grader failed on."""


@dataclass(frozen=True, slots=True)
class Again:
    """A stored partition, and the one that it becomes."""

    held: Held
    work: Work

    @property
    def partition(self) -> Partition:
        return self.work.partitions[0]


def plan(out: Where, block: EnvironmentBlock, stage: Stage | None = None) -> list[Again]:
    """Each new partition once: partitions that differ in what is replaced become the same.

    Raises StoreError, EnvironmentRefused, and PlanError for an argument that changes the prompts.
    """
    held = holdings(out, folder_of(block.id)).held
    if not held:
        raise StoreError(f"{out}: it holds no rollouts of env {block.id!r}")
    tags = store.run_tags(out)
    found: dict[str, Again] = {}
    for one, record in zip(held, contents.footers(held), strict=True):
        args = dict(resolve(block, Run(one.run, (), tags.get(one.run, {}))))
        again = Again(one, _work(record["identity"], args, stage))
        found.setdefault(again.partition.key, again)
    return list(found.values())


def _work(old: Mapping[str, Any], args: Mapping[str, Any], stage: Stage | None) -> Work:
    said = {**old["ask"], **unstaged(old["grade"]), **args}
    spec = EnvironmentSpec(old["env"], tuple(sorted(said.items())), stage)
    environment = build(spec)
    if environment.version != old["env_version"]:
        raise PlanError(
            f"env: the rollouts were asked by {old['env']} {old['env_version']}, here is "
            f"{environment.version}, whose prompts may differ; sweep again"
        )
    for name, value in environment.ask.items():
        if value != old["ask"].get(name):
            raise PlanError(
                f"env: {name} = {value!r} changes what is asked, which was {old['ask'].get(name)!r}"
                "; only what is graded can change without a new sweep"
            )
    grade = {"grade": dict(environment.grade), "grader_fingerprint": environment.fingerprint}
    identity = canonical({**old, **grade})
    run, step, shard = old["run"], old["step"], Shard(old["start"], old["stop"])
    partition = Partition(run, step, spec, shard, key_of(identity), identity)
    checkpoint = Checkpoint(run, step, "", "full", old["checkpoint"])
    return Work(checkpoint, spec, shard, Sampling(**old["sampling"]), (partition,))


def write(
    again: Again,
    out: Where,
    judge: JudgeBlock,
    provenance: Mapping[str, Any],
    answers: Answers | None = None,
) -> list[Written]:
    """Grade the stored rollouts and commit them; answers: what a judge's engine says.

    Raises StoreError, JudgeBusy, JudgeError.
    """
    work, held = again.work, again.held
    table = contents.read(held)
    rows = table.to_pylist()
    cases = make_cases(work.environment, work.shard)
    _refuse_other_prompts(held, rows, cases)
    (footer,) = contents.footers([held])
    before = {"options": footer["options"]} if "options" in footer else {}
    graded = {"key": held.key, "rows_hash": footer.get("rows_hash")}
    told = {"rejudged": graded, **before, **provenance}
    engine = EngineBlock(name=footer["identity"]["engine"], dtype=footer["identity"]["dtype"])
    scorer = Scorer(out, engine, told, judge=judge, answers=answers)
    return scorer.write(work, cases, [_generated(rows[0])], rollouts(rows))


def _refuse_other_prompts(
    held: Held, rows: Sequence[Mapping[str, Any]], cases: Sequence[Case]
) -> None:
    due = {case.index: prompt_id(case) for case in cases}
    if not rows or any(due.get(row["index"]) != row["prompt_id"] for row in rows):
        raise StoreError(
            f"{held.at}: its prompts are not those that its environment asks here; grade it with "
            "the version that asked"
        )


def rollouts(rows: Sequence[Mapping[str, Any]]) -> list[Rollout]:
    """As they were generated; what only a grader failed on is graded again."""
    found = []
    for row in sorted(rows, key=lambda row: (row["index"], row["sample"])):
        why = row["null_reason"]
        completion = Completion(
            row["completion"],
            row["finish_reason"],
            row["prompt_tokens"],
            row["completion_tokens"],
            None if why and why.startswith(GRADER) else why,
            row.get("reasoning"),
        )
        found.append(Rollout(row["index"], row["sample"], row["sampling_seed"], completion))
    return found


def _generated(row: Mapping[str, Any]) -> Generated:
    never = Span(0.0, 0.0)
    return Generated(row["fingerprint"], row["determinism"], os.getpid(), never, never, 0)
