"""Checkpoints of object stores, fetched whole into a folder of limited size on this machine.

However many processes want one, it is fetched once: NAME.part is locked by who fetches it, NAME by
those who use it. Locks end with their process. What nobody uses makes room, the longest unused
first.
"""

import fcntl
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pipeline import files
from pipeline.checkpoints.identity import cheap_id
from pipeline.files import Object
from pipeline.places import Remote, is_address, where
from pipeline.records import Checkpoint, CheckpointError

LEFT = (".pt", ".pth", ".bin", ".ckpt", ".distcp", ".pkl", ".gguf", ".onnx", ".h5", ".msgpack")
"""States of optimizers and weights in other formats, which nothing here reads."""
CHUNK_BYTES = 2**24
AT_ONCE = 8
ROOM_SECONDS = 600.0
"""How long a load waits until others use less of the cache."""


def home(folder: Path | None) -> Path:
    """The folder of the cache; by default one beside the other caches of who runs this."""
    if folder is not None:
        return folder.expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hackbait-onset"


class Near:
    """The checkpoints that one process uses, brought near."""

    def __init__(self, folder: Path | None, limit: int) -> None:
        """limit: bytes that all checkpoints in the folder may take together."""
        self._home = home(folder) / "checkpoints"
        self._limit = limit
        self._used: dict[str, int] = {}
        """The descriptor that holds the lock of what an address was brought as."""
        self._kept: set[str] = set()
        self._guard = threading.Lock()

    def bring(self, checkpoint: Checkpoint, patience: float = ROOM_SECONDS) -> Checkpoint:
        """The checkpoint by local paths, in use from now on. Raises CheckpointError.

        patience: seconds to wait for room. What was planned is what is brought, by `cheap_id`;
        an empty one is not checked.
        """
        path, base = checkpoint.path, checkpoint.base
        if not (is_address(path) or is_address(base)):
            return checkpoint
        local = replace(
            checkpoint,
            path=self._bring(path, patience),
            base=base and self._bring(base, patience),
        )
        planned = checkpoint.cheap_id
        if planned and cheap_id(local.path, local.base) != planned:
            raise CheckpointError(
                f"{path}: its bytes are not those that were planned; it was replaced during the "
                "sweep, plan it again"
            )
        return local

    def keep(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Use these alone from now on; the others may make room."""
        with self._guard:
            self._kept = {text for c in checkpoints for text in (c.path, c.base) if text}
        self.leave_others()

    def leave_others(self) -> None:
        """Hold none but those that are kept: what was read ahead may make room again.

        A process that holds what it does not need yet can keep another waiting for ever.
        """
        with self._guard:
            for address in self._used.keys() - self._kept:
                os.close(self._used.pop(address))

    def _bring(self, text: str, patience: float) -> str:
        if not is_address(text):
            return text
        place = where(text)
        assert isinstance(place, Remote)
        try:
            return str(self._fetched(text, place, patience))
        except OSError as error:
            raise CheckpointError(f"{text} cannot be fetched: {error}") from None

    def _fetched(self, address: str, place: Remote, patience: float) -> Path:
        found = manifest(place)
        name = _name(address, found)
        folder = self._home / name
        self._use(address, self._lock(name, fcntl.LOCK_SH))
        if not folder.is_dir():
            with self._alone(f"{name}.part"):
                if not folder.is_dir():
                    self._download(place, found, folder, patience)
        os.utime(folder)
        return folder

    def _use(self, address: str, descriptor: int) -> None:
        with self._guard:
            before, self._used[address] = self._used.get(address), descriptor
        if before is not None:
            os.close(before)

    def _lock(self, name: str, kind: int) -> int:
        """The descriptor that holds a lock; BlockingIOError where another one is in the way."""
        locks = self._home.parent / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(locks / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, kind)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextmanager
    def _alone(self, name: str, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
        descriptor = self._lock(name, kind)
        try:
            yield
        finally:
            os.close(descriptor)

    def _download(
        self, place: Remote, found: Sequence[Object], folder: Path, patience: float
    ) -> None:
        part = folder.with_suffix(".part")
        try:
            self._reserve(part, found, patience)
            chunks = [
                (o, start, min(CHUNK_BYTES, o.size - start))
                for o in found
                for start in range(0, o.size, CHUNK_BYTES)
            ]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda chunk: _fetch(part, *chunk), chunks))
            for o in found:
                _sync(part / o.at.name)
            if manifest(place) != found:
                raise CheckpointError(f"{place}: it changed while it was fetched")
            with self._alone("room"):
                part.rename(folder)
        except BaseException:
            with self._alone("room"):
                shutil.rmtree(part, ignore_errors=True)
            raise

    def _reserve(self, part: Path, found: Sequence[Object], patience: float) -> None:
        """Files of the final sizes, which others count in, before a byte has come."""
        need, deadline = sum(o.size for o in found), time.monotonic() + patience
        if need > self._limit:
            raise CheckpointError(
                f"a checkpoint of {need} bytes is larger than cluster.cache_size, {self._limit}"
            )
        while True:
            with self._alone("room"):
                shutil.rmtree(part, ignore_errors=True)
                if self._make_room(need):
                    part.mkdir(parents=True)
                    for o in found:
                        with (part / o.at.name).open("wb") as file:
                            file.truncate(o.size)
                    return
            if time.monotonic() >= deadline:
                raise CheckpointError(
                    f"no room for {need} bytes among checkpoints in use; raise cluster.cache_size "
                    f"above {self._limit}"
                )
            time.sleep(0.2)

    def _make_room(self, need: int) -> bool:
        self._home.mkdir(parents=True, exist_ok=True)
        kept = sorted(self._home.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        sizes = {path: sum(file.stat().st_size for file in path.iterdir()) for path in kept}
        taken = sum(sizes.values())
        for path in kept:
            if taken + need <= self._limit:
                break
            with suppress(BlockingIOError), self._alone(path.name, fcntl.LOCK_EX | fcntl.LOCK_NB):
                # Renamed first: what a killed process removed in part must not pass for whole.
                part = path.rename(path.with_suffix(".part"))
                shutil.rmtree(part)
                taken -= sizes[path]
        return taken + need <= self._limit


def manifest(place: Remote) -> list[Object]:
    """Objects directly in a folder that an engine may read. OSError; CheckpointError for none."""
    depth = len(place.parts) + 1
    inside = [o for o in files.below(place) if len(o.at.parts) == depth]
    found = [o for o in inside if not o.at.name.endswith(LEFT)]
    if not found:
        raise CheckpointError(f"{place}: nothing is there")
    return found


def _name(address: str, found: Sequence[Object]) -> str:
    """Of a checkpoint as it is now: once replaced, it is another."""
    said = repr((address, [(o.at.name, o.size, o.changed) for o in found]))
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _fetch(part: Path, found: Object, start: int, length: int) -> None:
    content = files.reading(found.at, lambda file: files.read_part(file, start, length))
    with (part / found.at.name).open("r+b") as file:
        file.seek(start)
        file.write(content)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
