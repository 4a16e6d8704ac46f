"""A sweep says how it stands in OUT/status, while it goes on: its plan once, then snapshots.

Neither is in its way: they are written from a thread of their own, and one that cannot be written
is logged.
"""

import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from pipeline import exclusive, files, status
from pipeline.holdings import StoreError, folder_of, holdings
from pipeline.places import Where
from pipeline.plan import Plan
from pipeline.records import Failure, Work, Written
from pipeline.status import Planned, Searched, Skipped, Snapshot

LOG = logging.getLogger(__name__)

EVERY = 3.0
"""Seconds between two snapshots, at least."""
REASON_CHARACTERS = 500


def planned(plan: Plan, searched: Sequence[Searched] = ()) -> status.Plan:
    """What a status needs of a plan. searched: by an adaptive sweep."""
    return status.Plan(
        tuple(
            Planned(p.key, p.environment.id, p.run, p.step, len(work.every_row))
            for work in plan.works
            for p in work.partitions
        ),
        tuple(Skipped(found.run, found.step, found.why) for found in plan.skipped),
        tuple(searched),
    )


def read(out: Where) -> tuple[status.Plan | None, Snapshot | None]:
    """What the last launch wrote; None where it wrote nothing. StoreError for a damaged file."""
    plan, snapshot = _content(out, "plan.json"), _content(out, "sweep.json")
    try:
        return (
            None if plan is None else status.parse_plan(plan),
            None if snapshot is None else status.parse_snapshot(snapshot),
        )
    except status.Damaged as error:
        raise StoreError(f"{out / 'status'}: {error}; the next sweep writes it anew") from None


def _content(out: Where, name: str) -> bytes | None:
    try:
        return files.read_bytes(out / "status" / name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def astray(out: Where, environment: str) -> str:
    """What is not as the last launches planned it, by the names of the files alone.

    environment: the folder's name. Empty where all is in place, or there is no plan.
    """
    with suppress(StoreError, OSError):
        plan, _ = read(out)
        held = holdings(out, environment).held
        if plan is not None:
            own = [p for p in plan.partitions if folder_of(p.environment) == environment]
            return status.astray(own, [(one.run, one.step, one.key) for one in held])
    return ""


def is_alive(out: Where) -> bool:
    """Whether a sweep holds the output now."""
    return exclusive.is_held(out / "staging")


class Told:
    """What one launch says of itself. The sweep's thread tells it, another one writes it."""

    def __init__(self, out: Where, under_way: Callable[[], Iterable[Work]] = tuple) -> None:
        self.out, self.under_way = out, under_way
        self.snapshot = Snapshot(uuid.uuid4().hex, time.time(), time.time())
        self.ended = status.FINISHED
        """What it says at its end, unless an error ends it."""
        self._points = [(time.monotonic(), 0)]
        self._failed: dict[str, str] = {}
        self._said: Snapshot | None = None
        self._trouble = ""

    def hear(self, event: Written | Failure) -> None:
        now = self.snapshot
        if isinstance(event, Failure):
            self._failed[event.partition.key] = event.reason[:REASON_CHARACTERS]
            self.ended = status.WITH_FAILURES
            return
        self._points.append((time.monotonic(), event.rows))
        self.snapshot = replace(
            now,
            partitions=now.partitions + 1,
            rows=now.rows + event.rows,
            nulls=now.nulls + event.nulls,
        )

    def write(self, ended: str = "") -> None:
        """Replace the snapshot if there is something new to say."""
        works = () if ended else self.under_way()
        running = dict.fromkeys(p.key for work in works for p in work.partitions)
        failed = dict(self._failed)
        now = replace(self.snapshot, running=tuple(running), failed=failed, ended=ended)
        if now != self._said:
            rows, partitions = status.rates(list(self._points), time.monotonic())
            timed = replace(now, updated=time.time(), rows_per_second=rows)
            timed = replace(timed, partitions_per_minute=partitions)
            self._put("sweep.json", status.dump_snapshot(timed))
            self._said = now

    def plan(self, plan: Plan, searched: Sequence[Searched] = ()) -> None:
        """Write what there is to do, and keep what other plans have done here."""
        try:
            before, _ = read(self.out)
        except (StoreError, OSError):
            before = None
        new = planned(plan, searched)
        if before is not None:
            done = {held.key for held in holdings(self.out).held}
            new = status.joined(new, before, done)
        self._put("plan.json", status.dump_plan(new))

    def _put(self, name: str, content: bytes) -> None:
        try:
            files.put(content, self.out / "status" / name, self.out / "staging")
        except OSError as error:
            if str(error) != self._trouble:
                LOG.warning("status/%s was not written, the sweep goes on: %s", name, error)
            self._trouble = str(error)


@contextmanager
def told(
    out: Where, plan: Plan, every: float = EVERY, searched: Sequence[Searched] = ()
) -> Iterator[Told]:
    """Say how the sweep in this block stands, at most `every` so many seconds, and how it ended."""
    telling, over = Told(out), threading.Event()

    def keep() -> None:
        while not over.wait(every):
            telling.write()

    telling.plan(plan, searched)
    telling.write()
    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield telling
    finally:
        over.set()
        thread.join()
        telling.write(_how(sys.exception()) or telling.ended)


def _how(error: BaseException | None) -> str:
    if isinstance(error, KeyboardInterrupt):
        return status.INTERRUPTED
    return f"error: {type(error).__name__}: {error}"[:REASON_CHARACTERS] if error else ""
