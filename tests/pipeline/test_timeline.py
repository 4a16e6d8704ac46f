"""The trace that shows what overlapped."""

import json
from pathlib import Path

from pipeline.records import EnvironmentSpec, Generated, Partition, Shard, Span, Written
from pipeline.timeline import save, trace


def written(run: str, generated: Generated, start: int = 0) -> Written:
    shard = Shard(start, start + 8)
    partition = Partition(run, 4, EnvironmentSpec("hackword", ()), shard, "k", "{}")
    return Written(partition, 8, 0, 100, 7, Span(3.0, 3.5), generated)


def test_a_generation_shared_by_two_partitions_is_one_bar_and_each_write_its_own() -> None:
    generated = Generated("f", "exact", 5, Span(1.0, 1.25), Span(1.25, 3.0), 10)
    events = trace([written("a", generated), written("b", generated)])
    assert [e["cat"] for e in events] == ["load", "generate", "write", "write"]
    load, generate, *_ = events
    assert (load["ts"], load["dur"], load["pid"]) == (1_000_000, 250_000, 5)
    assert generate["ts"] == load["ts"] + load["dur"]


def test_reading_ahead_is_a_row_of_its_own_beside_the_engine() -> None:
    reading = Span(0.2, 0.9)
    generated = Generated("f", "exact", 5, Span(1.0, 1.25), Span(1.25, 3.0), 10, reading)
    read, load, *_ = trace([written("a", generated)])
    assert (read["cat"], read["pid"], read["ts"], read["dur"]) == ("read", 5, 200_000, 700_000)
    assert read["tid"] != load["tid"]


def test_a_checkpoint_is_read_once_however_many_shards_it_generates() -> None:
    reading = Span(0.2, 0.9)
    shards = [
        Generated("f", "exact", 5, Span(t, t), Span(t, t + 1), 10, reading) for t in (1.0, 2.0)
    ]
    events = trace([written("a", shard, 8 * i) for i, shard in enumerate(shards)])
    cats = [event["cat"] for event in events]
    assert cats == ["read", "load", "generate", "write", "load", "generate", "write"]
    elsewhere = Generated("f", "exact", 6, Span(1.0, 1.0), Span(1.0, 2.0), 10, reading)
    events = trace([written("a", shards[0]), written("a", elsewhere)])
    assert [event["pid"] for event in events if event["cat"] == "read"] == [5, 6]


def test_the_file_is_what_a_trace_viewer_reads(tmp_path: Path) -> None:
    generated = Generated("f", "exact", 5, Span(1.0, 1.25), Span(1.25, 3.0), 10)
    save(tmp_path / "deep" / "t.json", [written("a", generated)])
    events = json.loads((tmp_path / "deep" / "t.json").read_text())["traceEvents"]
    assert {"name", "ph", "pid", "tid", "ts", "dur"} <= set(events[0])
    assert {e["ph"] for e in events} == {"X"}
