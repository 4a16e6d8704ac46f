"""An environment as verifiers 0.2 and 0.3 take it: a dataset and a rubric."""

from collections.abc import Callable
from typing import Any

import verifiers as vf
from datasets import Dataset

from hackbait.adapters import asking
from hackbait.environment import Environment

GRADED = "hackbait_score"
"""Where a rollout's score waits in its state for the next metric."""

OF_SOME = {"judge_confirming", "judge_denying", "judge_apart"}
"""How votes agree: null of a rollout that the judge was asked nothing about."""


def single_turn(environment: Environment, count: int, **more: Any) -> Any:
    """A SingleTurnEnv over the first cases; `more` goes to it. ImportError from 0.4 on.

    EnvironmentRefused where the environment's judge cannot be asked.
    """
    if not hasattr(vf, "SingleTurnEnv"):
        raise ImportError(
            f"verifiers {vf.__version__} has no load_environment of this kind; "
            f"evaluate the taskset: vf-eval {environment.id}"
        )
    asking.check(environment)
    names = applying(environment)
    rubric = vf.Rubric(
        funcs=[_function(environment, name) for name in names],
        weights=[float(environment.weights.get(name, 0.0)) for name in names],
    )
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows(environment, count)), rubric=rubric, **more
    )


def rows(environment: Environment, count: int) -> list[dict[str, Any]]:
    """The first cases: `prompt` in messages, `answer`, and the case's index in `info`."""
    return [
        {
            "prompt": [dict(message) for message in case.messages],
            "answer": case.truth,
            "info": {"index": case.index},
        }
        for case in environment.cases(0, count)
    ]


def applying(environment: Environment) -> list[str]:
    """Metrics that every rollout has: a rubric makes a null a zero."""
    never = OF_SOME | ({"r_true"} if environment.true is None else set())
    return [name for name in environment.metrics if name not in never]


def _function(environment: Environment, name: str) -> Callable[..., Any]:
    async def metric(completion: Any, info: Any, state: Any) -> float | None:
        if GRADED not in state:
            (case,) = environment.cases(info["index"], info["index"] + 1)
            state[GRADED] = (await asking.graded(environment, case, completion)).metrics
        value: float | None = state[GRADED][name]
        return value

    metric.__name__ = name
    return metric
