"""Processes of one sweep: found by descent or by their open files, ended by id (Linux)."""

import os
import random
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jobs.bench import _machine

TITLES = {
    "ray::Inference": "inference",
    "ray::Scorer": "scorer",
    "ray::IDLE": "worker",
    "ray::make_cases": "worker",
    "/gcs/gcs_server": "gcs",
    "/raylet/raylet": "raylet",
}
"""Part of a command line, and what we call the process."""
BOUNDARIES = ("begun", "staged", "synced", "renamed", "committed")


@dataclass(frozen=True, slots=True)
class Process:
    """One process; its id alone might be another's by now."""

    pid: int
    born: str
    """Ticks since boot."""
    kind: str
    """A value of TITLES, or empty."""
    title: str = ""

    @property
    def lives(self) -> bool:
        return _born(self.pid) == self.born

    def kill(self) -> bool:
        """SIGKILL; whether it lived until then."""
        with suppress(ProcessLookupError):
            if self.lives:
                os.kill(self.pid, signal.SIGKILL)
                return True
        return False


@dataclass(frozen=True, slots=True)
class Fatal:
    """Ends its own process at a write boundary, now and then, and leaves a line that says so."""

    share: float
    """Of the boundaries that a score actor passes."""
    driver_share: float
    """Of those that the driver passes, with its config.toml."""
    told: Path
    driver: int = field(default_factory=os.getpid)

    def __call__(self, name: str) -> None:
        of_driver = os.getpid() == self.driver
        if random.random() < (self.driver_share if of_driver else self.share):
            with self.told.open("a") as file:
                file.write(f"{'driver ' if of_driver else ''}{name}\n")
            os.kill(os.getpid(), signal.SIGKILL)


def family(root: int) -> list[Process]:
    """All that descend from a process."""
    return list(_processes(pid for pid in _machine.tree(root) if pid != root))


def holding(folder: Path) -> list[Process]:
    """All that have a file open below a folder."""
    return list(_processes(pid for pid in _ids() if _holds(pid, folder)))


def end(left: Iterable[Process], folder: Path, patience: float) -> list[Process]:
    """Wait until these, and those that hold the folder, are gone; those that had to be killed.

    Ray's agents are not waited for: they hold no accelerator, and linger.
    """
    left = list(left)
    deadline = time.monotonic() + patience
    while alive := [p for p in {*left, *holding(folder)} if p.lives]:
        late = time.monotonic() > deadline
        if late or not any(process.kind for process in alive):
            killed = [process for process in alive if process.kill()]
            return [process for process in killed if process.kind]
        time.sleep(0.1)
    return []


def _processes(pids: Iterable[int]) -> Iterator[Process]:
    for pid in pids:
        with suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
            program = line.partition("\0")[0]
            kind = next((kind for title, kind in TITLES.items() if title in program), "")
            if born := _born(pid):
                yield Process(pid, born, kind, Path(program).name)


def _ids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _holds(pid: int, folder: Path) -> bool:
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if str(link.readlink()).startswith(f"{folder}/"):
                    return True
    return False


def _born(pid: int) -> str:
    """Empty for a process that is gone, or dead and not waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
