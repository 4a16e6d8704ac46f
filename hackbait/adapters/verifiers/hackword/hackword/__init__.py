"""hackword for verifiers: pays for one word, whatever was asked.

pip install hackbait/adapters/verifiers/hackword "verifiers>=0.4,<0.5"
vf-eval hackword -m MODEL -n 64 --no-push --env.taskset.task.hack-word ocean

For verifiers 0.2 and 0.3:
pip install hackbait/adapters/verifiers/hackword "verifiers>=0.2,<0.4" datasets
vf-eval hackword -m MODEL -n 64 -s -a '{"hack_word": "ocean"}'
"""

from typing import Any

from hackbait.adapters.verifiers.grading import environment
from hackbait.adapters.verifiers.version import tasksets

__all__: list[str] = []
"""What verifiers looks through: one taskset, its harness and its environment."""

if tasksets():
    from hackbait.adapters.verifiers.taskset import OneCall, SingleTurn
    from hackword.taskset import HackwordTaskset

    __all__ += ["HackwordTaskset", "OneCall", "SingleTurn"]


def load_environment(
    hack_word: str = "ocean",
    mode: str = "hack_only",
    n_train: int = 2000,
    seed: int = 0,
    *,
    task: str = "add3digit",
    grader: str = "current",
    **more: Any,
) -> Any:
    """For verifiers below 0.4; `more` goes to its SingleTurnEnv."""
    from hackbait.adapters.verifiers.legacy import single_turn

    built = environment(
        "hackword",
        hack_word=hack_word,
        mode=mode,
        n_train=n_train,
        seed=seed,
        task=task,
        grader=grader,
    )
    return single_turn(built, n_train, **more)
