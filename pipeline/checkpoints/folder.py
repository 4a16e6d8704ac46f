"""A directory listed once, and what a layout says of what it found there."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pipeline.records import CheckpointKind

UNKNOWN_STEP = -1


class LayoutError(ValueError):
    """A path holds no run, or not the steps asked for; the message names the value and the cure."""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint, or something that looks like one and cannot be used (then `why` says so)."""

    run: str
    step: int
    """Updates applied; UNKNOWN_STEP where none can be told, and then it is skipped."""
    kind: CheckpointKind
    path: Path
    status: Literal["ok", "skipped"]
    why: str = ""
    """Empty when ok; else the reason and the cure on one line."""
    base: str | None = None
    """What an adapter says it was trained on: a path or hub name, `@revision` where it pins one."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Names in a directory. Links are followed; an unreadable directory is empty with an error."""

    path: Path
    files: frozenset[str]
    folders: tuple[str, ...]
    """In name order."""
    links: frozenset[str]
    """Those of `folders` that are symbolic links."""
    error: str
    now: float
    """Seconds since the epoch at which the search began."""
    entered: dict[str, "Folder"] = field(default_factory=dict, repr=False, compare=False)

    def enter(self, name: str) -> "Folder":
        """The listing of a folder in this one; read once, however many layouts ask."""
        if name not in self.entered:
            self.entered[name] = listing(self.path / name, self.now)
        return self.entered[name]

    def age(self) -> float:
        """Seconds since the directory or a file in it last changed; 0 for a clock ahead of ours."""
        times = []
        for path in [self.path, *(self.path / name for name in self.files)]:
            try:
                times.append(path.stat().st_mtime)
            except OSError:
                return 0.0
        return max(0.0, self.now - max(times))


def listing(path: Path, now: float) -> Folder:
    """What is in a directory; never raises."""
    files, folders, links = [], [], []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not _is_folder(entry):
                    files.append(entry.name)
                    continue
                folders.append(entry.name)
                if entry.is_symlink():
                    links.append(entry.name)
    except OSError as error:
        return Folder(path, frozenset(), (), frozenset(), error.strerror or "unreadable", now)
    return Folder(path, frozenset(files), tuple(sorted(folders)), frozenset(links), "", now)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """False for a link that leads nowhere or round in circles."""
    try:
        return entry.is_dir()
    except OSError:
        return False
