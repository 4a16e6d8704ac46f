"""Many small partitions into few large files; every row counts once at every moment.

A large file is written, the manifest names it, then its sources are deleted. A compaction that
ends between two of these leaves what the next one clears, and what no reader counts.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import contents, exclusive, files, manifest
from pipeline.holdings import Held, StoreError, compacted_path, holdings, read_manifest
from pipeline.manifest import Compacted, Manifest, Part
from pipeline.places import Where
from pipeline.schema import FOOTERS, PLACE, rows_hash

LOG = logging.getLogger(__name__)

FILE_BYTES = 2**28
"""A compacted file takes partitions until it is as large; one of half the size may take more."""
GROUP_ROWS = 65_536
"""A row group takes partitions until it holds as many; each partition lies in one."""

At = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one compaction did."""

    partitions: int
    """That lay in files of their own before."""
    rows: int
    files: int
    """Large files written."""
    left_out: int
    """Partitions in files that were large enough before."""


def compact(out: Where, at: At = files.no_boundary, file_bytes: int = FILE_BYTES) -> Compaction:
    """Move all partitions that lie in files of their own into large files.

    `at` hears every boundary as it is passed: "begun", "cleared", for each large file those of
    `files.put` after "file " and after "manifest ", and "deleted" after each source; "ended".
    StoreError when another compaction is at it, a partition is damaged, or there is none.
    """
    staging = out / "staging" / "compaction"
    with exclusive.alone(staging, f"{out}: another compaction is at it now; wait for it"):
        at("begun")
        _clear(out)
        at("cleared")
        found = holdings(out)
        if not found.held:
            raise StoreError(f"{out}: no partition under {out / 'rollouts'}; is this an output?")
        moved = [_commit(out, large, staging, at) for large in _gather(out, found.held, file_bytes)]
        at("ended")
    parts = sum(len(file.parts) for file in moved)
    rows = sum(part.rows for file in moved for part in file.parts)
    return Compaction(len(found.partitions), rows, len(moved), len(found.held) - parts)


def _clear(out: Where) -> None:
    """Delete what a compaction that was ended early left: files whose rows count elsewhere."""
    found = holdings(out)
    named = {compacted_path(out, file) for file in found.manifest.files}
    for path in sorted(named, key=str):
        if not files.exists(path):
            raise StoreError(f"{path}: the manifest names it, and it is not there")
    for path in found.superseded:
        files.delete(path)
    keys = {held.key for held in found.held}
    for path in compacted_files(out):
        if path not in named:
            if _keys(path) <= keys:
                files.delete(path)
            else:
                LOG.warning("%s: in no manifest, yet rows of it are nowhere else; it stays", path)


def compacted_files(out: Where) -> list[Where]:
    """Every compacted file, whether or not the manifest names it."""
    folder = out / "compacted"
    if isinstance(folder, Path):
        return sorted(folder.glob("*/*.parquet"))
    return [o.at for o in files.below(folder) if o.at.name.endswith(".parquet")]


def _keys(path: Where) -> set[str]:
    return set(contents.compacted_footers(path))


