"""A judge over HTTP: every reply paid once, so many calls at a time, within a budget.

An answer that is none of the model's (429, 5xx, time-out) is no vote: it is asked for again with
growing pauses, and where none comes the judging ends and what was asked stays owed.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from hackbait.environment import canonical
from hackbait.judge import (
    PROMPT_VERSION,
    Asked,
    Call,
    CallFailed,
    Panel,
    Reply,
    SettingsRefused,
)
from pipeline.config import JudgeBlock
from pipeline.engines import EngineBusy, EngineError
from pipeline.engines.http import address, read_key, wire
from pipeline.engines.http.server import Limits, OverContext, Refused, Server
from pipeline.judging.errors import JudgeBusy, JudgeError
from pipeline.judging.replies import Replies
from pipeline.records import Completion

DEFAULT_URL = "https://api.openai.com/v1"
REPLY_TOKENS = 8192
"""Room for thought before the verdict."""
CHARACTERS_A_TOKEN = 4
"""Of a reply whose server counts no tokens."""
UNKNOWN_SETTINGS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
CHECK = Limits(concurrency=1, timeout_s=20.0, retries=1)
LISTED = 8
"""Served names in a message."""

Texts = tuple[str, ...]
"""The texts of a question: equal ones have equal judgements."""

_TRIES: ContextVar[list[int]] = ContextVar("tries")
"""How often the call of this task was sent."""


def server(panel: Panel, limits: Limits) -> Server:
    """Where the panel's model is asked. JudgeError for a missing key or an address that is none."""
    url = panel.base_url or DEFAULT_URL
    if why := address.flaw(url):
        raise JudgeError(f"judge_base_url {why}; give one as http://127.0.0.1:8000/v1")
    try:
        return Server(url, read_key(panel.api_key_var, "judge_api_key_var"), limits)
    except EngineError as error:
        raise JudgeError(str(error)) from None


def check(panel: Panel) -> None:
    """Whether the judge is there and has the model. JudgeError naming the value and the cure."""
    place = server(panel, CHECK)
    try:
        names = sorted(asyncio.run(_served(place)))
    except EngineBusy as error:
        raise JudgeError(f"judge_base_url: {error}; is the address right?") from None
    except Refused as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return  # a server need not list its models
        raise JudgeError(f"judge: {error}") from None
    if names and panel.model not in names:
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        raise JudgeError(
            f"judge_model {panel.model!r} is not served at {place.url}, only "
            f"{', '.join(names[:LISTED])}{more}; set judge_model to one of them"
        )


async def _served(place: Server) -> dict[str, str | None]:
    async with place.open() as client:
        return await place.ask(client, "/models", None, wire.served)


