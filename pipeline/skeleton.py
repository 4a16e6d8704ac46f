"""Runs on object stores as local skeletons: names, sizes, headers and the bytes that identify.

Discovery and planning look at a skeleton as they look at a run. It holds no weights: what is not
looked at is a hole in a sparse file, and a checkpoint of the plan is named by its address.
"""

import fcntl
import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import checkpoints, files
from pipeline.cache import home
from pipeline.checkpoints import Found, LayoutError
from pipeline.checkpoints.headers import HEADER_LIMIT, LENGTH_BYTES
from pipeline.checkpoints.identity import STATE_BYTES, VOCABULARIES, after_state, sampled
from pipeline.checkpoints.run_file import RUN_FILE
from pipeline.files import Object, read_part
from pipeline.places import Remote, is_address, where
from pipeline.records import CheckpointError

WHOLE = (".json", ".toml", ".jinja", ".txt")
WHOLE_BYTES = 2**26
"""A text file above this size is left a hole; then it is no configuration."""
ONE_REQUEST_BYTES = 2**23
"""A file up to this size is fetched at once: faster than 65 requests for parts of it."""
FILES_AT_ONCE, PARTS_AT_ONCE = 8, 8

Part = tuple[int, bytes]
"""Offset and bytes."""


class Skeletons:
    """Addresses and the local folders that stand for them, for the length of one planning."""

    def __init__(self, cache: Path | None = None) -> None:
        self._home = home(cache) / "skeletons"
        self._folders: dict[str, Path] = {}

    def discover(self, text: str, layout: str = "auto") -> list[Found]:
        """See `checkpoints.discover`; by local paths, which `back` turns into addresses."""
        found = checkpoints.discover(self.near(text), layout)
        return [replace(f, why=self.back(f.why)) for f in found]

    def base(self, text: str | None) -> str | None:
        return text and self.near(text)

    def near(self, text: str) -> str:
        """The local folder to look at: of an address its skeleton, else the text itself.

        OSError when the store cannot be read.
        """
        if not is_address(text):
            return text
        if text not in self._folders:
            place = where(text)
            assert isinstance(place, Remote)
            self._folders[text] = mirror(place, self._home)
        return str(self._folders[text])

    @contextmanager
    def told(self) -> Iterator[None]:
        """What is refused within is told by its address."""
        try:
            yield
        except (LayoutError, CheckpointError) as error:
            raise type(error)(self.back(str(error))) from None

    def back(self, text: str) -> str:
        """The text with addresses in place of skeletons."""
        for address, folder in self._folders.items():
            text = text.replace(str(folder), address.rstrip("/"))
        return text


def mirror(run: Remote, skeletons: Path) -> Path:
    """The skeleton of a folder, brought up to date: what has not changed is not asked for again.

    It lies as the folder does, under a parent of the same name with the parent's run.toml.
    """
    parent = skeletons / hashlib.blake2b(str(run.parent).encode(), digest_size=16).hexdigest()
    folder = parent / run.parent.name / run.name
    beside = [run.parent / RUN_FILE] if run.parent != run else []
    with _locked(parent):
        found = {folder / path: o for path, o in _named(run, files.below(run))}
        found |= {folder.parent / o.at.name: o for o in files.look(beside)}
        old = [path for path in folder.rglob("*") if path.is_file()] + [folder.parent / RUN_FILE]
        for path in set(old) - found.keys():
            path.unlink(missing_ok=True)
        changed = [(path, o) for path, o in found.items() if not _is_same(path, o)]
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            list(pool.map(lambda pair: _sketch(pair[0], pair[1], parent), changed))
        folder.mkdir(parents=True, exist_ok=True) if found else None
        _tell_times(folder)
    return folder


def _named(run: Remote, found: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """Objects by their path in the folder; one that is a folder to others has none."""
    paths = {o.at.path.removeprefix(f"{run.path}/"): o for o in found}
    folders = {parent.as_posix() for path in paths for parent in Path(path).parents}
    return ((path, o) for path, o in paths.items() if path not in folders)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_same(path: Path, found: Object) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (found.size, found.changed)


def _sketch(path: Path, found: Object, staging: Path) -> None:
    parts = files.reading(found.at, lambda file: _parts(file, path.name, found.size))
    staged = staging / f"sketch.{uuid.uuid4().hex}"
    with staged.open("wb") as file:
        file.truncate(found.size)
        for offset, content in parts:
            os.pwrite(file.fileno(), content, offset)
    os.utime(staged, ns=(found.changed, found.changed))
    path.parent.mkdir(parents=True, exist_ok=True)
    staged.replace(path)


def _parts(file: Any, name: str, size: int) -> list[Part]:
    """What discovery and `cheap_id` look at in a file of that name."""
    if name.endswith(".safetensors"):
        length = int.from_bytes(read_part(file, 0, min(size, LENGTH_BYTES)), "little")
        start = min(size, LENGTH_BYTES + (length if length <= HEADER_LIMIT else 0))
        return _fetch(file, [(0, start), *sampled(start, size)], size)
    if name == "tokenizer.json":
        head = read_part(file, 0, min(size, STATE_BYTES))
        start_or_none = after_state(head, size)
        if start_or_none is not None:
            return [(0, head), *_fetch(file, sampled(start_or_none, size), size)]
    elif name in VOCABULARIES:
        return _fetch(file, sampled(0, size), size)
    whole = name.endswith(WHOLE) and size <= WHOLE_BYTES
    return [(0, read_part(file, 0, size))] if whole else []


def _fetch(file: Any, wanted: list[tuple[int, int]], size: int) -> list[Part]:
    if size <= ONE_REQUEST_BYTES:
        content = read_part(file, 0, size)
        return [(offset, content[offset : offset + length]) for offset, length in wanted]
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        return list(pool.map(lambda part: (part[0], read_part(file, *part)), wanted))


def _tell_times(folder: Path) -> None:
    """A folder is as old as the newest file in it: that is what discovery calls quiet."""
    for inside, _, names in os.walk(folder):
        times = [(Path(inside) / name).stat().st_mtime_ns for name in names]
        if times:
            os.utime(inside, ns=(max(times), max(times)))
