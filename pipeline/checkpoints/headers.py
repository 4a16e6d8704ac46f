"""Safetensors headers and JSON files, read without trusting a byte of them."""

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from pipeline.records import CheckpointError

LENGTH_BYTES = 8
HEADER_LIMIT = 2**24
"""Bytes. The format allows 100 MB, which takes 1.3 GB to read; a tensor takes about a hundred."""
JSON_BYTES = 2**26
RANK_LIMIT = 64
BITS = {
    "F4": 4,
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}
"""Bits of one element by dtype name."""
CURES = {
    errno.ENOENT: "; copy it there, or save the checkpoint again",
    errno.EACCES: "; give the right to read it",
    errno.EIO: "; copy it from elsewhere, or save the checkpoint again",
}


class Extent(NamedTuple):
    """Where a tensor lies: bytes [begin, end) after the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def header(path: Path) -> Mapping[str, Extent]:
    """Tensors of a safetensors file by name; no tensor is read.

    Raises CheckpointError unless the extents are sane and the file has exactly the size they need.
    """
    raw, size = raw_header(path)
    try:
        extents = parse(raw)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a sound safetensors header: {error}") from None
    need = LENGTH_BYTES + len(raw) + max((e.end for e in extents.values()), default=0)
    if size != need:
        raise CheckpointError(
            f"{path}: torn: {size} bytes where its header needs {need}; save or copy it again"
        )
    return extents


def raw_header(path: Path) -> tuple[bytes, int]:
    """The header's bytes as they stand, and the size of the file. Raises CheckpointError."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if size < LENGTH_BYTES or length > min(HEADER_LIMIT, size - LENGTH_BYTES):
            raise CheckpointError(
                f"{path}: torn: {size} bytes, its header alone would be {length} "
                f"({HEADER_LIMIT:,} at most); save or copy it again"
            )
        return file.read(length), size


@lru_cache(maxsize=8)  # the checkpoints of a run have equal headers, and a run may have 10,000
def parse(raw: bytes) -> Mapping[str, Extent]:
    """Tensors by name from the header's JSON. Raises ValueError or RecursionError."""
    entries = json.loads(raw.decode(), object_pairs_hook=_once)
    if not raw.startswith(b"{"):
        raise ValueError("it is no JSON object")
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("__metadata__ is no table of texts")
    extents = {name: _extent(name, entry) for name, entry in entries.items()}
    _check_contiguous(sorted(extents.values(), key=lambda e: (e.begin, e.end)))
    return MappingProxyType(extents)


def read_json(path: Path) -> dict[str, Any]:
    """A file that holds one JSON object. Raises CheckpointError."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > JSON_BYTES:
            raise CheckpointError(f"{path}: {size:,} bytes are no configuration")
        try:
            value = json.loads(file.read().decode())
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: torn or no JSON: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: holds no JSON object")
    return value


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """A regular file open for reading; what the disk says instead becomes a CheckpointError."""
    try:
        # a pipe would block the open for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CheckpointError(f"{path}: not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)
    except OSError as error:
        said = f"{error.strerror or 'cannot be read'}{CURES.get(error.errno or 0, '')}"
        raise CheckpointError(f"{path}: {said}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _extent(name: str, entry: object) -> Extent:
    """One tensor's entry, checked on its own."""
    name.encode()
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name!r} needs dtype, shape and data_offsets, no more")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    bits = BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise ValueError(f"{name!r} has unknown dtype {dtype!r}")
    if not (_sizes(shape) and _sizes(offsets) and len(offsets) == 2):
        raise ValueError(f"{name!r} has a shape or offsets that are no sizes")
    begin, end = offsets
    if end - begin < 0 or bits * prod(shape) != 8 * (end - begin):
        raise ValueError(f"{name!r} of {dtype} {shape} cannot fill bytes {begin} to {end}")
    return Extent(dtype, tuple(shape), begin, end)


def _sizes(value: object) -> bool:
    """A short list of 64-bit sizes; True and False are none."""
    return (
        isinstance(value, list)
        and len(value) <= RANK_LIMIT
        and all(type(n) is int and 0 <= n < 2**64 for n in value)
    )


def _check_contiguous(extents: Sequence[Extent]) -> None:
    """Raises ValueError where bytes belong to no tensor or to two."""
    at = 0
    for extent in extents:
        if extent.begin != at:
            raise ValueError(
                f"bytes {min(at, extent.begin)} to {max(at, extent.begin)} are "
                f"{'in no tensor' if extent.begin > at else 'in two tensors'}"
            )
        at = extent.end


def read_ahead(files: Iterable[Path]) -> None:
    """Ask the kernel to read files into its page cache; returns at once, and never raises."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in files:
        with suppress(OSError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
