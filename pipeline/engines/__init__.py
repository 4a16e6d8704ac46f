"""One file an inference engine; the role they play and how one is found."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from hackbait.environment import Case
from pipeline.records import Checkpoint, Completion, Sampling


class Engine(Protocol):
    """A live model that takes one checkpoint after the other.

    An engine module has `build(**options) -> Engine`; its options are the TOML's `[engine]`.
    """

    determinism: str
    """What equal seeds promise: `exact`, `text` (same text alone or batched), `none`."""

    def load(self, checkpoint: Checkpoint) -> str:
        """Put the checkpoint's weights in place; the fingerprint of the bytes that were loaded.

        Raises CheckpointError when the checkpoint cannot be used; the engine stays usable.
        """
        ...

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """Completions [case][sample], `seeds[case][sample]` deciding each one alone."""
        ...


class EngineError(ValueError):
    """No engine can be built as asked; the message says why and what to do."""


def names() -> list[str]:
    """Engines by file name."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str, options: Mapping[str, Any]) -> Engine:
    """Build the engine of the file of that name. Raises EngineError."""
    if name not in names():
        raise EngineError(f"engine {name!r} is none of {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    try:
        return cast(Engine, module.build(**options))
    except TypeError as error:
        raise EngineError(f"engine {name!r}: {error}") from error
