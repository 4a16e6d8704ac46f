"""How a sweep stands: its plan, what it last said, and what is there, put together. Pure."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

FINISHED, WITH_FAILURES, INTERRUPTED = "finished", "finished with failures", "interrupted"
KILLED = "stopped (killed)"
RUNNING, STARTING, UNKNOWN = "running", "starting", "nothing is known of its sweep"
WINDOW = 120.0
"""Seconds over which a rate is taken."""

LATEST = 2.5e11
"""Seconds since the epoch: the year 9892."""


class Damaged(ValueError):
    """A status file says nothing that can be read."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One partition that a sweep is to write."""

    key: str
    environment: str
    run: str
    step: int
    rows: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A checkpoint that the sweep left out."""

    run: str
    step: int
    why: str


@dataclass(frozen=True, slots=True)
class Searched:
    """What an adaptive sweep has evaluated of a run."""

    run: str
    saved: int
    """Checkpoints there are."""
    steps: tuple[int, ...]
    """Those with a rate, ascending."""
    blind: int
    """Steps: a shorter excursion over the threshold, or below it, may have been missed."""
    is_over: bool
    """Whether nothing more is wanted."""

    def __str__(self) -> str:
        return (
            f"adaptive: run {self.run!r}: {len(self.steps):,} of {self.saved:,} checkpoints "
            f"evaluated{'' if self.is_over else ' so far'}; excursions shorter than {self.blind} "
            f"steps would be missed; steps {' '.join(map(str, self.steps)) or 'none'}"
        )


@dataclass(frozen=True, slots=True)
class Plan:
    partitions: tuple[Planned, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    searched: tuple[Searched, ...] = ()
    """Empty where every checkpoint is wanted."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the last launch said of itself; times in seconds since the epoch, by its clock."""

    launch: str
    began: float
    updated: float
    partitions: int = 0
    """Written by this launch."""
    rows: int = 0
    nulls: int = 0
    rows_per_second: float = 0.0
    partitions_per_minute: float = 0.0
    running: tuple[str, ...] = ()
    """Keys of what actors hold."""
    failed: Mapping[str, str] | None = None
    """Why, by key."""
    ended: str = ""
    """How; empty while it goes on, and for ever after a kill."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How many partitions of a run are what; each is one of done, running, owed and failed."""

    run: str
    partitions: int
    done: int
    running: int
    owed: int
    failed: int
    rollouts: int
    """In its done partitions."""


def standings(
    plan: Plan, done: Collection[str], snapshot: Snapshot | None, is_alive: bool
) -> list[Standing]:
    """One a run, in order of the plan. `done`: keys whose rows are there."""
    states = states_of(plan, done, snapshot, is_alive)
    counts: dict[str, Counter[str]] = {}
    for one in plan.partitions:
        count = counts.setdefault(one.run, Counter())
        count[states[one.key]] += 1
        count["rollouts"] += one.rows if states[one.key] == "done" else 0
    return [
        Standing(
            run=run,
            partitions=sum(count.values()) - count["rollouts"],
            done=count["done"],
            running=count["running"],
            owed=count["owed"],
            failed=count["failed"],
            rollouts=count["rollouts"],
        )
        for run, count in counts.items()
    ]


def states_of(
    plan: Plan, done: Collection[str], snapshot: Snapshot | None, is_alive: bool
) -> dict[str, str]:
    """done, running, failed or owed by key. A file that is there outdoes what was said of it."""
    running = set(snapshot.running) if snapshot and is_alive and not snapshot.ended else set()
    failed = set(snapshot.failed or ()) if snapshot else set()

    def state(key: str) -> str:
        if key in done:
            return "done"
        if key in failed:
            return "failed"
        return "running" if key in running else "owed"

    return {one.key: state(one.key) for one in plan.partitions}


def state(snapshot: Snapshot | None, is_alive: bool) -> str:
    """Of the sweep as a whole. `is_alive`: whether its lock or lease is held."""
    if is_alive:
        return RUNNING if snapshot and not snapshot.ended else STARTING
    if snapshot is None:
        return UNKNOWN
    return snapshot.ended or KILLED


def eta(plan: Plan, states: Mapping[str, str], snapshot: Snapshot | None) -> float | None:
    """Seconds until what is running and owed is written at the last rate; None without one."""
    if snapshot is None or not snapshot.rows_per_second:
        return None
    left = sum(one.rows for one in plan.partitions if states[one.key] in ("running", "owed"))
    return min(left / snapshot.rows_per_second, LATEST)


