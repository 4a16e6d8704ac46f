"""A real S3 protocol server, and a real proxy before it that loses, breaks and delays answers."""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDKEY000000",
    "AWS_SECRET_ACCESS_KEY": "planted-secret-Zq81/x+7",
    "AWS_SESSION_TOKEN": "planted-token-Zq82",
}
SERVER = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
input()
"""
Fault = Literal["403", "500", "503", "reset", "truncated", "slow", "hidden"]
CODES = {"403": "AccessDenied", "500": "InternalError", "503": "SlowDown"}


@dataclass
class Server:
    """The proxy: what it shall do to a request, and what it saw."""

    endpoint: str
    behind: int
    fault: Callable[[str, str], Fault | None] = lambda method, path: None
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path with its query, and range of every request."""

    def first(self, count: int, fault: Fault, matching: str) -> None:
        """Let the first requests whose `METHOD path` matches a pattern fail."""
        left, lock = [count], threading.Lock()

        def choose(method: str, path: str) -> Fault | None:
            with lock:
                if left[0] and re.search(matching, f"{method} {path}"):
                    left[0] -= 1
                    return fault
            return None

        self.fault = choose

    def plant(self, bucket: str, key: str, content: bytes) -> None:
        """Put an object past the proxy; the key goes into the address as it stands."""
        address = f"http://127.0.0.1:{self.behind}/{bucket.removeprefix('s3://')}/{key}"
        request = urllib.request.Request(address, content, method="PUT")
        urllib.request.urlopen(request).close()

    def count(self, matching: str) -> int:
        return sum(bool(re.search(matching, f"{m} {p}")) for m, p, _ in self.seen)


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "ThreadingHTTPServer"
    state: Server

    def handle_any(self) -> None:
        body = self.body()
        self.state.seen.append((self.command, self.path, self.headers.get("Range", "")))
        fault = self.state.fault(self.command, self.path)
        if fault == "reset":
            self.close_connection = True
            self.connection.close()
            return
        if fault in CODES:
            code = CODES[fault]
            answer = f"<Error><Code>{code}</Code><Message>planted</Message></Error>".encode()
            self.answer(int(fault), {"Content-Type": "application/xml"}, answer)
            return
        behind = http.client.HTTPConnection("127.0.0.1", self.state.behind, timeout=30)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
        behind.request(self.command, self.path, body, headers | {"Content-Length": str(len(body))})
        response = behind.getresponse()
        content = response.read()
        kept = {k: v for k, v in response.getheaders() if k.lower() not in HOP}
        behind.close()
        if fault == "hidden":
            content = re.sub(rb"<Contents>.*?</Contents>", b"", content, flags=re.DOTALL)
            kept.pop("Content-Length", None)
        self.answer(response.status, kept, content, fault)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

    def answer(
        self, status: int, headers: dict[str, str], content: bytes, fault: Fault | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "truncated":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif fault == "slow":
            for start in range(0, len(content), max(1, len(content) // 8)):
                self.wfile.write(content[start : start + max(1, len(content) // 8)])
                time.sleep(0.05)
        else:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test fails by what it asserts."""


HOP = {"connection", "keep-alive", "transfer-encoding", "server", "date"}


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up on a planted fault is no news."""


@pytest.fixture(scope="session")
def moto() -> Iterator[int]:
    """Port of an S3 server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        port = next(int(line) for line in process.stdout if line.strip().isdigit())
        yield port
        process.kill()


@pytest.fixture(scope="session")
def proxied(moto: int) -> Iterator[Server]:
    """The proxy in this process, and the environment that leads to it."""
    handler = type("Handler", (Proxy,), {})
    listener = QuietServer(("127.0.0.1", 0), handler)
    state = Server(f"http://127.0.0.1:{listener.server_port}", moto)
    handler.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    before = dict(os.environ)
    os.environ.update(SECRETS, AWS_ENDPOINT_URL=state.endpoint, AWS_REGION="us-east-1")
    yield state
    os.environ.clear()
    os.environ.update(before)
    listener.shutdown()
    listener.server_close()


@pytest.fixture
def store_server(proxied: Server) -> Iterator[Server]:
    """The proxy without faults, its log empty."""
    proxied.seen.clear()
    yield proxied
    proxied.fault = lambda method, path: None


@pytest.fixture
def bucket(store_server: Server) -> str:
    """A new bucket's URI."""
    name = f"b{uuid.uuid4().hex[:12]}"
    store_server.plant(name, "", b"")
    return f"s3://{name}"
