"""Which weights a user says are served: the fingerprint of the checkpoint's own files."""

import os
from functools import lru_cache
from pathlib import Path

from pipeline.checkpoints.headers import open_regular, read_json
from pipeline.checkpoints.identity import (
    ADAPTER_CONFIG,
    adapter_fingerprint,
    fingerprint_files,
    weight_digest,
)
from pipeline.records import Checkpoint, CheckpointError

CHUNK_BYTES = 2**22

Stamp = tuple[int, int, int]
"""Inode, size and mtime in ns of a file."""


def fingerprint(checkpoint: Checkpoint) -> str:
    """What engine `hf` would say that it loaded, from the same bytes. Raises CheckpointError."""
    folder = Path(checkpoint.path)
    own = digest(folder)
    if checkpoint.kind != "adapter":
        return own
    if not checkpoint.base or not Path(checkpoint.base).is_dir():
        raise CheckpointError(
            f"{folder}: its base {checkpoint.base or '(not named)'} is no folder here; "
            "set `base` of its run to one"
        )
    config = read_json(folder / ADAPTER_CONFIG)
    return adapter_fingerprint(digest(Path(checkpoint.base)), own, config)


def digest(folder: Path) -> str:
    """Fingerprint of a folder's weight files, see `weight_digest`.

    The files are read again only when one of them changed. Raises CheckpointError.
    """
    files = tuple(fingerprint_files(folder))
    return _digest(files, tuple(_stamp(path) for path in files))


@lru_cache(maxsize=64)
def _digest(files: tuple[Path, ...], stamps: tuple[Stamp, ...]) -> str:
    digest = weight_digest()
    for path, stamp in zip(files, stamps, strict=True):
        digest.update(f"{path.name} {stamp[1]} ".encode())
        with open_regular(path) as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
        if _stamp(path) != stamp:
            raise CheckpointError(f"{path}: changed while it was read; sweep it when it is saved")
    return digest.hexdigest()


def _stamp(path: Path) -> Stamp:
    with open_regular(path) as file:
        stat = os.fstat(file.fileno())
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
