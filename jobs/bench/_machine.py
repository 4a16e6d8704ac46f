"""What a bench reads off the machine: CPU seconds and memory of a tree of processes (Linux)."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def describe() -> str:
    """Processor, cores and Python, to stand above the figures."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        if line.startswith("model name")
    ]
    load = os.getloadavg()[0]
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, "
        f"Python {platform.python_version()}"
    )


def tree(root: int) -> list[int]:
    """Process ids of `root` and all that descend from it."""
    children: dict[int, list[int]] = {}
    for pid, fields in _stats():
        children.setdefault(int(fields[1]), []).append(pid)
    found, front = [], [root]
    while front:
        found += front
        front = [child for pid in front for child in children.get(pid, [])]
    return found


def cpu_seconds(root: int) -> float:
    """User and system seconds of the tree, those of its ended children included."""
    members = set(tree(root))
    ticks = sum(
        sum(int(field) for field in fields[11:15]) for pid, fields in _stats() if pid in members
    )
    return ticks / TICK


def peak_bytes(pid: int) -> int:
    """Largest resident set the process ever had."""
    return _status(pid, "VmHWM")


def pss_bytes(root: int) -> int:
    """Proportional set size of the tree: shared pages counted once."""
    total = 0
    for pid in tree(root):
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
        except OSError:
            continue
        total += sum(int(li.split()[1]) for li in rollup.splitlines() if li.startswith("Pss:"))
    return total * 1024


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def _stats() -> Iterator[tuple[int, list[str]]]:
    """Pid and the fields of /proc/PID/stat from the state on, of every process still there."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text("utf-8", "replace")
        except OSError:
            continue
        yield int(folder.name), text.rpartition(")")[2].split()
