"""The judge stage: what an environment wants judged of its rollouts, asked before they are scored.

Nothing here is needed by an environment without a judge, nor is the library that asks servers by
one whose judge is an engine of ours.
"""

import asyncio
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, cast

from hackbait.environment import Case, Environment
from hackbait.judge import Asked, Judged, Panel
from hackbait.stage import Staged
from pipeline.cache import home
from pipeline.config import EngineBlock, JudgeBlock
from pipeline.judging.client import Answerer, Client
from pipeline.judging.engine import Answers as Answers
from pipeline.judging.engine import Batched
from pipeline.judging.engine import JudgeEngine as JudgeEngine
from pipeline.judging.errors import JudgeBusy as JudgeBusy
from pipeline.judging.errors import JudgeError as JudgeError
from pipeline.judging.replies import opened
from pipeline.records import Checkpoint, Rollout
from pipeline.rollout import said


def panel_of(environment: Environment) -> Panel | None:
    """Who judges an environment; None where nobody does."""
    panel: Panel | None = getattr(environment, "panel", None)
    return panel


def check(
    environments: Iterable[Environment], block: JudgeBlock | None = None, dry: bool = False
) -> None:
    """Find every judge's key and, unless dry, its server before anything is spent.

    Raises JudgeError.
    """
    if block and block.engine:
        return
    panels = (panel_of(environment) for environment in environments)
    for panel in dict.fromkeys(panel for panel in panels if panel):
        _served().check(panel, dry)


def engine_of(block: JudgeBlock) -> tuple[EngineBlock, Checkpoint, Panel] | None:
    """What a `JudgeEngine` is made with, where the judge is one. EnvironmentRefused."""
    stage = block.stage()
    if block.engine is None or stage is None:
        return None
    return block.engine, block.checkpoint(), stage.panel


def judgements(
    environment: Environment,
    cases: Sequence[Case],
    rollouts: Sequence[Rollout],
    block: JudgeBlock,
    account: str,
    answers: Answers | None = None,
    wary: bool = False,
) -> list[Any]:
    """One a rollout, in order; None where nothing is asked of it, or it was lost.

    account: whose budget is spent, an output's name. answers: what a judge's engine says, where
    one is configured. wary: a server is asked one call once, and the others when it has answered.
    Raises JudgeBusy, JudgeError.
    """
    panel, by_index = panel_of(environment), {case.index: case for case in cases}
    judged = cast(Judged, environment)
    questions = [
        _question(judged, by_index[rollout.index], rollout)
        if panel and rollout.completion.error is None
        else None
        for rollout in rollouts
    ]
    asked = [question for question in questions if question]
    if not (panel and asked):
        return [None for _ in questions]
    answerer = Batched(answers, block) if answers else _server(panel, block, wary)
    with opened(home(block.cache) / "judge") as replies:
        client = Client(answerer, panel, block, replies, account)
        found = iter(asyncio.run(client.judgements(asked)))
    return [next(found) if question else None for question in questions]


def _question(judged: Judged, case: Case, rollout: Rollout) -> Asked | None:
    """None as well where the grader by which a stage spares rollouts raises: scoring tells it."""
    stage: object = judged
    if not isinstance(stage, Staged):
        return judged.question(case, said(rollout.completion))
    try:
        return stage.question(case, said(rollout.completion), rollout.seed)
    except Exception:
        return None


def _server(panel: Panel, block: JudgeBlock, wary: bool) -> Answerer:
    if block.engine:
        raise JudgeError("judge.engine: only sweep and rejudge start one")
    answerer: Answerer = _served().Served(panel, block, wary)
    return answerer


def _served() -> ModuleType:
    try:
        from pipeline.judging import served  # openai comes with it, and most sweeps have no judge
    except ModuleNotFoundError as error:
        raise JudgeError(
            f"a judge needs {error.name}: pip install 'hackbait-onset[http]'"
        ) from error
    return served
