"""When what ran where, as a Chrome trace: did loading and writing hide behind generation?"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.records import Generated, Span, Written


def trace(written: Iterable[Written]) -> list[dict[str, Any]]:
    """Complete events in microseconds, a process a row: chrome://tracing and Perfetto read them."""
    seen: set[tuple[int, float]] = set()
    events: list[dict[str, Any]] = []
    for event in written:
        partition, generated = event.partition, event.generated
        name = f"{partition.run} {partition.step} [{partition.shard.start}, {partition.shard.stop})"
        engine = generated.engine_process
        if (engine, generated.generating.begin) not in seen:
            seen.add((engine, generated.generating.begin))
            events += _engine(name, generated)
        events.append(_event("write", name, event.process, 0, event.writing))
    return events


def save(path: Path, written: Iterable[Written]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"traceEvents": trace(written)}), "utf-8")


def _engine(name: str, generated: Generated) -> Iterator[dict[str, Any]]:
    """What an engine's process did, its background thread in a row of its own."""
    if generated.reading:
        yield _event("read", name, generated.engine_process, 1, generated.reading)
    yield _event("load", name, generated.engine_process, 0, generated.loading)
    yield _event("generate", name, generated.engine_process, 0, generated.generating)


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
