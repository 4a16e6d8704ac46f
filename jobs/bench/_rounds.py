"""One sweep that is hurt until it is done: launched, killed, launched again; then compared."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from jobs.bench import _harm, _nodes, _outputs
from pipeline import store
from pipeline.config import SweepConfig

LAUNCHES, STUCK_SECONDS, ORPHAN_SECONDS = 100, 240.0, 20.0
WOUNDS, PAUSE_SECONDS, START_SECONDS, EARLY = 5, 1.0, 10.0, 0.25
"""Actors killed in a launch and seconds between them, on average; a start-up, and the share of
launches that are ended in it."""
ENDS = {"driver": 5, "raylet": 2, "gcs": 2, "": 1}
WOUNDED = {"inference": 4, "scorer": 4, "worker": 2}
SHARE, DRIVER_SHARE = 0.01, 0.05
"""Of write boundaries that end the process which passes them."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    # Ray gives a lost GCS a minute; here that would be most of the time.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "6",
    # Nor are actors to wait for the harness: all are as nice as it is.
    "RAY_worker_niceness": "0",
}

Tell = Callable[[str], None]
"""Hears every kill by its kind, and what else there is to count."""
Driver = subprocess.Popen[bytes]


@dataclass(slots=True)
class Round:
    """One output, and how it is hurt."""

    folder: Path
    config: SweepConfig
    draw: random.Random
    tell: Tell
    wrong: list[str]
    """What should not have been."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def done(self) -> int:
        """Partitions that are there."""
        return len(store.partition_files(self.out))

    def command(self, hurting: bool = False) -> list[str]:
        """The sweep as a person starts it; or the same one, which ends itself at boundaries."""
        toml = str(self.folder / "sweep.toml")
        if not hurting:
            return [sys.executable, "-m", "jobs", "sweep", "@", toml]
        fatal = [str(self.told), str(SHARE), str(DRIVER_SHARE)]
        return [sys.executable, "-m", "jobs.bench.chaos", "--driver", toml, *fatal]

    @property
    def told(self) -> Path:
        return self.folder / "boundaries"


def unhurt(round_: Round) -> tuple[int, str]:
    """Rows and hash of the table that a sweep makes which nobody kills."""
    with launched(round_, round_.command()) as driver:
        if code := driver.wait():
            raise RuntimeError(f"a sweep that nobody killed ended with {code}: {last(round_)}")
    return _outputs.table_hash(round_.out)


def actors(round_: Round) -> None:
    """Score and inference actors and Ray's workers at random, then the driver, raylet or GCS."""
    _relaunch(round_, lambda driver: _hurt(round_, driver, ENDS))


def boundaries(round_: Round) -> None:
    """Whatever passes a write boundary, now and then; at times the driver too."""
    _relaunch(round_, lambda driver: _hurt(round_, driver, {"driver": 1, "": 2}, 0), hurting=True)


def twins(round_: Round) -> None:
    """Two launches on one output at once, one of them killed at times."""
    for _ in range(LAUNCHES):
        with (
            launched(round_, round_.command(), "twin") as one,
            launched(round_, round_.command()) as other,
        ):
            if round_.draw.random() < 0.5:
                _wait_until_up(round_, other)
                _sleep(other, round_.draw.expovariate(1 / PAUSE_SECONDS))
                _end(round_, other, "driver")
            codes = {"twin": _finish(round_, one), "": _finish(round_, other)}
        for name, code in codes.items():
            said = f"{last(round_, name)}"
            refused = code == 2 and said.startswith("error:") and "another sweep" in said
            if code not in (0, 1, -9) and not refused:
                round_.wrong.append(f"a twin ended with {code}: {said}")
        if 0 in codes.values():
            return
    round_.wrong.append(f"not done after {LAUNCHES} pairs of launches")


def cluster(round_: Round) -> None:
    """Nodes of a test cluster, one after the other."""
    with _ray_folder() as folder, _nodes.nodes(_environment(folder)) as nodes:
        _put_address(round_, nodes.address)
        for _ in range(LAUNCHES):
            with launched(round_, round_.command()) as driver:
                _wait_until_up(round_, driver)
                while driver.poll() is None and not _is_late(round_, driver):
                    _sleep(driver, round_.draw.expovariate(1 / PAUSE_SECONDS))
                    nodes.kill(round_.draw.randrange(len(nodes.raylets)))
                    round_.tell("node")
                    _sleep(driver, round_.draw.expovariate(1 / PAUSE_SECONDS))
                    nodes.add()
                    _wait_until_up(round_, driver)
                code = _finish(round_, driver)
            round_.tell(f"launch on nodes ended with {code}")
            if code not in (0, 1):
                round_.wrong.append(f"the loss of a node ended a sweep: {code}, {last(round_)}")
            if code == 0:
                return
    round_.wrong.append(f"not done after {LAUNCHES} launches")