@dataclass(slots=True)
class _Large:
    """A large file in the making, in memory; its partitions have one schema."""

    environment: str
    schema: pa.Schema
    sources: list[Where] = field(default_factory=list)
    old: list[Compacted] = field(default_factory=list)
    """Compacted files among the sources, all of whose partitions are taken."""
    parts: list[Part] = field(default_factory=list)
    footers: dict[str, str] = field(default_factory=dict)
    hashes: list[str] = field(default_factory=list)
    sink: Any = field(default_factory=pa.BufferOutputStream)
    writer: Any = None
    group: int = 0
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0

    def __post_init__(self) -> None:
        level = {"compression": "zstd", "compression_level": 1}
        self.writer = pq.ParquetWriter(self.sink, self.schema, **level)

    @property
    def size(self) -> int:
        """Bytes, and those that wait as they lie in memory."""
        written: int = self.sink.tell()
        return written + self.waiting_bytes

    def add(self, held: Held, rows: pa.Table, record: dict[str, Any]) -> None:
        part = Part(held.key, held.run, held.step, len(rows), self.group, self.waiting_rows)
        self.parts.append(part)
        self.footers[held.key] = json.dumps(record, sort_keys=True)
        self.hashes.append(rows_hash(rows))
        self.waiting.append(with_place(held, rows))
        self.waiting_rows += len(rows)
        self.waiting_bytes += rows.nbytes
        if self.waiting_rows >= GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        rows = pa.concat_tables(self.waiting)
        self.writer.write_table(rows, row_group_size=max(1, len(rows)))
        self.waiting, self.waiting_rows, self.waiting_bytes = [], 0, 0
        self.group += 1

    def close(self) -> tuple[Compacted, Any]:
        """Its entry in the manifest, and its bytes, which were read back and hold every row."""
        if self.waiting:
            self._write()
        self.writer.add_key_value_metadata({FOOTERS: json.dumps(self.footers).encode()})
        self.writer.close()
        content = self.sink.getvalue()
        name = manifest.name(part.key for part in self.parts)
        made = Compacted(self.environment, name, len(content), tuple(self.parts))
        self._check(content)
        return made, content

    def _check(self, content: Any) -> None:
        file = pq.ParquetFile(pa.BufferReader(content))
        group, rows = -1, self.schema.empty_table()
        for part, wanted in zip(self.parts, self.hashes, strict=True):
            if part.group != group:
                group, rows = part.group, file.read_row_group(part.group)
            own = contents.without_place(rows.slice(part.offset, part.rows))
            if rows_hash(own) != wanted:
                raise AssertionError(f"partition {part.key} changed as it was compacted")


def with_place(held: Held, rows: pa.Table) -> pa.Table:
    """The rows, and in which run and step they were: what a partition's path says."""
    for name, value in zip(PLACE, (held.run, held.step), strict=True):
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, PLACE[name]), len(rows)))
    return rows


def _gather(out: Where, held: Sequence[Held], file_bytes: int) -> Iterator[_Large]:
    """Large files, full or the last of their schema, in the making until now."""
    new = {one.environment for one in held if one.part is None}
    known = {compacted_path(out, file): file for file in read_manifest(out).files}
    making: dict[tuple[str, str], _Large] = {}
    for path, own in by_file(held).items():
        small = path not in known or known[path].bytes < file_bytes / 2
        if own[0].environment not in new or not small:
            continue
        large = None
        for one, rows, record in contents.each(own):
            _refuse_damage(one, rows, record)
            if large is None:
                schema = with_place(one, rows.slice(0, 0)).schema
                key = one.environment, str(schema)
                large = making.pop(key, None) or _Large(one.environment, schema)
                making[key] = large
                large.sources.append(path)
                large.old += [known[path]] if path in known else []
            large.add(one, rows, record)
        if large is not None and large.size >= file_bytes:
            yield making.pop((large.environment, str(large.schema)))
    yield from making.values()


def by_file(held: Sequence[Held]) -> dict[Where, list[Held]]:
    """Partitions by the file that they lie in, in its order."""
    found: dict[Where, list[Held]] = {}
    for one in sorted(held, key=lambda h: (h.part.group, h.part.offset) if h.part else (0, 0)):
        found.setdefault(one.at, []).append(one)
    return found


def _refuse_damage(held: Held, rows: pa.Table, record: dict[str, Any]) -> None:
    """What is not as it was committed is not written anew as if it were."""
    if record.get("rows_hash") not in (None, rows_hash(rows)):
        raise StoreError(f"{held.at}: rows were changed after their commit; see onset verify")


def _commit(out: Where, large: _Large, staging: Where, at: At) -> Compacted:
    """Put a large file, name it in the manifest, delete its sources."""
    made, content = large.close()
    path = compacted_path(out, made)
    before = read_manifest(out)
    files.put(memoryview(content), path, staging, lambda name: at(f"file {name}"))
    now = before.replacing(large.old, made)
    _refuse_rival(out, before)
    to = out / "compacted" / "manifest.json"
    files.put(manifest.dump(now), to, staging, lambda name: at(f"manifest {name}"))
    for source in large.sources:
        if source != path:
            files.delete(source)
            at("deleted")
    return made


def _refuse_rival(out: Where, before: Manifest) -> None:
    """A compaction that slept until its lease was lost does not undo another's."""
    if read_manifest(out) != before:
        raise StoreError(f"{out}: another compaction went on meanwhile; run this one again")
