"""vLLM's own OpenAI server on this machine's CPUs, as long as a test asks it."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

START_SECONDS = 300
ENVIRONMENT = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


@contextmanager
def serving(model: Path, log: Path, names: tuple[str, ...], context: int) -> Iterator[str]:
    """Address of a server that has the model under these names, in float32.

    context: tokens of prompt and completion.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    words += ["--served-model-name", *names, "--host", "127.0.0.1", "--port", port]
    words += ["--dtype", "float32", "--max-model-len", str(context), "--enforce-eager"]
    words += ["--kv-cache-memory-bytes", str(2**27), "--max-num-seqs", "32"]
    with log.open("wb") as file:
        server = subprocess.Popen(
            words, env=os.environ | ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            _wait(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(60)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(1)
    pytest.fail(f"no server: {log.read_text('utf-8')[-2000:]}")
