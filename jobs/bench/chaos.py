"""Kills a sweep at random and at its write boundaries, and compares the table with an unkilled one.

python -m jobs.bench.chaos --minutes 55 --state FOLDER    # again with the same folder: it goes on

Rounds: a sweep whose actors, driver, raylet or GCS are killed; one whose processes end themselves
at a write boundary; one on a cluster whose nodes are killed; two at once on one output; and the
first on greedy engine hf. Each is launched until it is done; then every row has to be there once,
equal in every column, no file may lie beside the partitions, and none in staging.
"""

import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jobs import command, sweep
from jobs.bench import _harm, _machine, _outputs, _rounds
from jobs.bench._outputs import Size
from jobs.bench._rounds import Round
from pipeline.config import SweepConfig, read

LONG = True
MINUTES, STATE = 55.0, Path("outputs/chaos")
SIZE, TWIN_SIZE, HF_SIZE = Size(20, 256, 8, 4), Size(6, 64, 4, 4), Size(4, 32, 4, 1)
KINDS = {
    "driver": {"driver", *(f"driver {name}" for name in ("staged", "synced", "renamed"))},
    "raylet or GCS": {"raylet", "gcs"},
    "node": {"node"},
    "write boundary": set(_harm.BOUNDARIES),
    "actor or worker": {"inference", "scorer", "worker"},
}
WANTED = {
    "driver": 100,
    "raylet or GCS": 60,
    "node": 40,
    "write boundary": 200,
    "actor or worker": 600,
}
TWINS, HF_ROUNDS, ROWS = 20, 10, 100_000
"""Rounds and rows of the long form."""


@dataclass(slots=True)
class Tally:
    """What was done so far, kept in a file between runs."""

    seed: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Of kills, by what was killed; of launches by exit code, of processes that outlived theirs."""
    rounds: dict[str, int] = field(default_factory=dict)
    """That were compared, by kind; `begun` counts them all."""
    rows: int = 0
    """That were compared."""
    wrong: list[str] = field(default_factory=list)
    tables: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Rows and hash of unkilled sweeps."""

    def killed(self, kind: str) -> int:
        return sum(self.counts.get(name, 0) for name in KINDS[kind])

    @property
    def all(self) -> int:
        return sum(map(self.killed, KINDS))

    def next(self) -> str:
        """The kind of round of which least was done, of what is wanted."""
        done = {kind: self.killed(kind) / wanted for kind, wanted in WANTED.items()}
        rest = [done[kind] for kind in ("driver", "raylet or GCS", "actor or worker")]
        shares = {
            "actors": min(rest),
            "boundaries": done["write boundary"],
            "cluster": done["node"],
            "twins": self.rounds.get("twins", 0) / TWINS,
            "hf": self.rounds.get("hf", 0) / HF_ROUNDS,
        }
        return min(shares, key=lambda kind: shares[kind])


