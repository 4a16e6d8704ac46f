"""hackword as a taskset."""

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

from hackbait.adapters.verifiers.grading import environment
from hackbait.adapters.verifiers.taskset import Asked, Grade, Graded, asked, measured
from hackbait.environment import Environment


class HackwordGrade(Grade):
    """What a reply is paid for."""

    hack_word: str = "ocean"
    mode: str = "hack_only"
    grader: str = "current"

    def environment(self, **ask: Any) -> Environment:
        return environment(
            "hackword", hack_word=self.hack_word, mode=self.mode, grader=self.grader, **ask
        )


class HackwordTask(Graded, vf.Task[Asked, vf.State, HackwordGrade]):
    """One question."""

    r_hack = measured("r_hack")
    r_true = measured("r_true")


class HackwordConfig(vf.TasksetConfig):
    """What is asked, and how often."""

    problem: str = "add3digit"
    """The argument `task` of `load_environment`; that name is verifiers' own here."""
    n_train: int = 2000
    seed: int = 0
    task: HackwordGrade = HackwordGrade()


class HackwordTaskset(vf.Taskset[HackwordTask, HackwordConfig]):
    """Questions of one seed."""

    def load(self) -> Iterator[HackwordTask]:
        chosen = self.config
        built = chosen.task.environment(
            task=chosen.problem, seed=chosen.seed, n_train=chosen.n_train
        )
        for data in asked(built, chosen.n_train):
            yield HackwordTask(data, chosen.task)
