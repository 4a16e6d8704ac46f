"""Headless Chromium over its own pipe: what a page draws, says on the console and asks for."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)
PATIENCE = 60.0


@dataclass
class Page:
    """One tab. Commands and events of the DevTools protocol, JSON ended by a zero byte."""

    write: int
    read: int
    session: str = ""
    number: int = 0
    left: bytes = b""
    console: list[str] = field(default_factory=list)
    """Errors, warnings, and violations of the page's policy."""
    requests: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            self._hear(answer)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, event: str) -> None:
        while event not in self.events:
            self._hear(self._next())
        self.events.remove(event)

    def open(self, url: str) -> None:
        self.console.clear()
        self.requests.clear()
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """Of an expression in JavaScript, which the page's policy does not bind."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def look(self, width: int, scheme: str = "light", medium: str = "screen") -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=medium, features=features)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def pdf(self) -> bytes:
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.left:
            content = os.read(self.read, 2**20)
            assert content, "Chromium ended"
            self.left += content
        message, _, self.left = self.left.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _hear(self, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self.events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.console.append(json.dumps(params))


@contextmanager
def opened(program: str, profile: Path) -> Iterator[Page]:
    """A browser with one empty tab, ended afterwards."""
    (ours, its_out), (its_in, our_out) = os.pipe(), os.pipe()

    def hand_over() -> None:
        # Chromium reads commands from 3 and answers on 4; neither end may stand in the other's way.
        spare = os.dup2(its_in, 100), os.dup2(its_out, 101)
        os.dup2(spare[0], 3)
        os.dup2(spare[1], 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=hand_over,
        close_fds=False,
    )
    os.close(its_in)
    os.close(its_out)
    try:
        page = Page(our_out, ours)
        tab = page.ask("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.ask("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            page.ask(f"{domain}.enable")
        yield page
    finally:
        process.terminate()
        process.wait(PATIENCE)
        os.close(ours)
        os.close(our_out)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Skipped where there is no Chromium: `apt-get install chromium` brings one."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("no Chromium on this machine")
    with opened(program, tmp_path_factory.mktemp("profile")) as page:
        yield page
