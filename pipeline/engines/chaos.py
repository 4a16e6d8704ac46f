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
from pipeline.engines import EngineError, scripted
from pipeline.records import TOO_LONG, Checkpoint, Completion, Sampling

ROWS = scripted.ROWS


class Chaos:
    """Options as `build` has them."""

    determinism = "exact"

    def __init__(
        self,
        engine: scripted.Scripted,
        calls: dict[str, float],
        rows: dict[str, float],
        poison: Collection[int],
        refuses: Collection[int],
        draw: random.Random,
    ) -> None:
        self._engine, self._calls, self._rows = engine, calls, rows
        self._poison, self._refuses, self._draw = poison, refuses, draw

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """Nothing: a script is small."""

    def load(self, checkpoint: Checkpoint) -> str:
        """See `Engine.load`. Raises EngineError where that is planted."""
        if checkpoint.step in self._refuses:
            raise EngineError(f"engine chaos: none is to be built for step {checkpoint.step}")
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
    refuses: Sequence[int] = (),
    seed: int = 0,
) -> Chaos:
    """The scripted engine, and faults as they are planted.

    characters: mean length of completions, instead of what scripts say
    raises: share of calls that raise
    hangs: share of calls that never return
    dies: share of calls that end the process
    empty: share of rollouts that come back without a text, and are owed
    overlong: share of rollouts whose prompt is said to be too long
    poison: indices of cases that end the process whenever they are asked
    refuses: steps for whose checkpoints no engine can be built
    seed: of the faults; a new process draws others from it
    """
    return Chaos(
        scripted.build(dtype, characters),
        {"raises": raises, "hangs": hangs, "dies": dies},
        {"empty": empty, "overlong": overlong},
        poison,
        refuses,
        random.Random(f"{seed} {os.getpid()}"),
    )


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
