"""A panel's calls, whoever answers: every reply paid once, so many at a time, within a budget.

An answer that is none of the model's (429, 5xx, time-out, an engine lost) is no vote: where none
comes after every retry the judging ends, and what was asked stays owed.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from hackbait.environment import canonical
from hackbait.judge import PROMPT_VERSION, Asked, Call, Panel, Reply, SettingsRefused
from pipeline.config import JudgeBlock
from pipeline.judging.errors import JudgeBusy, JudgeError
from pipeline.judging.replies import LEASE, Replies
from pipeline.records import Completion

CHARACTERS_A_TOKEN = 4
"""Of a reply whose server counts no tokens."""
LONGEST = 2**20
"""Characters of a reply that are read and kept: a longer one is as good as cut off."""
WAIT = 0.1
"""Seconds until a reply that another process asks for is looked for again."""

Texts = tuple[str, ...]
"""The texts of a question: equal ones have equal judgements."""
Ask = Callable[[Call, bool], Awaitable[Completion]]
"""Answers a call, bare or with its settings. Raises CallFailed, SettingsRefused, JudgeBusy or
JudgeError."""


class Answerer(Protocol):
    """Who answers: a server, or an engine of ours."""

    place: str
    """Where, for what is remembered of it."""
    at_once: int
    """Calls it is given at once; a wary one is given one alone until it has answered."""
    wary: bool
    """It did not answer a while ago, and asks once alone until it does."""

    def opened(self, again: Callable[[], None]) -> AbstractAsyncContextManager[Ask]:
        """Ready to answer, in one event loop; `again` hears every try of a call after its first."""
        ...


class Client:
    """Asks one panel; for one event loop."""

    def __init__(
        self, answerer: Answerer, panel: Panel, block: JudgeBlock, replies: Replies, account: str
    ) -> None:
        """account: whose budget it is."""
        self._answerer, self._panel, self._block = answerer, panel, block
        self._replies, self._account = replies, account
        self._waiting = answerer.at_once - 1 if answerer.wary else 0
        """Of the calls at once, those that wait for a first answer."""
        self._gate = asyncio.Semaphore(answerer.at_once - self._waiting)
        self._next = 0.0
        self._known_bare = {m: digest("bare", answerer.place, m) for m in panel.models}
        self._bare = {m for m, key in self._known_bare.items() if replies.get(key)}
        self._fault: Exception | None = None
        self._flying: set[asyncio.Task[Reply]] = set()
        self._owner = f"{os.getpid()} {id(self)}"

    async def judgements(self, questions: Sequence[Asked]) -> list[Any]:
        """In order; equal questions are asked once.

        Raises JudgeBusy or JudgeError; what was under way then is waited for and kept.
        """
        distinct = {_texts(question): question for question in questions}
        async with self._answerer.opened(self._again) as self._answer:
            renewing = asyncio.create_task(self._renewing())
            judged = (one.judged(self._panel, self._complete) for one in distinct.values())
            found = await asyncio.gather(*judged, return_exceptions=True)
            await asyncio.gather(*self._flying, return_exceptions=True)
            renewing.cancel()
        if self._fault:
            raise self._fault
        known: dict[Texts, Any] = {}
        for asked, judgement in zip(distinct, found, strict=True):
            if isinstance(judgement, BaseException):
                raise judgement
            known[asked] = judgement
        return [known[_texts(question)] for question in questions]

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(LEASE / 3)
            self._replies.renew(self._owner, time.time())

    async def _complete(self, call: Call) -> Reply:
        """A reply that is there, or paid for here or by another process that asks just that."""
        key = key_of(self._panel, call)
        while not (known := self._replies.get(key)):
            async with self._gate:
                if self._fault:
                    raise self._fault
                if self._replies.claim(key, self._owner, time.time()):
                    return await self._asked(key, call)
            await asyncio.sleep(WAIT)
        return known

    async def _asked(self, key: str, call: Call) -> Reply:
        # A fault elsewhere gives this call up, but its reply is paid for and kept.
        task = asyncio.create_task(self._paid(key, call))
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)
        task.add_done_callback(lambda _: self._replies.release(key))
        try:
            return await asyncio.shield(task)
        except (JudgeBusy, JudgeError) as error:
            self._fault = self._fault or error
            raise

    async def _paid(self, key: str, call: Call) -> Reply:
        """A reply, kept.

        A server that refuses temperature and seed is asked without, and from then on at once so.
        """
        model = call.model or self._panel.model
        try:
            completion = await self._ask(call, model in self._bare)
        except SettingsRefused:
            completion = await self._ask(call, bare=True)
            self._bare.add(model)
            self._replies.put(self._known_bare[model], Reply(""), self._account, 0)
        while self._waiting:
            self._gate.release()
            self._waiting -= 1
        text = completion.text or ""
        whole = completion.error is None and completion.finish_reason == "stop"
        reply = Reply(text[:LONGEST], whole and len(text) <= LONGEST)
        self._replies.put(key, reply, self._account, _tokens(call, completion))
        return reply

    async def _ask(self, call: Call, bare: bool) -> Completion:
        """The answer to one call within the budget."""
        if not self._replies.take(self._account, self._block.calls, self._block.tokens):
            calls, tokens = self._replies.spent(self._account)
            raise JudgeBusy(
                f"the budget is spent ({calls:,} calls, {tokens:,} tokens in those answered); "
                "raise judge.calls or judge.tokens"
            )
        await asyncio.sleep(self.turn(asyncio.get_running_loop().time()))
        return await self._answer(call, bare)

    def turn(self, now: float) -> float:
        """Seconds until the next call may begin, which is taken to begin then."""
        begin = max(now, self._next)
        self._next = begin + (1 / self._block.rate if self._block.rate else 0.0)
        return begin - now

    def _again(self) -> None:
        """Count a try of a call after its first, which was counted when it was begun."""
        self._replies.add(self._account, 1)


def _texts(question: Asked) -> Texts:
    return tuple(message["content"] for message in question.messages)


def key_of(panel: Panel, call: Call) -> str:
    """What names a reply: model and settings, the prompt and its version, the vote and its try."""
    messages = [dict(message) for message in call.messages]
    unusual = [panel.unusual] if panel.unusual else []
    model = call.model or panel.model
    return digest(model, PROMPT_VERSION, call.vote, call.attempt, messages, *unusual)


def digest(*said: object) -> str:
    """32 hex digits of what JSON can hold."""
    return hashlib.blake2b(canonical(said).encode(), digest_size=16).hexdigest()


def _tokens(call: Call, completion: Completion) -> int:
    """Tokens that a call cost, as the server counts; else by its characters."""
    if completion.prompt_tokens is not None:
        ending = int(completion.finish_reason == "stop")  # paid for, and no part of a completion
        return completion.prompt_tokens + (completion.completion_tokens or 0) + ending
    written = sum(len(m["content"]) for m in call.messages) + len(completion.text or "")
    return written // CHARACTERS_A_TOKEN
