"""Cases out to a server, completions in, in order; what cannot be had is no row."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import openai

from hackbait.environment import Case
from pipeline.checkpoints.headers import read_json
from pipeline.engines import EngineError
from pipeline.engines.http import claim, wire
from pipeline.engines.http.address import Address, Templates
from pipeline.engines.http.server import Limits, OverContext, Server
from pipeline.records import TOO_LONG, Checkpoint, CheckpointError, Completion, Sampling

T = TypeVar("T")

LISTED = 8
"""Served names in a message."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The checkpoint that is asked."""

    address: Address
    answering: frozenset[str]
    """Names of the one served model, the one asked for among them."""
    chat: Any
    """`engines.hf.chat.Chat` where token ids are sent; None where messages are."""


@dataclass(frozen=True, slots=True)
class Request:
    """One rollout that is owed."""

    route: str
    body: dict[str, Any]
    prompt_tokens: int | None
    """None where only the server knows."""


class HttpEngine:
    """See `Engine`; made by `build`."""

    determinism = "none"

    def __init__(
        self,
        templates: Templates,
        key: str | None,
        limits: Limits,
        read_tokenizer: Callable[..., Any] | None,
    ) -> None:
        self._templates, self._key, self._limits = templates, key, limits
        self._read_tokenizer = read_tokenizer
        self._claimed: dict[Address, str] = {}
        self._policy: Policy | None = None

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """Nothing: the weights lie with the server."""

    def load(self, checkpoint: Checkpoint) -> str:
        """Find the checkpoint's name on its server; the fingerprint of the checkpoint's own files.

        That the server holds these bytes is the user's claim. Raises CheckpointError, EngineBusy.
        """
        address = self._templates.fill(checkpoint)
        fingerprint = claim.fingerprint(checkpoint)
        if self._claimed.get(address, fingerprint) != fingerprint:
            raise CheckpointError(
                f"{checkpoint.path}: {address.model!r} at {address.url} has answered for other "
                "weights already; put {run} or {path} into model or base_url"
            )
        served = _run(self._served(address))
        if address.model not in served:
            raise CheckpointError(
                f"{checkpoint.path}: {address.url} serves no {address.model!r}, only "
                f"{_listed(sorted(served))}; set model to the name it has there"
            )
        root = served[address.model]
        _check_root(root, checkpoint, address)
        alike = {name for name, other in served.items() if root and other == root}
        answering = frozenset(alike | {address.model})
        self._policy = Policy(address, answering, self._chat(checkpoint))
        self._claimed[address] = fingerprint
        return fingerprint

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """See `Engine.generate`. Nulls: `prompt_too_long`, `refused`, `content_filter`.

        Raises CheckpointError, and EngineBusy where an answer is still owed after every retry.
        """
        if self._policy is None:
            raise EngineError("engine http: no checkpoint is loaded")
        model = self._policy.address.model
        requests = [
            Request(route, body | wire.settings(model, seed, sampling), count)
            for (route, body, count), own in zip(_asked(self._policy, cases), seeds, strict=True)
            for seed in own
        ]
        done = iter(_run(self._all(self._policy, requests)))
        return [[next(done) for _ in own] for own in seeds]

    def _chat(self, checkpoint: Checkpoint) -> Any:
        """The checkpoint's own tokenizer, where token ids are sent. Raises CheckpointError."""
        if self._read_tokenizer is None:
            return None
        places = [Path(place) for place in (checkpoint.path, checkpoint.base) if place]
        configs = [p / "config.json" for p in places if (p / "config.json").exists()]
        configured = read_json(configs[0]).get("eos_token_id") if configs else None
        known = self._policy.chat if self._policy else None
        return self._read_tokenizer(places, configured, known)

    def _server(self, address: Address) -> Server:
        return Server(address.url, self._key, self._limits)

    async def _served(self, address: Address) -> dict[str, str | None]:
        server = self._server(address)
        async with server.open() as client:
            return await server.ask(client, "/models", None, wire.served)

    async def _all(self, policy: Policy, requests: Sequence[Request]) -> list[Completion]:
        """Completions in order of the requests. The first failure ends the others."""
        server = self._server(policy.address)
        gate = asyncio.Semaphore(self._limits.concurrency)

        async def complete(client: openai.AsyncOpenAI, request: Request) -> Completion:
            async with gate:
                return await _complete(server, client, policy, request)

        async with server.open() as client, asyncio.TaskGroup() as group:
            tasks = [group.create_task(complete(client, request)) for request in requests]
        return [task.result() for task in tasks]


async def _complete(
    server: Server, client: openai.AsyncOpenAI, policy: Policy, request: Request
) -> Completion:
    def read(answer: object) -> Completion:
        name = wire.model(answer)
        if name is not None and name not in policy.answering:
            raise CheckpointError(
                f"{server.url}: {policy.address.model!r} was asked and {name!r} answered; "
                "serve each checkpoint under a name of its own"
            )
        return wire.completion(answer, request.body["max_tokens"])

    try:
        return await server.ask(client, request.route, request.body, read)
    except OverContext:
        return Completion(None, None, request.prompt_tokens, None, TOO_LONG)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Its result, or the first of its failures alone."""
    try:
        return asyncio.run(work)
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def _asked(policy: Policy, cases: Sequence[Case]) -> list[tuple[str, dict[str, Any], int | None]]:
    """Route, the part of the body that asks, and the prompt's tokens where known, by case."""
    if policy.chat is None:
        return [("/chat/completions", wire.messages(case), None) for case in cases]
    conversations = [[dict(message) for message in case.messages] for case in cases]
    encoded = policy.chat.encode(conversations) if cases else []
    stops = list(policy.chat.stops)
    return [("/completions", {"prompt": ids, "stop_token_ids": stops}, len(ids)) for ids in encoded]


def _check_root(root: str | None, checkpoint: Checkpoint, address: Address) -> None:
    """CheckpointError where the server was started from a folder here that holds other weights."""
    if not root or not Path(root).is_absolute() or not Path(root).is_dir():
        return
    try:
        same = claim.digest(Path(root)) == claim.digest(Path(checkpoint.path))
    except CheckpointError:
        same = False
    if not same:
        raise CheckpointError(
            f"{checkpoint.path}: {address.url} serves {root} as {address.model!r}, and that holds "
            "other weights; serve this checkpoint, or set model to its name there"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more if names else "nothing"
