"""Builds an environment that grades here and now: without a judge, whose calls it cannot make."""

from functools import lru_cache
from typing import cast

from hackbait.environment import Arg, Environment, EnvironmentRefused, load


@lru_cache(maxsize=64)
def environment(id: str, **args: Arg | None) -> Environment:
    """The environment. EnvironmentRefused naming a wrong argument, and for a judge."""
    built = load(id, **cast(dict[str, Arg], args))
    if getattr(built, "panel", None) is not None:
        raise EnvironmentRefused(
            f"{id}: judge_model is set, and nobody is asked in verifiers; leave it out"
        )
    return built