def _put_address(round_: Round, address: str) -> None:
    """Have the sweep connect to a cluster."""
    file = round_.folder / "sweep.toml"
    said = tomllib.loads(file.read_text())
    said["cluster"]["address"] = address
    file.write_text(tomli_w.dumps(said))


def _relaunch(round_: Round, hurt: Callable[[Driver], str], hurting: bool = False) -> None:
    for _ in range(LAUNCHES):
        told = len(_lines(round_.told))
        with launched(round_, round_.command(hurting)) as driver:
            ended_by = hurt(driver)
            code = _finish(round_, driver)
        round_.tell(f"launch ended with {code}")
        named = _lines(round_.told)[told:]
        for boundary in named:
            round_.tell(boundary)
        expected = ended_by or any(name.startswith("driver") for name in named)
        if code not in (0, 1) and not expected:
            round_.wrong.append(f"a launch ended with {code}: {last(round_)}")
        if code == 0:
            return
    round_.wrong.append(f"not done after {LAUNCHES} launches")


def _hurt(round_: Round, driver: Driver, ends: Mapping[str, int], wounds: int = WOUNDS) -> str:
    """Kill what runs under a driver, and then it, or what it needs; what that was."""
    draw = round_.draw
    (ending,) = draw.choices(list(ends), list(ends.values()))
    if ending and draw.random() < EARLY:
        _sleep(driver, draw.uniform(0, START_SECONDS))
        return _end(round_, driver, ending)
    _wait_until_up(round_, driver)
    for _ in range(int(draw.expovariate(1 / wounds) + 0.5) if wounds else 0):
        _sleep(driver, draw.expovariate(1 / PAUSE_SECONDS))
        _wound(round_, driver)
    _sleep(driver, draw.expovariate(1 / PAUSE_SECONDS) if ending else 0)
    return _end(round_, driver, ending)


def _wound(round_: Round, driver: Driver) -> None:
    found = [p for p in _harm.family(driver.pid) if p.kind in WOUNDED]
    kinds = sorted({p.kind for p in found})
    if kinds:
        (kind,) = round_.draw.choices(kinds, [WOUNDED[kind] for kind in kinds])
        victim = round_.draw.choice([p for p in found if p.kind == kind])
        if victim.kill():
            round_.tell(kind)


def _end(round_: Round, driver: Driver, ending: str) -> str:
    """Kill the driver or what it needs; what was killed, empty if it was over before."""
    if not ending or driver.poll() is not None:
        return ""
    needed = [p for p in _harm.family(driver.pid) if p.kind == ending]
    if needed and needed[0].kill():
        round_.tell(ending)
        return ending
    driver.kill()
    round_.tell("driver")
    return "driver"


def _finish(round_: Round, driver: Driver) -> int | None:
    """Exit code; None when nothing was written for too long."""
    while not _is_late(round_, driver):
        if (code := driver.poll()) is not None:
            return code
        time.sleep(0.2)
    round_.wrong.append(f"nothing was written for {STUCK_SECONDS:g} s: {last(round_)}")
    return None


def _is_late(round_: Round, driver: Driver) -> bool:
    """Whether a driver that runs has written nothing for too long."""
    written = round_.out.glob("rollouts/*/*/*/*.parquet")
    newest = max((path.stat().st_mtime for path in written), default=0.0)
    began = Path(f"/proc/{driver.pid}").stat().st_ctime if driver.poll() is None else time.time()
    return time.time() - max(newest, began) > STUCK_SECONDS


def _wait_until_up(round_: Round, driver: Driver) -> None:
    """Until another partition was written, or the driver ended, or neither for too long."""
    before = round_.done()
    while driver.poll() is None and round_.done() == before and not _is_late(round_, driver):
        time.sleep(0.1)


def _sleep(driver: Driver, seconds: float) -> None:
    """Less, if the driver ends."""
    until = time.monotonic() + seconds
    while driver.poll() is None and time.monotonic() < until:
        time.sleep(0.02)


@contextmanager
def launched(round_: Round, command: Sequence[str], name: str = "") -> Iterator[Driver]:
    """A driver with a Ray of its own, of which nothing is left afterwards."""
    log = round_.folder / f"log{name}"
    with _ray_folder() as folder, log.open("wb") as said:
        driver = subprocess.Popen(
            command,
            env=_environment(folder),
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield driver
        finally:
            under = _harm.family(driver.pid)
            driver.kill()
            driver.wait()
            for process in _harm.end(under, folder, ORPHAN_SECONDS):
                round_.tell(f"outlived its driver: {process.title}")


@contextmanager
def _ray_folder() -> Iterator[Path]:
    """Where one Ray keeps its sockets and logs; whatever still holds it at the end is killed."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    try:
        yield folder
    finally:
        _harm.end([], folder, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _environment(ray_folder: Path) -> dict[str, str]:
    return os.environ | ENVIRONMENT | {"RAY_TMPDIR": str(ray_folder)}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def last(round_: Round, name: str = "") -> str:
    """What a driver said last."""
    return next(reversed(_lines(round_.folder / f"log{name}")), "")
