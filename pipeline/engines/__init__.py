"""One file an inference engine; the role they play and how one is found."""

import importlib
from collections.abc import Sequence
from typing import Protocol

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
