"""Ray: actors placed on machines, and the loop that keeps them busy.

The driver hands on references: no completion ever passes through it.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

import ray

from pipeline.cluster.apart import apart
from pipeline.cluster.sweep import Sweep
from pipeline.config import ClusterBlock
from pipeline.records import ClusterError

TICK, SECONDS = 0.02, 10.0
"""Seconds between looks while Ray starts, and until an address answers."""
SAID = 300
"""Characters of what Ray says of itself."""

__all__ = ["Sweep", "session"]


@contextmanager
def session(
    block: ClusterBlock, meanwhile: Callable[[], None] = lambda: None, judges: int = 0
) -> Iterator[None]:
    """A Ray of our own for the length of the block, or the one named, or one already up.

    It has a core for every engine, those of a judge among them, though the machine have fewer.
    `local` keeps Ray from joining whatever cluster was last seen on this machine. `meanwhile` is
    called time and again while Ray starts, and once it is up: its native side takes SIGTERM, too.
    ClusterError where Ray does not start.
    """
    if ray.is_initialized():
        yield
        return
    actors = (block.workers or 1) + block.scorers + judges
    address = block.address or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = (
        {"address": address}
        if address
        else {
            "address": "local",
            "num_cpus": max(os.cpu_count() or 1, actors + 1),
            "include_dashboard": False,
        }
    )
    # What an actor raised is told by the loop; Ray would print its traceback as well.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    if not address:
        # A Ray of our own that lost its GCS never gets it back; by itself it waits for a minute.
        os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "10")
    options |= {"log_to_driver": False, "logging_level": logging.ERROR}
    # On the main thread Ray would take SIGTERM for itself, and end with neither word nor code. The
    # thread lives as long as Ray: Linux kills Ray's processes when the one that made them ends.
    if address:
        _refuse_nobody(address)
    keeper = ThreadPoolExecutor(1, "ray")
    starting = keeper.submit(apart, partial(ray.init, **options))
    while not wait([starting], timeout=TICK).done:
        meanwhile()
    try:
        starting.result()
    except Exception as error:
        keeper.submit(ray.shutdown).result()
        raise ClusterError(_why(error, address)) from error
    try:
        meanwhile()
        yield
    finally:
        keeper.submit(ray.shutdown).result()
        keeper.shutdown()


def _refuse_nobody(address: str) -> None:
    """ClusterError where nothing listens at a host and port: Ray would end the process there."""
    host, _, port = address.rpartition(":")
    if "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(_why(error, address)) from error


def _why(error: Exception, address: str | None) -> str:
    """One line: where Ray was looked for, what it said, and the cure."""
    said = " ".join(str(error).split())[:SAID]
    if address:
        return f"cluster.address {address!r}: {said}; is a Ray of this version up there?"
    cure = "the machine may be too busy, or /tmp full; run the same command again"
    return f"Ray did not start ({said}): {cure}"
