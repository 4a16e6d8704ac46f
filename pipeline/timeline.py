"""When what ran where, as a Chrome trace: did loading and writing hide behind generation?"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.records import Span, Written


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
            events += _engine(name, engine, generated.loading, generated.generating)
        events.append(_event("write", name, event.process, 0, event.writing))
    return events


def save(path: Path, written: Iterable[Written]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"traceEvents": trace(written)}), "utf-8")


def _engine(name: str, process: int, loading: Span, generating: Span) -> Iterator[dict[str, Any]]:
    yield _event("load", name, process, 0, loading)
    yield _event("generate", name, process, 0, generating)


def _event(what: str, name: str, process: int, thread: int, span: Span) -> dict[str, Any]:
    return {
        "name": f"{what} {name}",
        "cat": what,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": round(1e6 * span.begin),
        "dur": round(1e6 * (span.end - span.begin)),
    }
