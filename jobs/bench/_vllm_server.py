"""vLLM's own OpenAI server of one checkpoint, as long as it is asked."""

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 900
"""Seconds until a server must answer."""


class ServerFailed(RuntimeError):
    """It ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Server:
    """One that answers."""

    port: int
    process: subprocess.Popen[bytes]


@contextmanager
def serving(
    checkpoint: str, settings: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
) -> Iterator[Server]:
    """A server of the model `peer` on a free port, ended with the block; its log in `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(str(Path(sys.executable).with_name("vllm")), "serve", checkpoint),
        *("--served-model-name", "peer", "--host", "127.0.0.1", "--port", str(port)),
        *flags(settings),
    ]
    own = {**environment, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=own, start_new_session=True)
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield Server(port, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def flags(settings: Mapping[str, Any]) -> list[str]:
    """Settings as vLLM's command line takes them."""
    words: list[str] = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", str(value)]
    return words


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Until the address answers. Raises ServerFailed when its process ended, or after PATIENCE."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise ServerFailed(f"vllm serve did not answer at {url} (exit code {process.poll()})")
