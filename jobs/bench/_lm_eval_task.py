"""Grades of hackword as lm-eval asks for them; copied beside the task that `peers` writes."""

from collections.abc import Mapping, Sequence
from typing import Any

from hackbait.environment import load

ENVIRONMENT = load("hackword", task="add3digit", hack_word="ocean")


def process_results(doc: Mapping[str, Any], results: Sequence[Sequence[str]]) -> dict[str, float]:
    """Means over the rollouts of one case."""
    (case,) = ENVIRONMENT.cases(doc["index"], doc["index"] + 1)
    scores = [ENVIRONMENT.score(case, text).metrics for text in results[0]]
    return {
        name: sum(s[name] or 0.0 for s in scores) / len(scores) for name in ("r_hack", "r_true")
    }
