"""Asks an environment's judge from trainers and evaluators, where nothing can stay owed.

A call that finds no answer is a lost vote; where more than half of the votes are lost the row says
so: `judge_error` is 1.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from http import HTTPStatus
from typing import Any, cast

from hackbait.adapters.server import Passing, Refused, Server
from hackbait.endpoint import KeyUnusable, flaw, read_key
from hackbait.environment import Case, Environment, EnvironmentRefused, Score, canonical
from hackbait.judge import Call, CallFailed, Judged, Panel, Reply, SettingsRefused, sent

DEFAULT_URL = "https://api.openai.com/v1"
CONCURRENCY = 32
TIMEOUT, CHECK_TIMEOUT = 120.0, 20.0
"""Seconds for one try."""
RETRIES, PAUSE = 4, 0.5
"""More tries of a call, and seconds before the first of them."""
KEPT = 2**14
"""Replies that a process keeps, so that equal questions are asked once."""
UNKNOWN_SETTINGS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
NOT_LET_IN = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
LISTED = 200
"""Characters of served names in a message."""

log = logging.getLogger(__name__)


def check(environment: Environment) -> None:
    """Find the judge, its key and its model, before anything is spent. EnvironmentRefused."""
    if panel := _panel(environment):
        judge(panel).check()


async def graded(environment: Environment, case: Case, completion: object) -> Score:
    """The score of a completion, of which the judge was asked where there is one."""
    panel = _panel(environment)
    if panel is None:
        return environment.score(case, completion)
    judged = cast(Judged, environment)
    question = judged.question(case, completion)
    judgement = await question.judged(panel, judge(panel).complete) if question else None
    return judged.score(case, completion, judgement)


def graded_all(environment: Environment, asked: Sequence[tuple[Case, object]]) -> list[Score]:
    """Scores in order, side by side, for code that is not async."""
    if _panel(environment) is None:
        return [environment.score(case, completion) for case, completion in asked]

    async def side_by_side() -> list[Score]:
        return await asyncio.gather(*(graded(environment, *one) for one in asked))

    # In a thread of its own: that of a notebook has a loop that runs already.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, side_by_side()).result()


def _panel(environment: Environment) -> Panel | None:
    """Who judges; None where nobody does."""
    panel: Panel | None = getattr(environment, "panel", None)
    return panel


@cache
def judge(panel: Panel) -> "Judge":
    """The judge of a panel, one a process. EnvironmentRefused as `Judge`."""
    return Judge(panel)


class Judge:
    """A panel's model at its address, asked from any thread and any event loop."""

    def __init__(self, panel: Panel, pause: float = PAUSE, timeout: float = TIMEOUT) -> None:
        """EnvironmentRefused for a missing key, and for an address that is none.

        pause: seconds before the second try of a call. timeout: seconds for each.
        """
        url = (panel.base_url or DEFAULT_URL).rstrip("/")
        if why := flaw(url):
            raise EnvironmentRefused(f"judge_base_url {why}; give one as http://127.0.0.1:8000/v1")
        self._panel, self._timeout = panel, timeout
        try:
            self._server = Server(url, read_key(panel.api_key_var), pause)
        except KeyUnusable as error:
            raise EnvironmentRefused(f"judge_api_key_var: {error}") from None
        self._pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="judge")
        self._replies: dict[str, Future[Reply]] = {}
        self._bare = False
        self._told: set[str] = set()

    def check(self) -> None:
        """Whether the judge is there and has the model. EnvironmentRefused says what to mend."""
        where = self._server.url
        try:
            names = served(self._server.ask("/models", None, CHECK_TIMEOUT, retries=1))
        except Passing as error:
            raise EnvironmentRefused(
                f"judge_base_url {where}: {error}; is the address right?"
            ) from None
        except Refused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return  # a server need not list its models
            cure = "; let judge_api_key_var name the variable of its key"
            more = cure if error.status in NOT_LET_IN else ""
            raise EnvironmentRefused(f"judge_base_url {where}: {error}{more}") from None
        lacking = [model for model in self._panel.models if model not in names]
        if names and lacking:
            raise EnvironmentRefused(
                f"judge_model {lacking[0]!r} is not served at {where}, only "
                f"{', '.join(names)[:LISTED]}"
            )

    async def complete(self, call: Call) -> Reply:
        """See `judge.Complete`. Calls that are equal, one after the other or at once, are one."""
        key = key_of(call)
        asked = self._replies.get(key)
        if asked is None:
            if len(self._replies) >= KEPT:
                self._replies.pop(next(iter(self._replies)))
            asked = self._replies[key] = self._pool.submit(self._answer, call)
        try:
            return await asyncio.shield(asyncio.wrap_future(asked))
        except (CallFailed, SettingsRefused):
            self._replies.pop(key, None)
            raise

    def _answer(self, call: Call) -> Reply:
        """The server's reply; asked with the messages alone where it takes no settings."""
        bare = call.bare or self._bare
        asked = body(self._panel, call, bare)
        try:
            reply = said(self._server.ask("/chat/completions", asked, self._timeout, RETRIES))
        except Refused as error:
            if error.status in UNKNOWN_SETTINGS and not bare:
                raise SettingsRefused(str(error)) from None
            raise self._lost(error) from None
        except Passing as error:
            raise self._lost(error) from None
        self._bare = bare
        return reply

    def _lost(self, error: RuntimeError) -> CallFailed:
        """Each reason is logged once; rows count how often."""
        why = f"judge at {self._server.url}: {error}"
        if why not in self._told:
            self._told.add(why)
            log.warning("%s; such votes are lost, and judge_error counts the rows", why)
        return CallFailed(why)


def key_of(call: Call) -> str:
    """32 hex digits that name who is asked what, the vote and its try."""
    messages = [dict(message) for message in call.messages]
    named = canonical([call.model, call.vote, call.attempt, messages])
    return hashlib.blake2b(named.encode(), digest_size=16).hexdigest()


def body(panel: Panel, call: Call, bare: bool) -> Mapping[str, Any]:
    """The request. Votes, and tries of a vote, differ by their seed."""
    messages = [dict(message) for message in call.messages]
    asked = {"model": call.model or panel.model, "messages": messages, "stream": False}
    if bare:
        return asked
    seed = 1000 * call.attempt + call.vote
    drawn = {"temperature": panel.temperature, "seed": seed, "max_tokens": panel.max_tokens}
    return asked | drawn


def served(answer: object) -> list[str]:
    """Names in a list of models; none where it is no such list."""
    match answer:
        case {"data": [*entries]}:
            named = [entry.get("id") for entry in entries if isinstance(entry, dict)]
            return sorted(name for name in named if isinstance(name, str))
    return []


def said(answer: object) -> Reply:
    """The reply in a chat completion; not whole where it is cut off, refused or not there."""
    match answer:
        case {"choices": [{"finish_reason": reason, "message": {**message}}, *_]}:
            text = message.get("content")
            whole = reason == "stop" and not message.get("refusal")
            return Reply(sent(text) if isinstance(text, str) else "", whole)
    return Reply("", False)
