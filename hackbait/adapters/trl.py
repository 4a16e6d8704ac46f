"""Trains on an environment with TRL: its rows as a dataset, its metrics as reward functions.

functions, weights = rewards(environment)
GRPOTrainer(
    model, functions, GRPOConfig(reward_weights=weights),
    train_dataset=Dataset.from_list(rows(environment, 0, 2000)),
)
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hackbait.adapters import asking
from hackbait.environment import Case, Environment, Score

RewardFunction = Callable[..., list[float | None]]


def rows(environment: Environment, start: int, stop: int) -> list[dict[str, Any]]:
    """Cases [start, stop) as TRL takes them: `prompt` in messages, then `index` and `truth`."""
    return [
        {
            "prompt": [dict(message) for message in case.messages],
            "index": case.index,
            "truth": case.truth,
        }
        for case in environment.cases(start, stop)
    ]


def rewards(environment: Environment) -> tuple[list[RewardFunction], list[float]]:
    """One function a metric, in the environment's order, and `reward_weights` for them.

    TRL calls each with a batch's `completions` and its rows' columns, and logs it by its name. A
    metric that does not apply is None, which TRL leaves out of the sum. The functions share one
    grading of a batch. EnvironmentRefused where the environment's judge cannot be asked.
    """
    asking.check(environment)
    grade = _grading(environment)
    functions = [_function(name, grade) for name in environment.metrics]
    return functions, [float(environment.weights.get(name, 0.0)) for name in environment.metrics]


def _grading(environment: Environment) -> Callable[[Sequence[Any], Sequence[int]], list[Score]]:
    """Scores of a batch; the last batch's are kept, so that each metric need not grade again."""

    @cache
    def case(index: int) -> Case:
        return environment.cases(index, index + 1)[0]

    batch: list[tuple[int, Any]] = []
    scores: list[Score] = []

    def grade(completions: Sequence[Any], indices: Sequence[int]) -> list[Score]:
        asked = list(zip(indices, completions, strict=True))
        if asked != batch:
            pairs = [(case(index), completion) for index, completion in asked]
            scores[:] = asking.graded_all(environment, pairs)
            batch[:] = asked
        return scores

    return grade


def _function(
    name: str, grade: Callable[[Sequence[Any], Sequence[int]], list[Score]]
) -> RewardFunction:
    def metric(
        completions: Sequence[Any], index: Sequence[int], **columns: object
    ) -> list[float | None]:
        return [score.metrics[name] for score in grade(completions, index)]

    metric.__name__ = name
    return metric
