"""When what ran where, as a Chrome trace: did loading and writing hide behind generation?"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.records import Generated, Span, Written

Moment = tuple[str, int, float]
"""What began in which process at which second."""


def trace(written: Iterable[Written]) -> list[dict[str, Any]]:
    """Complete events in microseconds, a process a row: chrome://tracing and Perfetto read them."""
    seen: set[Moment] = set()
    events: list[dict[str, Any]] = []
    for event in written:
        partition, generated = event.partition, event.generated
        name = f"{partition.run} {partition.step} [{partition.shard.start}, {partition.shard.stop})"
        for what, bar in _engine(name, generated):
            if what not in seen:
                seen.add(what)
                events.append(bar)
        events.append(_event("write", name, event.process, 0, event.writing))
    return events


def save(path: Path, written: Iterable[Written]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"traceEvents": trace(written)}), "utf-8")


def _engine(name: str, generated: Generated) -> Iterator[tuple[Moment, dict[str, Any]]]:
    """What an engine's process did, its background thread in a row of its own.

    Every generation of a checkpoint tells again when that was read.
    """
    process = generated.engine_process
    spans = [("load", 0, generated.loading), ("generate", 0, generated.generating)]
    if generated.reading:
        spans.insert(0, ("read", 1, generated.reading))
    for what, thread, span in spans:
        yield (what, process, span.begin), _event(what, name, process, thread, span)


def _event(what: str, name: str, process: int, thread: int, span: Span) -> dict[str, Any]:
    return {
        "name": f"{what} {name}",
        "cat": what,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": round(1e6 * span.begin),
        "dur": max(0, round(1e6 * (span.end - span.begin))),  # a clock may have been set back
    }
