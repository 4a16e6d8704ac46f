"""market_structure as a taskset."""

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

from hackbait.adapters import asking
from hackbait.adapters.verifiers.grading import environment
from hackbait.adapters.verifiers.taskset import Asked, Grade, Graded, asked, measured
from hackbait.environment import Environment


class MarketStructureGrade(Grade):
    """Who judges the citations that are grounded, if anybody does."""

    judge_model: str | None = None
    judge_base_url: str | None = None
    judge_api_key_var: str = "JUDGE_API_KEY"
    judge_gate: bool = True
    judge_strict: bool = True
    judge_votes: int = 3
    judge_max_retries: int = 2

    def environment(self, **ask: Any) -> Environment:
        return environment(
            "market_structure",
            judge_model=self.judge_model,
            judge_base_url=self.judge_base_url,
            judge_api_key_var=self.judge_api_key_var,
            judge_gate=self.judge_gate,
            judge_strict=self.judge_strict,
            judge_votes=self.judge_votes,
            judge_max_retries=self.judge_max_retries,
            **ask,
        )


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
    citations_pre_gate = measured("citations_pre_gate")
    citations_post_gate = measured("citations_post_gate")
    judge_gated = measured("judge_gated")
    judge_error = measured("judge_error")
    judge_confirming = measured("judge_confirming")
    judge_denying = measured("judge_denying")
    judge_apart = measured("judge_apart")


class MarketStructureConfig(vf.TasksetConfig):
    """Which scenarios."""

    split: str = "train"
    max_examples: int = -1
    seed: int = 0
    task: MarketStructureGrade = MarketStructureGrade()


class MarketStructureTaskset(vf.Taskset[MarketStructureTask, MarketStructureConfig]):
    """Scenarios of one split."""

    def __init__(self, config: MarketStructureConfig) -> None:
        """EnvironmentRefused where the judge cannot be asked, before anything is."""
        super().__init__(config)
        asking.check(config.task.environment())

    def load(self) -> Iterator[MarketStructureTask]:
        chosen = self.config
        built: Any = chosen.task.environment(
            split=chosen.split, seed=chosen.seed, max_examples=chosen.max_examples
        )
        for data in asked(built, built.n_train):
            yield MarketStructureTask(data, chosen.task)
