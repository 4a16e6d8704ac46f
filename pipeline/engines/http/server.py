"""One server asked over and over: bounded patience, and one line for every way it can fail."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

import openai

from pipeline.engines import EngineBusy
from pipeline.engines.http.wire import Unreadable
from pipeline.records import CheckpointError

T = TypeVar("T")

NO_KEY = "none"
"""Sent where no key is asked for: the client would else send OPENAI_API_KEY to any server."""
CONNECT_SECONDS = 10.0
PAUSE_SECONDS = 0.5
"""Before an answer that could not be read is asked for again."""
SAID_CHARACTERS = 200
TRIED_AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""Statuses that the client tries again, beside every 5xx."""
NOT_LET_IN = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
OVER_CONTEXT_STATUS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
OVER_CONTEXT = re.compile(
    "context (length|size|window)|context_length_exceeded|exceed_context_size|max_model_len"
    "|maximum allowed length",
    re.IGNORECASE,
)
"""How vLLM, SGLang and llama.cpp say that prompt and max_tokens exceed the context."""


class Refused(CheckpointError):
    """The server answers with a status that asking again would not change."""

    def __init__(self, said: str, status: int = 0) -> None:
        super().__init__(said)
        self.status = status


class OverContext(RuntimeError):
    """The server says that this prompt and its completion do not fit the model."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a server is pressed."""

    concurrency: int
    """Requests at once."""
    timeout_s: float
    """For one try."""
    retries: int
    """Tries after the first."""


@dataclass(frozen=True, slots=True)
class Server:
    """An address to ask and the key to ask with, which no message holds."""

    url: str
    key: str | None = field(repr=False)
    limits: Limits

    def open(self, sent: Callable[[object], Awaitable[None]] | None = None) -> openai.AsyncOpenAI:
        """A client for one event loop; it waits and tries again by itself.

        sent: hears every request as it goes out, each try being one.
        """
        timeout = self.limits.timeout_s
        hooks = {"request": [sent]} if sent else {}
        return openai.AsyncOpenAI(
            base_url=self.url,
            api_key=self.key or NO_KEY,
            max_retries=self.limits.retries,
            timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
        )

    async def ask(
        self,
        client: openai.AsyncOpenAI,
        route: str,
        body: dict[str, Any] | None,
        read: Callable[[object], T],
    ) -> T:
        """What `read` makes of the answer to a POST, or to a GET where there is no body.

        `read` raises Unreadable to have it asked again. Raises EngineBusy, OverContext,
        CheckpointError.
        """
        why = ""
        for attempt in range(self.limits.retries + 1):
            if attempt:
                await asyncio.sleep(PAUSE_SECONDS)
            try:
                if body is None:
                    return read(await client.get(route, cast_to=object))
                return read(await client.post(route, cast_to=object, body=body))
            except openai.APIError as error:
                raise self._failure(error, route) from None
            except Unreadable as error:
                why = str(error)
            except (json.JSONDecodeError, UnicodeDecodeError):
                why = "torn or no JSON"
        raise EngineBusy(f"{self.url}{route} answers {self._times()}, but with {why}")

    def _failure(self, error: openai.APIError, route: str) -> RuntimeError:
        """What a failed request means."""
        where, said = f"{self.url}{route}", self._said(error)
        if isinstance(error, openai.APITimeoutError):
            return EngineBusy(f"{where}: no answer in {self.limits.timeout_s:g} s, {self._times()}")
        if not isinstance(error, openai.APIStatusError):
            return EngineBusy(f"{where}: no connection, or one that broke, {self._times()}")
        status = error.status_code
        if status in TRIED_AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return EngineBusy(f"{where}: status {status} {self._times()}: {said}")
        if status in OVER_CONTEXT_STATUS and OVER_CONTEXT.search(str(error.body)):
            return OverContext(said)
        if status in NOT_LET_IN:
            what = f"the key of api_key_var is refused ({status})" if self.key else f"{status}"
            said = f"{where}: {what}; let api_key_var name the variable of its key"
            return Refused(said, status)
        if status == HTTPStatus.NOT_FOUND:
            said = f"{said}; base_url ends in /v1 as a rule, and the model must still be served"
        return Refused(f"{where}: status {status}: {said}", status)

    def _said(self, error: openai.APIError) -> str:
        """The server's words on one line, without the key, should it repeat that."""
        body = error.body
        words = str(body.get("message") or body) if isinstance(body, dict) else str(body or "")
        return " ".join(words.split()).replace(self.key or "\0", "***")[:SAID_CHARACTERS]

    def _times(self) -> str:
        return f"{self.limits.retries + 1} times" if self.limits.retries else "once"
