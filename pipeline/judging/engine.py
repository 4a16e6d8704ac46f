"""A judge that is an engine of ours: one checkpoint, asked for many votes in a batch."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from hackbait.environment import Case
from hackbait.judge import Call, Panel
from pipeline import engines
from pipeline.checkpoints.identity import refuse_replaced
from pipeline.config import EngineBlock, JudgeBlock
from pipeline.engines import Engine, EngineBusy, EngineDied, EngineError
from pipeline.judging.client import Ask, key_of
from pipeline.judging.errors import JudgeBusy, JudgeError
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling
from pipeline.rollout import generate

AT_ONCE = 256
"""Calls in a batch, where nothing else is configured."""
GATHER_SECONDS = 0.02
"""From the first call of a batch until it is asked: the others are on their way meanwhile."""
GREETING = ({"role": "system", "content": "Judge."}, {"role": "user", "content": "Ready?"})

Answers = Callable[[Sequence[Call]], list[Completion]]
"""Completions of calls, in order. Raises what an engine does."""


class JudgeEngine:
    """One live engine that holds one checkpoint; seeds of its votes hash question and vote."""

    def __init__(self, block: EngineBlock, checkpoint: Checkpoint, panel: Panel) -> None:
        self._block, self._checkpoint, self._panel = block, checkpoint, panel
        self._engine: Engine | None = None
        self._fingerprint = ""

    def load(self) -> str:
        """Have the checkpoint in place and answering; its fingerprint.

        Raises EngineError, and CheckpointError for one that was replaced or cannot be asked.
        """
        if self._engine is None:
            engine = engines.load(self._block.name, self._block.options)
            self._fingerprint = engine.load(self._checkpoint)
            refuse_replaced(self._checkpoint)
            once = Sampling(n=1, temperature=0.0, max_tokens=1)
            engine.generate([Case("greeting", 0, GREETING, "")], [[0]], once)
            self._engine = engine
        return self._fingerprint

    def answer(self, calls: Sequence[Call]) -> list[Completion]:
        """See `Answers`."""
        self.load()
        assert self._engine
        panel = self._panel
        drawn = Sampling(n=1, temperature=panel.temperature, max_tokens=panel.max_tokens)
        cases = [Case(key_of(panel, call), call.vote, call.messages, shown(call)) for call in calls]
        return [rollout.completion for rollout in generate(self._engine, cases, drawn)]


def shown(call: Call) -> str:
    """The last line of the instructions, an example of a verdict: what a scripted engine says."""
    return call.messages[0]["content"].rpartition("\n")[2]


class Batched:
    """See `client.Answerer`: calls that come together are answered together."""

    place, wary = "engine", False

    def __init__(self, answers: Answers, block: JudgeBlock) -> None:
        self.at_once = block.concurrency or AT_ONCE
        self._answers = answers
        self._gathering: tuple[list[Call], asyncio.Task[list[Completion]]] | None = None

    @asynccontextmanager
    async def opened(self, again: Callable[[], None]) -> AsyncIterator[Ask]:
        yield self._ask

    async def _ask(self, call: Call, bare: bool) -> Completion:
        if self._gathering is None:
            batch: list[Call] = []
            self._gathering = batch, asyncio.create_task(self._answered(batch))
        calls, answered = self._gathering
        calls.append(call)
        at = len(calls) - 1
        return (await asyncio.shield(answered))[at]

    async def _answered(self, calls: list[Call]) -> list[Completion]:
        """What the engine says; nothing else goes on meanwhile."""
        await asyncio.sleep(GATHER_SECONDS)
        self._gathering = None
        try:
            return self._answers(calls)
        except (EngineBusy, EngineDied) as error:
            raise JudgeBusy(f"its engine does not answer: {error}") from None
        except (EngineError, CheckpointError) as error:
            raise JudgeError(f"judge.engine: {error}") from None
