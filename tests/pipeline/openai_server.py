"""A real server on 127.0.0.1 that speaks the OpenAI protocol, and misbehaves as it is told to."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    before: int
    """How often the same was asked before."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What is written back, and how."""

    body: Any = b""
    """Bytes as they are, anything else as JSON."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    after: float = 0.0
    """Seconds."""
    broken: str = ""
    """`dropped`: not a byte is written; `cut`: half of the body."""


Answer = Callable[[Asked], Reply]


class Server:
    """Answers in a thread of its own; `asked` is its log."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self._at_once = 0
        self._counts: Counter[str] = Counter()
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._connection, "127.0.0.1", 0), self._loop
        ).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def posts(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == "POST"]

    def close(self) -> None:
        """No connection, task or thread is left."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request answered; whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split()
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        same = f"{path} {raw!r}"
        asked = Asked(method, path, headers, json.loads(raw or b"{}"), self._counts[same])
        self._counts[same] += 1
        self.asked.append(asked)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        reply = self.answer(asked)
        await asyncio.sleep(reply.after)
        self._at_once -= 1
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        given = {"content-type": "application/json", "content-length": len(body)} | reply.headers
        lines = [f"HTTP/1.1 {reply.status} So", *(f"{k}: {v}" for k, v in given.items())]
        if reply.broken != "dropped":
            writer.write("\r\n".join([*lines, "", ""]).encode())
            writer.write(body[: len(body) // 2] if reply.broken == "cut" else body)
            await writer.drain()
        return not reply.broken


def said(
    asked: Asked, content: str | None, finish: str = "stop", tokens: int = 4, **message: Any
) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": content, **message}
    return {
        "object": "chat.completion",
        "model": asked.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens},
    }


def refusing(status: int, message: str = "no", **more: Any) -> Reply:
    return Reply({"error": {"message": message, "type": "Error", "code": status, **more}}, status)