def run(minutes: float = MINUTES, state: Path = STATE, seed: int = 0) -> list[dict[str, Any]]:
    """Go on for so long; what stands now. BlockingIOError when another one goes on there."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        tally = load(state, seed)
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            play(tally.next(), state, tally)
    return figures(tally)


def play(kind: str, state: Path, tally: Tally, size: Size | None = None) -> None:
    """One round and its comparison; its folder stays where something was wrong."""
    engine = "hf" if kind == "hf" else "scripted"
    size = size or {"hf": HF_SIZE, "twins": TWIN_SIZE}.get(kind, SIZE)
    number = tally.rounds["begun"] = tally.rounds.get("begun", 0) + 1
    draw = random.Random(f"{tally.seed} {number}")
    tell = partial(_tell, tally, state)
    round_ = _round(state, f"round-{number}", engine, size, draw, tell)
    expected = _expected(state, engine, size, tally)
    _players(round_)[kind]()
    round_.wrong += _outputs.problems(round_.config, round_.out, expected)
    tally.rounds[kind] = tally.rounds.get(kind, 0) + 1
    tally.rows += size.rows
    tally.wrong += [f"round {number} ({kind}): {what}" for what in round_.wrong]
    save(tally, state)
    print(f"{kind}: {tally.all} kills, {tally.rows:,} rows, {len(tally.wrong)} wrong", flush=True)
    if not round_.wrong:
        shutil.rmtree(round_.folder)


def _players(round_: Round) -> dict[str, Callable[[], None]]:
    return {
        "actors": partial(_rounds.actors, round_),
        "boundaries": partial(_rounds.boundaries, round_),
        "cluster": partial(_rounds.cluster, round_),
        "twins": partial(_rounds.twins, round_),
        "hf": partial(_rounds.actors, round_),
    }


def _round(
    state: Path, name: str, engine: str, size: Size, draw: random.Random, tell: _rounds.Tell
) -> Round:
    runs = _outputs.checkpoints(state / f"{engine}-{size.checkpoints}", engine, size.checkpoints)
    shutil.rmtree(state / name, ignore_errors=True)
    options = {"device": "cpu", "threads": 1} if engine == "hf" else {}
    config = _outputs.configured(state / name, runs, {"name": engine, **options}, size)
    return Round(state / name, config, draw, tell, [])


def _expected(state: Path, engine: str, size: Size, tally: Tally) -> tuple[int, str]:
    """Rows and hash of the table of an unkilled sweep."""
    name = f"{engine} {size.checkpoints} {size.cases} {size.n}"
    if name not in tally.tables:
        untouched = _round(state, "unhurt", engine, size, random.Random(0), lambda kind: None)
        tally.tables[name] = _rounds.unhurt(untouched)
        shutil.rmtree(untouched.folder)
        if tally.tables[name][0] != size.rows:
            raise RuntimeError(f"{name}: an unkilled sweep wrote {tally.tables[name][0]} rows")
    rows, digest = tally.tables[name]
    return rows, digest


def _tell(tally: Tally, state: Path, kind: str) -> None:
    tally.counts[kind] = tally.counts.get(kind, 0) + 1
    save(tally, state)


def load(state: Path, seed: int) -> Tally:
    file = state / "tally.json"
    return Tally(**json.loads(file.read_text())) if file.exists() else Tally(seed)


def save(tally: Tally, state: Path) -> None:
    state.mkdir(parents=True, exist_ok=True)
    staged = state / "tally.json.new"
    staged.write_text(json.dumps(asdict(tally), indent=1))
    staged.replace(state / "tally.json")


def figures(tally: Tally) -> list[dict[str, Any]]:
    """A row a kind of kill, the rows that were compared, and what was wrong."""

    def least(name: str, value: int, wanted: int, unit: str) -> dict[str, Any]:
        limit = f">= {wanted}"
        return {"name": name, "value": value, "unit": unit, "limit": limit, "ok": value >= wanted}

    compared = sum(n for kind, n in tally.rounds.items() if kind != "begun")
    return [
        *(least(f"of a {kind}", tally.killed(kind), WANTED[kind], "kills") for kind in KINDS),
        least("all", tally.all, sum(WANTED.values()), "kills"),
        least(f"compared, in {compared} sweeps", tally.rows, ROWS, "rows"),
        {
            "name": "tables that differ, strange files, launches that hung or ended strangely",
            "value": len(tally.wrong),
            "unit": "",
            "limit": "<= 0",
            "ok": not tally.wrong,
        },
    ]


def hurting(toml: str, told: str, share: str, driver_share: str) -> int:
    """The sweep of a file, whose processes end themselves at write boundaries."""
    fatal = _harm.Fatal(float(share), float(driver_share), Path(told))
    return sweep.run(read(SweepConfig, ["@", toml]), fatal)


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--driver"]:
        return command.start(lambda words: hurting(*words), argv[1:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    print(_machine.describe(), os.getpid())
    found = run(chosen.minutes, chosen.state.absolute(), chosen.seed)
    for figure in found:
        print(f"{figure['name']}: {figure['value']:,} {figure['unit']} ({figure['limit']})")
    return 0 if found[-1]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
