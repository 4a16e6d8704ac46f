"""One writer at a time: a lock in a folder here, a lease on an object store."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pipeline import lease
from pipeline.holdings import StoreError
from pipeline.places import Remote, Where

PATIENCE = 1.0
"""Seconds for which a lock is asked again: `onset status` holds one for an instant."""


@contextmanager
def alone(staging: Where, taken: str) -> Iterator[None]:
    """A staging folder, ours alone. StoreError, which says `taken`, when it is not.

    On a disk a lock says so, which ends with the process, however that ends; on an object store a
    lease, see there.
    """
    ours = _locked(staging) if isinstance(staging, Path) else lease.held(staging / "leases")
    with ExitStack() as stack:
        try:
            stack.enter_context(ours)
        except (BlockingIOError, lease.Taken):
            raise StoreError(taken) from None
        yield


def is_held(staging: Where) -> bool:
    """Whether somebody has the staging folder alone now."""
    if isinstance(staging, Remote):
        return lease.is_alive(staging / "leases")
    try:
        with (staging / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
    return False


@contextmanager
def _locked(staging: Path) -> Iterator[None]:
    """The staging folder, ours alone; what killed processes left there is cleared.

    BlockingIOError when it is not ours.
    """
    staging.mkdir(parents=True, exist_ok=True)
    with (staging / "lock").open("w") as lock:
        _lock(lock, time.monotonic() + PATIENCE)
        _clear(staging)
        yield
        _clear(staging)


def _clear(staging: Path) -> None:
    for stale in staging.glob("*.*"):
        stale.unlink(missing_ok=True)


def _lock(lock: Any, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
