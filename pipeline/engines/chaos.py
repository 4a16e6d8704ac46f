"""The scripted engine with planted faults: what a sweep has to survive.

A fault that may pass is drawn anew at every call, one that will not is a matter of the rollout.
"""

import os
import random
import signal
import threading
from collections.abc import Collection, Sequence

import numpy as np

from hackbait.environment import Case
from pipeline.engines import scripted
from pipeline.records import TOO_LONG, Checkpoint, Completion, Sampling


class Chaos:
    """Options as `build` has them."""

    determinism = "exact"

    def __init__(
        self,
        engine: scripted.Scripted,
        calls: dict[str, float],
        rows: dict[str, float],
        poison: Collection[int],
        draw: random.Random,
    ) -> None:
        self._engine, self._calls, self._rows = engine, calls, rows
        self._poison, self._draw = poison, draw

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """Nothing: a script is small."""

    def load(self, checkpoint: Checkpoint) -> str:
        """See `Engine.load`."""
        return self._engine.load(checkpoint)

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """What the script says, unless a fault strikes: RuntimeError, no return, or no process."""
        if any(case.index in self._poison for case in cases):
            _die()
        struck = self._draw.choices([*self._calls, ""], [*self._calls.values(), self._spared])[0]
        if struck == "dies":
            _die()
        if struck == "hangs":
            threading.Event().wait()
        if struck == "raises":
            raise RuntimeError("a planted fault")
        drawn = self._engine.generate(cases, seeds, sampling)
        return [
            [self._marred(*pair) for pair in zip(own, row, strict=True)]
            for own, row in zip(drawn, seeds, strict=True)
        ]

    @property
    def _spared(self) -> float:
        return 1.0 - sum(self._calls.values())

    def _marred(self, completion: Completion, seed: int) -> Completion:
        """One completion, if it is spared; an empty text of no finish, or a prompt too long."""
        hashed = scripted.mix(np.array([seed & 2**64 - 1], np.uint64))
        if scripted.uniform(hashed, "overlong")[0] < self._rows["overlong"]:
            return Completion(None, None, completion.prompt_tokens, None, TOO_LONG)
        if self._draw.random() < self._rows["empty"]:
            return Completion("", None, completion.prompt_tokens, None)
        return completion


def build(
    dtype: str = "float32",
    characters: int | None = None,
    raises: float = 0.0,
    hangs: float = 0.0,
    dies: float = 0.0,
    empty: float = 0.0,
    overlong: float = 0.0,
    poison: Sequence[int] = (),
    seed: int = 0,
) -> Chaos:
    """Shares of calls that raise, hang or die; of rollouts that are empty or over-long.

    poison: indices of cases that end the process whenever they are asked. A new process draws
    other faults from the same seed.
    """
    return Chaos(
        scripted.build(dtype, characters),
        {"raises": raises, "hangs": hangs, "dies": dies},
        {"empty": empty, "overlong": overlong},
        poison,
        random.Random(f"{seed} {os.getpid()}"),
    )


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
