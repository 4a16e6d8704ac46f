"""Mutated files for everything that reads files of other people: refused in its own words, or read.

python -m jobs.bench.fuzz --minutes 10 --seed 0 --state FOLDER    # CPU minutes a loader

A finding is an input that raised anything but the loader's own error, or took longer than 5 s. It
is kept under FOLDER/LOADER with its traceback; an input that ends the process is left in `work`.
"""

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs import command, terminal
from jobs.bench import _loaders
from jobs.bench._loaders import LOADERS, Loader
from jobs.bench._mutation import mutated

LONG = True
MINUTES, STATE = 10.0, Path("outputs/fuzz")
SLOW_SECONDS = 5.0
"""CPU seconds."""
KEPT = 100
"""Findings of one loader that are kept; more tell nothing new."""


def run(
    minutes: float = MINUTES, seed: int = 0, state: Path = STATE, names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Executions a loader, and findings, of which none is allowed."""
    rows = []
    for name in names or LOADERS:
        count, found = fuzz(LOADERS[name], 60 * minutes, seed, state / name)
        rows += [
            {"name": f"{name}: executions", "value": count, "unit": "", "limit": "", "ok": True},
            {
                "name": f"{name}: findings{f', in {state / name}' if found else ''}",
                "value": found,
                "unit": "",
                "limit": "0",
                "ok": not found,
            },
        ]
    return rows


def fuzz(loader: Loader, seconds: float, seed: int, folder: Path) -> tuple[int, int]:
    """Executions and distinct findings in so many CPU seconds."""
    work = folder / "work"
    file = _loaders.lay(loader, work)
    rng = random.Random(seed)
    count, seen = 0, set[str]()
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        data = mutated(loader.sound, rng)
        file.write_bytes(data)
        count += 1
        said = tried(loader, work)
        if said and _kind(said) not in seen and len(seen) < KEPT:
            seen.add(_kind(said))
            name = hashlib.sha256(data).hexdigest()[:16]
            (folder / name).write_bytes(data)
            (folder / f"{name}.txt").write_text(said, "utf-8", "backslashreplace")
    return count, len(seen)


def tried(loader: Loader, folder: Path) -> str:
    """What is wrong with how a loader met the file; empty for nothing."""
    began = time.process_time()
    try:
        _loaders.known(loader, folder)
    except Exception:
        return traceback.format_exc()
    seconds = time.process_time() - began
    return f"took {seconds:.1f} s" if seconds > SLOW_SECONDS else ""


def _kind(said: str) -> str:
    """Where it was raised and what, so that one fault is one finding."""
    frames = [line for line in said.splitlines() if line.startswith("  File ")]
    return f"{frames[-1:]} {said.splitlines()[-1].partition(':')[0]}"


def main(argv: Sequence[str]) -> int:
    """1 when there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m jobs.bench.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("names", nargs="*", choices=[[], *LOADERS])
    asked = parser.parse_args(argv)
    rows = run(asked.minutes, asked.seed, asked.state, asked.names)
    terminal.table(rows, ["name", "value", "limit", "ok"])
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
