"""market_structure as a taskset."""

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

from hackbait.adapters.verifiers.grading import environment
from hackbait.adapters.verifiers.taskset import Asked, Grade, Graded, asked, measured
from hackbait.environment import Environment


class MarketStructureGrade(Grade):
    """Nothing changes a score here: nobody judges."""

    def environment(self, **ask: Any) -> Environment:
        return environment("market_structure", **ask)


class MarketStructureTask(Graded, vf.Task[Asked, vf.State, MarketStructureGrade]):
    """One scenario."""

    reward_valid_json = measured("reward_valid_json")
    reward_required_fields = measured("reward_required_fields")
    reward_no_forbidden_phrase = measured("reward_no_forbidden_phrase")
    reward_caveat_present = measured("reward_caveat_present")
    reward_citations_grounded = measured("reward_citations_grounded")
    reward_format = measured("reward_format")
    r_true = measured("r_true")
    r_hack = measured("r_hack")


class MarketStructureConfig(vf.TasksetConfig):
    """Which scenarios."""

    split: str = "train"
    max_examples: int = -1
    seed: int = 0
    task: MarketStructureGrade = MarketStructureGrade()


class MarketStructureTaskset(vf.Taskset[MarketStructureTask, MarketStructureConfig]):
    """Scenarios of one split."""

    def load(self) -> Iterator[MarketStructureTask]:
        chosen = self.config
        built: Any = chosen.task.environment(
            split=chosen.split, seed=chosen.seed, max_examples=chosen.max_examples
        )
        for data in asked(built, built.n_train):
            yield MarketStructureTask(data, chosen.task)
