"""What a partition's file holds, one of its own or a compacted one: rows and footer."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import files
from pipeline.holdings import Held, StoreError
from pipeline.places import Remote, Where
from pipeline.schema import FOOTER, FOOTERS, PLACE

SAID = {"ask", "grade", "metrics", "proxy", "true", "identity"}
"""What every footer tells, at least."""


def read_footer(path: Where) -> dict[str, Any]:
    """Provenance of a partition file; StoreError when it is not one of ours."""
    return _footer(path, read_schema(path).metadata)


def _footer(path: Where, metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if FOOTER not in (metadata or {}):
        raise StoreError(
            f"{path}: not a partition of a sweep (no {FOOTER.decode()!r} in its footer)"
        )
    record = _table(path, (metadata or {})[FOOTER])
    if not record.keys() >= SAID:
        raise StoreError(f"{path}: its footer is damaged; delete the file and sweep again")
    return record


def _table(path: Where, text: bytes | str) -> dict[str, Any]:
    """A JSON object of a footer. StoreError when it is none."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise StoreError(f"{path}: its footer is damaged; delete the file and sweep again")
    return record


def footers(held: Iterable[Held]) -> Iterator[dict[str, Any]]:
    """Provenance of each partition; a compacted file is read once where its own stand together."""
    at, known = None, {}
    for one in held:
        if one.part is None:
            yield read_footer(one.at)
            continue
        if one.at != at:
            at, known = one.at, compacted_footers(one.at)
        if one.key not in known:
            raise StoreError(f"{one.at}: partition {one.key} is not in it; run onset verify")
        yield _table(one.at, known[one.key])


def compacted_footers(path: Where) -> dict[str, str]:
    """Footers, by key, of the partitions in a compacted file. StoreError when it is none."""
    metadata = _parquet(path, lambda file: pq.read_metadata(file).metadata) or {}
    if FOOTERS not in metadata:
        raise StoreError(f"{path}: not a compacted file (no {FOOTERS.decode()!r} in its footer)")
    return _table(path, metadata[FOOTERS])


def read_schema(path: Where) -> Any:
    """Arrow schema of a file. StoreError when it is no sound Parquet file."""
    return _parquet(path, lambda file: pq.read_schema(file))


def count(held: Held) -> int:
    """Rows of a partition, by its file's footer. StoreError when it is no sound Parquet file."""
    if held.part is not None:
        return held.part.rows
    rows: int = _parquet(held.at, lambda file: pq.read_metadata(file).num_rows)
    return rows


def read(held: Held) -> pa.Table:
    """Rows of a partition as they were committed, metadata left out. StoreError when damaged."""
    part = held.part
    if part is None:
        rows = _parquet(held.at, lambda file: pq.ParquetFile(file).read())
        return rows.replace_schema_metadata()
    return without_place(_group(held.at, part.group).slice(part.offset, part.rows))


def _group(path: Where, number: int) -> pa.Table:
    return _parquet(path, lambda file: pq.ParquetFile(file).read_row_group(number))


def without_place(rows: pa.Table) -> pa.Table:
    """Rows of a compacted file as they were in their partition."""
    own = [name for name in rows.column_names if name not in PLACE]
    return rows.select(own).replace_schema_metadata()


def each(held: Sequence[Held]) -> Iterator[tuple[Held, pa.Table, dict[str, Any]]]:
    """Partitions of one file, in its order, with their rows and footers; read a group at a time.

    StoreError where it is damaged.
    """
    number, group = -1, pa.table({})
    records = footers(held)
    for one in held:
        part = one.part
        if part is None:
            rows = _parquet(one.at, lambda file: pq.ParquetFile(file).read())
            yield one, rows.replace_schema_metadata(), _footer(one.at, rows.schema.metadata)
            continue
        if part.group != number:
            number, group = part.group, _group(one.at, part.group)
        rows = group.slice(part.offset, part.rows)
        if [rows[name].unique().to_pylist() for name in PLACE] != [[one.run], [one.step]]:
            raise StoreError(f"{one.at}: rows of {one.key} are of another run or step")
        yield one, without_place(rows), next(records)


def _parquet(path: Where, use: Callable[[Any], Any]) -> Any:
    try:
        return files.reading(path, use)
    except (pa.ArrowException, IndexError, OSError, ValueError) as error:
        if isinstance(error, OSError) and (error.errno or isinstance(path, Remote)):
            raise  # what the disk or the store says, rather than the file
        said = " ".join(str(error).split())[:200]
        is_own = "compacted" not in path.parts[-3:-2]
        cure = "delete it and sweep again" if is_own else "put back a copy of it"
        raise StoreError(f"{path}: damaged, or no Parquet file ({said}); {cure}") from None


def refuse_damaged(paths: Iterable[Where]) -> None:
    """StoreError for the first of the files that cannot be read; FileNotFoundError where one left.

    Every footer is read before any row: a file that was cut off has none.
    """
    known = list(paths)
    for path in known:
        read_schema(path)
    for path in known:
        _parquet(path, _read_through)


def _read_through(file: Any) -> None:
    for _ in pq.ParquetFile(file).iter_batches():
        pass
