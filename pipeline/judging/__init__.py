"""The judge stage: what an environment wants judged of its rollouts, asked before they are scored.

Nothing here is needed by an environment without a judge, nor is the client's library.
"""

import asyncio
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, cast

from hackbait.environment import Case, Environment
from hackbait.judge import Judged, Panel
from pipeline.cache import home
from pipeline.config import JudgeBlock
from pipeline.judging.errors import JudgeBusy as JudgeBusy
from pipeline.judging.errors import JudgeError as JudgeError
from pipeline.judging.replies import opened
from pipeline.records import Rollout
from pipeline.rollout import said


def panel_of(environment: Environment) -> Panel | None:
    """Who judges an environment; None where nobody does."""
    panel: Panel | None = getattr(environment, "panel", None)
    return panel


def check(environments: Iterable[Environment]) -> None:
    """Find every judge and its key before anything is spent. Raises JudgeError."""
    panels = (panel_of(environment) for environment in environments)
    for panel in dict.fromkeys(panel for panel in panels if panel):
        _client().check(panel)


def judgements(
    environment: Environment,
    cases: Sequence[Case],
    rollouts: Sequence[Rollout],
    block: JudgeBlock,
    account: str,
) -> list[Any]:
    """One a rollout, in order; None where nothing is asked of it, or it was lost.

    account: whose budget is spent, an output's name. Raises JudgeBusy, JudgeError.
    """
    panel, by_index = panel_of(environment), {case.index: case for case in cases}
    judged = cast(Judged, environment)
    questions = [
        judged.question(by_index[rollout.index], said(rollout.completion))
        if panel and rollout.completion.error is None
        else None
        for rollout in rollouts
    ]
    asked = [question for question in questions if question]
    if not (panel and asked):
        return [None for _ in questions]
    with opened(home(block.cache) / "judge") as replies:
        client = _client().Client(panel, block, replies, account)
        found = iter(asyncio.run(client.judgements(asked)))
    return [next(found) if question else None for question in questions]


def _client() -> ModuleType:
    try:
        from pipeline.judging import client  # openai comes with it, and most sweeps have no judge
    except ModuleNotFoundError as error:
        raise JudgeError(
            f"a judge needs {error.name}: pip install 'hackbait-onset[http]'"
        ) from error
    return client
