"""Servers of the OpenAI protocol on this machine."""

from collections.abc import Callable, Iterator

import pytest

from tests.hackbait.adapters import market_judge
from tests.pipeline.openai_server import Answer, Server

Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that end with the test; of market_structure's judge unless told otherwise."""
    servers: list[Server] = []

    def new(answer: Answer = market_judge.answer) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield new
    for server in servers:
        server.close()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The judge's key, in its variable."""
    monkeypatch.setenv("JUDGE_API_KEY", market_judge.KEY)
    return market_judge.KEY
