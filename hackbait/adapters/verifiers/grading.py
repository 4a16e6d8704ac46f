"""Builds an environment once a process, however many tasks are graded by it."""

from functools import lru_cache
from typing import cast

from hackbait.environment import Arg, Environment, load


@lru_cache(maxsize=64)
def environment(id: str, **args: Arg | None) -> Environment:
    """The environment. EnvironmentRefused naming a wrong argument."""
    return load(id, **cast(dict[str, Arg], args))
