"""One sweep at a time on an object store, which knows no locks: a lease, renewed while it lasts."""

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline import files
from pipeline.places import Remote

LOG = logging.getLogger(__name__)

RENEWAL = 5.0
"""Seconds."""
MISSED = 3
"""Renewals that a sweep may miss before it counts as ended."""
GRANULARITY = 1.0
"""Seconds: stores tell when an object was put in whole ones."""


class Taken(Exception):
    """Another sweep renews a lease there."""


@contextmanager
def held(folder: Remote, renewal: float = RENEWAL) -> Iterator[None]:
    """The lease on an output, ours alone. Raises Taken.

    Each sweep has a lease object of its own: it puts it, then looks for others, so that of two that
    begin at once at least one sees the other and refuses; both may. A lease left by a killed sweep
    is known by its age on the store's own clock, or watched until it was not renewed, for at most
    MISSED * renewal seconds. A sweep that sleeps longer than that loses its claim; then two may
    write, which wastes work and harms no row: equal partitions have equal names.
    """
    mine = folder / f"{uuid.uuid4().hex}.json"
    ended = threading.Event()
    _renew(mine, 0)
    renewing = threading.Thread(target=_keep, args=(mine, renewal, ended), daemon=True)
    renewing.start()
    try:
        for other in (found.at for found in files.below(folder) if found.at != mine):
            if _is_renewed(other, mine, renewal):
                raise Taken(str(other))
            files.delete(other)
        yield
    finally:
        ended.set()
        renewing.join()
        files.delete(mine)


def is_alive(folder: Remote, renewal: float = RENEWAL) -> bool:
    """Whether somebody renews a lease there; told within a little more than one renewal.

    A lease that is young by our clock counts at once; an older one is watched, as clocks differ.
    """
    found = files.below(folder)
    if any(abs(time.time() - o.changed / 1e9) < MISSED * renewal for o in found):
        return True
    before, deadline = {o.at: _content(o.at) for o in found}, time.monotonic() + 1.2 * renewal
    while before and time.monotonic() < deadline:
        time.sleep(renewal / 4)
        if any(_content(at) not in (content, None) for at, content in before.items()):
            return True
    return False


def _keep(lease: Remote, renewal: float, ended: threading.Event) -> None:
    count = 0
    while not ended.wait(renewal):
        count += 1
        try:
            _renew(lease, count)
        except OSError as error:
            LOG.warning("the lease on the output was not renewed: %s", error)


def _renew(lease: Remote, count: int) -> None:
    said = {"owner": lease.name.removesuffix(".json"), "renewals": count}
    files.put(json.dumps(said).encode(), lease, lease.parent)


def _is_renewed(other: Remote, mine: Remote, renewal: float) -> bool:
    """Whether another lease is alive; only the store's clock is asked, never ours."""
    found = {o.at: o for o in files.look([other, mine])}
    if other not in found:
        return False
    missed = (MISSED * renewal + GRANULARITY) * 1e9
    if mine in found and found[mine].changed - found[other].changed > missed:
        return False
    before, deadline = _content(other), time.monotonic() + MISSED * renewal
    while time.monotonic() < deadline:
        time.sleep(renewal / 4)
        now = _content(other)
        if now != before:
            return now is not None
    return False


def _content(lease: Remote) -> bytes | None:
    """None where it is gone."""
    try:
        return files.read_bytes(lease)
    except FileNotFoundError:
        return None
