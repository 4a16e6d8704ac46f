"""A checkpoint's tensors as its headers tell them, and its bytes read once, ahead of time."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from pipeline.checkpoints.headers import header, open_regular
from pipeline.checkpoints.identity import fingerprint_files, weight_digest
from pipeline.engines.hf.weights import stamp
from pipeline.records import CheckpointError

FLOATS = ("F64", "F32", "F16", "BF16")
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
CHUNK_BYTES = 2**22

Shapes = Mapping[str, tuple[int, ...]]
"""Shape by tensor name."""


def shapes(folder: Path, tied: bool) -> Shapes:
    """Every tensor of a full checkpoint; no tensor is read. Raises CheckpointError.

    A head that is saved although it is tied is left out; it must equal the embedding.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path in fingerprint_files(folder):
        for name, extent in header(path).items():
            if extent.dtype not in FLOATS:
                raise CheckpointError(f"{path}: {name} is {extent.dtype}; save it in floats")
            if name in found:
                raise CheckpointError(f"{folder}: {name} stands in two of its files")
            found[name] = extent.shape
    if tied and found.keys() >= {HEAD, EMBEDDING}:
        both = {name: value for name, value in tensors(folder) if name in (HEAD, EMBEDDING)}
        if not both[HEAD].equal(both[EMBEDDING]):
            raise CheckpointError(f"{folder}: {HEAD} and {EMBEDDING} are tied but differ")
        del found[HEAD]
    return found


def tensors(folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and torch tensor, file by file, backed by the page cache."""
    for path in fingerprint_files(folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118, not a mapping
                yield name, file.get_tensor(name)


def refuse_difference(live: Shapes, found: Shapes, folder: Path) -> None:
    """CheckpointError unless a live engine of these shapes would be written whole, and no more."""
    for names, what in ((live.keys() - found.keys(), "lacks"), (found.keys() - live.keys(), "has")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            whose = "which its config.json asks for" if what == "lacks" else "which no engine takes"
            raise CheckpointError(f"{folder}: {what} {min(names)}{more}, {whose}")
    for name, shape in live.items():
        if found[name] != shape:
            raise CheckpointError(
                f"{folder}: {name} is {list(found[name])}, the model wants {list(shape)}"
            )


class Reader:
    """Reads weight files once: into the page cache, hashed and looked at; from any thread."""

    def __init__(self, largest: float) -> None:
        """largest: the largest number that the live dtype holds."""
        self._largest = largest
        self._known: dict[str, str] = {}

    def fingerprint(self, folder: Path) -> str:
        """See `weight_digest`; read now unless these very files were. Raises CheckpointError.

        Files count as the same while inode, size and time of change are.
        """
        try:
            wanted = stamp(folder)
        except OSError as error:
            raise CheckpointError(f"{error.filename}: {error.strerror}") from None
        if wanted not in self._known:
            self._known[wanted] = read(folder, self._largest)
        return self._known[wanted]


def read(folder: Path, largest: float) -> str:
    """Fingerprint of a folder's weight files, see `weight_digest`.

    Raises CheckpointError, also where a value is NaN, infinite or beyond `largest`.
    """
    digest = weight_digest()
    chunk = memoryview(bytearray(CHUNK_BYTES))
    for path in fingerprint_files(folder):
        with open_regular(path) as file:
            digest.update(f"{path.name} {os.fstat(file.fileno()).st_size} ".encode())
            while count := file.readinto(chunk):  # type: ignore[attr-defined]
                digest.update(chunk[:count])
    try:
        for name, tensor in tensors(folder):
            low, high = tensor.aminmax() if tensor.numel() else (0, 0)
            if not -largest <= float(low) <= float(high) <= largest:
                raise CheckpointError(
                    f"{folder}: {name} holds NaN or infinity: training diverged, or the file is "
                    "damaged"
                )
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{folder}: torn or of no known dtype ({error})") from error
    return digest.hexdigest()