class Client:
    """Asks one panel; for one event loop."""

    def __init__(self, panel: Panel, block: JudgeBlock, replies: Replies, account: str) -> None:
        """account: whose budget it is."""
        self._panel, self._block, self._replies, self._account = panel, block, replies, account
        limits = Limits(block.concurrency, block.timeout_s, block.retries)
        self._server = server(panel, limits)
        self._gate = asyncio.Semaphore(block.concurrency)
        self._next = 0.0
        self._known_bare = digest("bare", self._server.url, panel.model)
        self._bare = replies.get(self._known_bare) is not None
        self._fault: Exception | None = None
        self._flying: set[asyncio.Task[Reply]] = set()

    async def judgements(self, questions: Sequence[Asked]) -> list[Any]:
        """In order; equal questions are asked once.

        Raises JudgeBusy or JudgeError; what was under way then is waited for and kept.
        """
        distinct = {_texts(question): question for question in questions}
        async with self._server.open(self._sent) as self._client:
            judged = (one.judged(self._panel, self._complete) for one in distinct.values())
            found = await asyncio.gather(*judged, return_exceptions=True)
            await asyncio.gather(*self._flying, return_exceptions=True)
        if self._fault:
            raise self._fault
        known: dict[Texts, Any] = {}
        for asked, judgement in zip(distinct, found, strict=True):
            if isinstance(judgement, BaseException):
                raise judgement
            known[asked] = judgement
        return [known[_texts(question)] for question in questions]

    async def _complete(self, call: Call) -> Reply:
        key = key_of(self._panel.model, call)
        known = self._replies.get(key)
        if known:
            return known
        async with self._gate:
            if self._fault:
                raise self._fault
            # A fault elsewhere gives this call up, but its reply is paid for and kept.
            task = asyncio.create_task(self._paid(key, call))
            self._flying.add(task)
            task.add_done_callback(self._flying.discard)
            try:
                return await asyncio.shield(task)
            except (JudgeBusy, JudgeError) as error:
                self._fault = self._fault or error
                raise

    async def _paid(self, key: str, call: Call) -> Reply:
        """A reply from the server, kept.

        One that refuses temperature and seed is asked without, and from then on at once so.
        """
        try:
            completion = await self._ask(call, self._bare)
        except SettingsRefused:
            completion = await self._ask(call, bare=True)
            self._bare = True
            self._replies.put(self._known_bare, Reply(""), self._account, 0)
        whole = completion.error is None and completion.finish_reason == "stop"
        reply = Reply(completion.text or "", whole)
        self._replies.put(key, reply, self._account, _tokens(call, completion))
        return reply

    async def _ask(self, call: Call, bare: bool) -> Completion:
        """What the server answers to one call within the budget."""
        if not self._replies.take(self._account, self._block.calls, self._block.tokens):
            calls, tokens = self._replies.spent(self._account)
            raise JudgeBusy(
                f"the budget is spent ({calls:,} calls, {tokens:,} tokens); raise judge.calls or "
                "judge.tokens and run the same command to go on"
            )
        await asyncio.sleep(self.turn(asyncio.get_running_loop().time()))
        _TRIES.set([0])
        try:
            return await self._server.ask(
                self._client, "/chat/completions", body(self._panel.model, call, bare), read
            )
        except OverContext:
            return Completion(None, None, None, None, "too long for the judge")
        except EngineBusy as error:
            raise JudgeBusy(f"{error}") from None
        except Refused as error:
            if error.status not in UNKNOWN_SETTINGS:
                raise JudgeError(f"judge: {error}") from None
            raise (CallFailed if bare else SettingsRefused)(str(error)) from None

    def turn(self, now: float) -> float:
        """Seconds until the next call may begin, which is taken to begin then."""
        begin = max(now, self._next)
        self._next = begin + (1 / self._block.rate if self._block.rate else 0.0)
        return begin - now

    async def _sent(self, request: object) -> None:
        """Count every try of a call after its first, which was counted when it was begun."""
        tries = _TRIES.get()
        tries[0] += 1
        if tries[0] > 1:
            self._replies.add(self._account, 1)


def _texts(question: Asked) -> Texts:
    return tuple(message["content"] for message in question.messages)


def key_of(model: str, call: Call) -> str:
    """What names a reply: the model, the prompt and its version, the vote and its try."""
    messages = [dict(message) for message in call.messages]
    return digest(model, PROMPT_VERSION, call.vote, call.attempt, messages)


def digest(*said: object) -> str:
    """32 hex digits of what JSON can hold."""
    return hashlib.blake2b(canonical(said).encode(), digest_size=16).hexdigest()


def body(model: str, call: Call, bare: bool) -> dict[str, Any]:
    """The request. Votes, and tries of a vote, differ by their seed."""
    asked = {"model": model, "messages": [dict(m) for m in call.messages], "stream": False}
    if bare:
        return asked
    seed = 1000 * call.attempt + call.vote
    return asked | {"temperature": 0, "seed": seed, "max_tokens": REPLY_TOKENS}


def read(answer: object) -> Completion:
    """The completion in an answer. Raises Unreadable."""
    return wire.completion(answer, REPLY_TOKENS)


def _tokens(call: Call, completion: Completion) -> int:
    """Tokens that a call cost, as the server counts; else by its characters."""
    if completion.prompt_tokens is not None:
        return completion.prompt_tokens + (completion.completion_tokens or 0)
    written = sum(len(m["content"]) for m in call.messages) + len(completion.text or "")
    return written // CHARACTERS_A_TOKEN
