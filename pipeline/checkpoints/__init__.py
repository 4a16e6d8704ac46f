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
        within = ", ".join([*home.folders, *sorted(home.files)][:5]) or "nothing"
        raise LayoutError(
            f"{path} holds no checkpoint (checkpoint-N folders or a model in safetensors), "
            f"only {within}; {EXPECTED}"
        )
    return sorted(found, key=lambda f: (f.run, f.step, f.path))


def _alone(home: Folder, known: Sequence[Layout]) -> list[Found]:
    """The one checkpoint that a path names by its number, its siblings unseen."""
    parent = home.path.parent
    only = replace(listing(parent, home.now), files=frozenset(), folders=(home.path.name,))
    return _ask(only, run_name(parent, parent), known)


def _walk(home: Folder, known: Sequence[Layout]) -> Iterator[Found]:
    """Every folder once, real ones before links, so that a run keeps its own name."""
    real, linked = deque([(home, False)]), deque[tuple[Folder, bool]]()
    seen: set[tuple[int, int]] = set()
    runs: dict[str, Path] = {}
    while real or linked:
        folder, numbered = (real or linked).popleft()
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
        numbered = numbered or any(f.path != folder.path for f in found)
        yield from (_without_step(f) if numbered and f.path == folder.path else f for f in found)
        seen |= {_identity(folder.path), *(_identity(f.path) for f in found)}
        claimed = _claimed(folder, found)
        for name in folder.folders:
            if name not in claimed and not name.startswith("."):
                (linked if name in folder.links else real).append((folder.enter(name), numbered))


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


def _without_step(found: Found) -> Found:
    return replace(found, step=UNKNOWN_STEP, status="skipped", why=found.why or UNNUMBERED)


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode; a path that is gone is itself alone."""
    try:
        status = path.stat()
    except OSError:
        return (-1, hash(path))
    return (status.st_dev, status.st_ino)