def reasons(
    plan: Plan, states: Mapping[str, str], snapshot: Snapshot | None
) -> list[dict[str, Any]]:
    """Why partitions failed: one line a checkpoint and reason, and how many it is true of."""
    said = (snapshot.failed if snapshot else None) or {}
    lost = [one for one in plan.partitions if states[one.key] == "failed"]
    counts = Counter((one.run, one.step, said[one.key]) for one in lost)
    names = "run", "step", "reason", "partitions"
    return [dict(zip(names, (*line, n), strict=True)) for line, n in counts.items()]


def rates(points: Sequence[tuple[float, int]], now: float) -> tuple[float, float]:
    """Rows a second and partitions a minute over the last WINDOW seconds.

    points: moment and rows of every partition written, the launch itself first, with 0 rows.
    """
    since = max(points[0][0], now - WINDOW)
    recent = [rows for moment, rows in points[1:] if moment >= since]
    seconds = max(now - since, 1e-3)
    return sum(recent) / seconds, 60 * len(recent) / seconds


def astray(planned: Iterable[Planned], there: Iterable[tuple[str, int, str]]) -> str:
    """What is planned and not there, and there but not planned so; empty where all is in place.

    there: run, step and key of each partition.
    """
    wanted, found = {(one.run, one.step, one.key) for one in planned}, set(there)
    owed, strange = len(wanted - found), len(found - wanted)
    said = [f"{owed} of {len(wanted)} planned partitions are not there (see onset status)"]
    said += [f"{strange} that are there were not planned so (see onset verify)"]
    return "; ".join(line for line, count in zip(said, (owed, strange), strict=True) if count)


def joined(new: Plan, old: Plan, done: Collection[str]) -> Plan:
    """The plan of a launch, and before it what earlier ones of other checkpoints have written."""
    here = {(one.environment, one.run, one.step) for one in new.partitions}
    kept = [
        one
        for one in old.partitions
        if one.key in done and (one.environment, one.run, one.step) not in here
    ]
    return Plan((*kept, *new.partitions), new.skipped, new.searched)


def dump_plan(plan: Plan) -> bytes:
    said = {
        "partitions": [[p.key, p.environment, p.run, p.step, p.rows] for p in plan.partitions],
        "skipped": [[s.run, s.step, s.why] for s in plan.skipped],
        "searched": [[s.run, s.saved, s.blind, s.is_over, *s.steps] for s in plan.searched],
    }
    return json.dumps(said, indent=0).encode()


def parse_plan(content: bytes) -> Plan:
    """Raises Damaged."""
    said = _object(content)
    try:
        partitions = tuple(Planned(*_typed(p, str, str, str, int, int)) for p in said["partitions"])
        skipped = tuple(Skipped(*_typed(s, str, int, str)) for s in said["skipped"])
        searched = tuple(_searched(*one) for one in said.get("searched", ()))
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"no plan of a sweep: {error}") from None
    return Plan(partitions, skipped, searched)


def _searched(run: Any, saved: Any, blind: Any, is_over: Any, *steps: Any) -> Searched:
    _typed([run, saved, blind, is_over, *steps], str, int, int, bool, *[int for _ in steps])
    return Searched(run, saved, steps, blind, is_over)


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Equal reasons are written once: a checkpoint that fails does so with all its partitions."""
    failed = snapshot.failed or {}
    texts = list(dict.fromkeys(failed.values()))
    number = {text: i for i, text in enumerate(texts)}
    said = asdict(snapshot) | {
        "failed": {key: number[reason] for key, reason in failed.items()},
        "reasons": texts,
    }
    return json.dumps(said, indent=1).encode()


def parse_snapshot(content: bytes) -> Snapshot:
    """Raises Damaged."""
    said = _object(content)
    try:
        texts = said.pop("reasons")
        failed = {key: str(texts[number]) for key, number in said.pop("failed").items()}
        running = said.pop("running")
        _typed(running, *[str] * len(running))
        _typed([said["launch"], said["ended"]], str, str)
        _typed([said["partitions"], said["rows"], said["nulls"]], int, int, int)
        for name in ("began", "updated", "rows_per_second", "partitions_per_minute"):
            if not 0 <= said[name] < LATEST:
                raise Damaged(f"no snapshot of a sweep: {name} = {said[name]!r}")
        return Snapshot(**said, running=tuple(running), failed=failed)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"no snapshot of a sweep: {error}") from None


def _object(content: bytes) -> dict[str, Any]:
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"no JSON: {error}") from None
    if not isinstance(said, dict):
        raise Damaged("no JSON object")
    return said


def _typed(values: Iterable[Any], *kinds: type) -> list[Any]:
    found = list(values)
    if [type(value) for value in found] != list(kinds):
        raise TypeError(f"{found!r} is none of ours")
    return found
