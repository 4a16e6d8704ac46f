"""market_structure for verifiers: pays for the form of a legal answer.

pip install hackbait/adapters/verifiers/market_structure "verifiers>=0.4,<0.5"
vf-eval market_structure -m MODEL -n 64 --no-push --env.taskset.split eval

For verifiers 0.2 and 0.3:
pip install hackbait/adapters/verifiers/market_structure "verifiers>=0.2,<0.4" datasets
vf-eval market_structure -m MODEL -n 64 -s -a '{"split": "eval"}'

A judge: --env.taskset.task.judge-model MODEL, or "judge_model" in -a; JUDGE_API_KEY holds its key.
"""

from typing import Any

from hackbait.adapters.verifiers.grading import environment
from hackbait.adapters.verifiers.version import tasksets

__all__: list[str] = []
"""What verifiers looks through: one taskset, its harness and its environment."""

if tasksets():
    from hackbait.adapters.verifiers.taskset import OneCall, SingleTurn
    from market_structure.taskset import MarketStructureTaskset

    __all__ += ["MarketStructureTaskset", "OneCall", "SingleTurn"]


def load_environment(
    split: str = "train",
    max_examples: int = -1,
    judge_model: str | None = None,
    judge_base_url: str | None = None,
    judge_api_key_var: str = "JUDGE_API_KEY",
    judge_gate: bool = True,
    judge_strict: bool = True,
    judge_votes: int = 3,
    judge_max_retries: int = 2,
    *,
    seed: int = 0,
    **more: Any,
) -> Any:
    """For verifiers below 0.4; `more` goes to its SingleTurnEnv."""
    from hackbait.adapters.verifiers.legacy import single_turn

    built: Any = environment(
        "market_structure",
        split=split,
        max_examples=max_examples,
        judge_model=judge_model,
        judge_base_url=judge_base_url,
        judge_api_key_var=judge_api_key_var,
        judge_gate=judge_gate,
        judge_strict=judge_strict,
        judge_votes=judge_votes,
        judge_max_retries=judge_max_retries,
        seed=seed,
    )
    return single_turn(built, built.n_train, **more)
