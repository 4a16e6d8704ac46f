"""A judge over HTTP, at a server that speaks the OpenAI protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

from hackbait import endpoint
from hackbait.judge import Call, CallFailed, Panel, SettingsRefused
from pipeline.config import JudgeBlock
from pipeline.engines import EngineBusy, EngineError
from pipeline.engines.http import read_key, wire
from pipeline.engines.http.server import Limits, OverContext, Refused, Server
from pipeline.judging.client import Ask
from pipeline.judging.errors import JudgeBusy, JudgeError
from pipeline.records import Completion

DEFAULT_URL = "https://api.openai.com/v1"
AT_ONCE = 32
"""Calls, where nothing else is configured."""
UNKNOWN_SETTINGS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
CHECK = Limits(concurrency=1, timeout_s=20.0, retries=1)
LISTED = 8
"""Served names in a message."""

_TRIES: ContextVar[list[int]] = ContextVar("tries")
"""How often the call of this task was sent."""


class Served:
    """See `client.Answerer`."""

    def __init__(self, panel: Panel, block: JudgeBlock, wary: bool = False) -> None:
        self.at_once, self.wary = block.concurrency or AT_ONCE, wary
        self._panel = panel
        self._server = server(panel, Limits(self.at_once, block.timeout_s, block.retries))
        self._once = replace(self._server, limits=replace(self._server.limits, retries=0))
        self.place = self._server.url

    @asynccontextmanager
    async def opened(self, again: Callable[[], None]) -> AsyncIterator[Ask]:
        async def sent(request: object) -> None:
            tries = _TRIES.get()
            tries[0] += 1
            if tries[0] > 1:
                again()

        async with self._server.open(sent) as client:
            yield partial(self._ask, client)

    async def _ask(self, client: Any, call: Call, bare: bool) -> Completion:
        _TRIES.set([0])
        read = partial(wire.completion, max_tokens=self._panel.max_tokens)
        asked = body(self._panel, call, bare)
        at, by = (
            (self._once, client.with_options(max_retries=0))
            if self.wary
            else (self._server, client)
        )
        try:
            completion = await at.ask(by, "/chat/completions", asked, read)
            self.wary = False
            return completion
        except OverContext:
            return Completion(None, None, None, None, "too long for the judge")
        except EngineBusy as error:
            raise JudgeBusy(f"{error}") from None
        except Refused as error:
            if error.status not in UNKNOWN_SETTINGS:
                raise JudgeError(f"judge: {error}") from None
            raise (CallFailed if bare else SettingsRefused)(str(error)) from None


def body(panel: Panel, call: Call, bare: bool) -> dict[str, Any]:
    """The request. Votes, and tries of a vote, differ by their seed."""
    model, messages = call.model or panel.model, [dict(m) for m in call.messages]
    asked = {"model": model, "messages": messages, "stream": False}
    if bare:
        return asked
    seed = 1000 * call.attempt + call.vote
    drawn = {"temperature": panel.temperature, "seed": seed, "max_tokens": panel.max_tokens}
    return asked | drawn


def server(panel: Panel, limits: Limits) -> Server:
    """Where the panel's model is asked. JudgeError for a missing key or an address that is none."""
    url = panel.base_url or DEFAULT_URL
    if why := endpoint.flaw(url):
        raise JudgeError(f"{panel.prefix}base_url {why}; give one as http://127.0.0.1:8000/v1")
    try:
        return Server(url, read_key(panel.api_key_var, f"{panel.prefix}api_key_var"), limits)
    except EngineError as error:
        raise JudgeError(str(error)) from None


def check(panel: Panel, dry: bool = False) -> None:
    """Whether the judge is there and has the model. JudgeError naming the value and the cure.

    dry: nobody is asked, only address and key are looked at.
    """
    place = server(panel, CHECK)
    if dry:
        return
    try:
        names = sorted(asyncio.run(_served(place)))
    except EngineBusy as error:
        raise JudgeError(f"{panel.prefix}base_url: {error}; is the address right?") from None
    except Refused as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return  # a server need not list its models
        raise JudgeError(f"judge: {error}") from None
    for model in panel.models if names else ():
        if model in names:
            continue
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        raise JudgeError(
            f"{panel.prefix}model {model!r} is not served at {place.url}, only "
            f"{', '.join(names[:LISTED])}{more}; set {panel.prefix}model to one of them"
        )


async def _served(place: Server) -> dict[str, str | None]:
    async with place.open() as client:
        return await place.ask(client, "/models", None, wire.served)
