"""One file a checkpoint layout; how checkpoints are found and told apart."""

import importlib
import os
import pkgutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from pipeline.checkpoints.folder import UNKNOWN_STEP, Folder, Found, LayoutError, listing
from pipeline.checkpoints.identity import cheap_id
from pipeline.checkpoints.run_file import RUN_FILE, place, run_name, tags
from pipeline.checkpoints.shapes import lookalikes, unreadable
from pipeline.checkpoints.steps import select

__all__ = [
    "UNKNOWN_STEP",
    "Found",
    "Layout",
    "LayoutError",
    "discover",
    "layouts",
    "select",
    "tags",
]

EXPECTED = "give the folder of one run, of several runs, or of one checkpoint"
UNNUMBERED = (
    "a model without a step among numbered checkpoints; link it as checkpoint-N or move it away"
)


_Visit = tuple[Folder, Found | None]
"""A folder, and the last numbered checkpoint of the run it lies in, a whole one if any is."""


class Layout(Protocol):
    """A module of this folder that has a `find`."""

    def find(self, folder: Folder, run: str) -> Iterable[Found]:
        """Checkpoints of the run that `folder` is: whole or skipped, anywhere below it.

        What this layout does not know is left out; another layout may know it.
        """
        ...


@cache
def layouts(name: str = "auto") -> tuple[Layout, ...]:
    """The layout of that name, or all. Raises LayoutError for an unknown name."""
    modules = {
        info.name: importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    }
    known = {n: cast(Layout, module) for n, module in modules.items() if hasattr(module, "find")}
    if name == "auto":
        return tuple(known.values())
    if name not in known:
        raise LayoutError(f"layout {name!r} is none of {', '.join(['auto', *sorted(known)])}")
    return (known[name],)


def discover(path: Path | str, layout: str = "auto", *, now: float | None = None) -> list[Found]:
    """Checkpoints under a run folder, a folder of runs or one checkpoint, by run and step.

    A run is called what its run.toml says, else by its folder relative to `path`. Hidden folders
    are left out. `now`: seconds since the epoch, by which a checkpoint counts as quiet.
    Raises LayoutError when nothing like a checkpoint is there.
    """
    root = Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100, keeps a link's name
    if not root.is_dir():
        problem = "is a file" if root.is_file() else "is not there"
        raise LayoutError(f"{path} {problem}; {EXPECTED}")
    home = listing(root, time.time() if now is None else now)
    if home.error:
        raise LayoutError(f"{path} {unreadable(home)}")
    known = layouts(layout)
    found = _alone(home, known) or list(_walk(home, known))
    if not found:
        within = ", ".join([*home.folders, *sorted(home.files)][:5])
        raise LayoutError(
            f"{path} holds no checkpoint (checkpoint-N folders or a model in safetensors), "
            f"{f'only {within}' if within else 'it is empty'}; {EXPECTED}"
        )
    return sorted(found, key=lambda f: (f.run, f.step, f.path))


def _alone(home: Folder, known: Sequence[Layout]) -> list[Found]:
    """The one checkpoint that a path names by its number, its siblings unseen."""
    parent = home.path.parent
    only = replace(listing(parent, home.now), files=frozenset(), folders=(home.path.name,))
    return _ask(only, run_name(parent, parent), known)


def _walk(home: Folder, known: Sequence[Layout]) -> Iterator[Found]:
    """Every folder once, real ones before links, so that a run keeps its own name.

    A model without a number that lies among numbered ones has no step, unless it is the last of
    them saved again, as trainers do when they end: then it is left out.
    """
    real, linked = deque[_Visit]([(home, None)]), deque[_Visit]()
    seen: set[tuple[int, int]] = set()
    runs: dict[str, Path] = {}
    while real or linked:
        folder, last = (real or linked).popleft()
        if folder.error:
            run, why = place(folder.path, home.path), unreadable(folder)
            yield Found(run, UNKNOWN_STEP, "full", folder.path, "skipped", why)
            continue
        if _identity(folder.path) in seen:
            continue
        run = run_name(folder.path, home.path)
        found = _ask(folder, run, known)
        if found and runs.setdefault(run, folder.path) != folder.path:
            raise LayoutError(
                f"two runs are called {run!r}: {runs[run]} and {folder.path}; "
                f"change `name` in one {RUN_FILE}"
            )
        numbered = [f for f in found if f.path != folder.path]
        last = max(numbered, key=lambda f: (f.status == "ok", f.step), default=last)
        for one in found:
            if one.path != folder.path or last is None:
                yield one
            elif not _copies(one, last):
                why = one.why or UNNUMBERED
                yield replace(one, step=UNKNOWN_STEP, status="skipped", why=why)
        seen |= {_identity(folder.path), *(_identity(f.path) for f in found)}
        claimed = _claimed(folder, found)
        for name in folder.folders:
            if name not in claimed and not name.startswith("."):
                (linked if name in folder.links else real).append((folder.enter(name), last))


def _ask(folder: Folder, run: str, known: Sequence[Layout]) -> list[Found]:
    """What the layouts find in a folder, and what looks like a checkpoint to none of them.

    Where two claim one path, the one that can use it has it, else the first by name.
    """
    best: dict[Path, Found] = {}
    for layout in known:
        for found in layout.find(folder, run):
            if found.path not in best or best[found.path].status == "skipped":
                best[found.path] = found
    for found in lookalikes(folder, run, _claimed(folder, best.values())):
        best.setdefault(found.path, found)
    return list(best.values())


def _claimed(folder: Folder, found: Iterable[Found]) -> set[str]:
    """Names in the folder that the findings lie under."""
    return {f.path.relative_to(folder.path).parts[0] for f in found if f.path != folder.path}


def _copies(one: Found, other: Found) -> bool:
    """Whether both are the same policy, saved twice."""
    if "skipped" in (one.status, other.status):
        return False
    return cheap_id(one.path) == cheap_id(other.path)


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode; a path that is gone is itself alone."""
    try:
        status = path.stat()
    except OSError:
        return (-1, hash(path))
    return (status.st_dev, status.st_ino)
