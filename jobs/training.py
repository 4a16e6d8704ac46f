"""Trainings side by side: a bar each, one thread each, and what is finished is left alone."""

import fcntl
import importlib
import json
import os
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic_config import ConfigFileError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jobs import command, run_folder
from pipeline.checkpoints import LayoutError
from pipeline.records import CheckpointError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
"""Two trainings on two cores are faster with one thread each than with two that spin."""
GPU = Path("/dev/nvidiactl")
WEIGHTS = "model.safetensors"
"""What a pretrained policy has once it is whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """One `onset train` to come, or the `onset pretrain` of the policy that others start from."""

    output: Path
    """Folder; its name is the training's."""
    steps: int
    settings: Mapping[str, Any]
    """Its other settings, nested as in its TOML file."""
    verb: str = "train"
    after: "Training | None" = None
    """What has to be finished first."""


def is_finished(training: Training) -> bool:
    """Whether nothing is left to be trained. Raises ConfigFileError for a run of other settings."""
    if training.verb == "pretrain":
        return (training.output / WEIGHTS).exists()
    _refuse_another(training)
    with suppress(CheckpointError, LayoutError):  # `onset train` says what is wrong there
        return run_folder.newest(training.output)[0] >= training.steps
    return False


def _refuse_another(training: Training) -> None:
    """As `onset train` does, for the settings that are given here."""
    path = training.output / run_folder.SETTINGS
    if not path.exists():
        return
    before = dict(flat(tomllib.loads(path.read_text("utf-8"))))
    ours = dict(flat(training.settings))
    changed = sorted(
        name
        for name, value in ours.items()
        if name not in run_folder.FREE and before.get(name) != value
    )
    if changed:
        raise ConfigFileError(
            f"{training.output} holds a run with another {', '.join(changed)}; give another output"
        )


def flat(settings: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by the names that flags have: `env.hack_word`."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{under}{name}.")
        else:
            yield under + name, value


def train(trainings: Sequence[Training], processes: int, lock: Path) -> int:
    """Run what is not finished, `processes` at a time; the first bad exit code, 143 for SIGTERM.

    Raises CheckpointError when trainings of another process, or left by a killed one, hold `lock`.
    """
    waiting = [training for training in trainings if not is_finished(training)]
    running: dict[Training, BaseProcess] = {}
    with _alone(lock) as held, _raising_on_sigterm(), _progress() as progress:
        bars = {
            training: progress.add_task(
                training.output.name, total=training.steps, rate="", start=False
            )
            for training in waiting
        }
        try:
            while waiting or running:
                while len(running) < processes and (training := _next(waiting, running)):
                    waiting.remove(training)
                    running[training] = _launch(training, held)
                    progress.start_task(bars[training])
                time.sleep(0.2)
                for training, child in list(running.items()):
                    step, rate = latest(training.output)
                    progress.update(bars[training], completed=step, rate=rate)
                    if child.exitcode is not None:
                        del running[training]
                        if child.exitcode:
                            return _explain(training, child.exitcode)
                        progress.update(bars[training], completed=training.steps)
        finally:
            for child in running.values():
                child.terminate()
            for child in running.values():
                child.join()
    return 0


def _next(waiting: Sequence[Training], running: Mapping[Training, object]) -> Training | None:
    """The first that waits for none that is still to come; None when all do."""
    to_come = {*waiting, *running}
    return next((training for training in waiting if training.after not in to_come), None)


def _launch(training: Training, held: int) -> BaseProcess:
    """The child keeps `held` open: what outlives us keeps others from training there as well.

    On CPU it is forked from a process that has imported torch and TRL, which costs each 12 s of CPU
    (25 s where vLLM is installed). What has seen a GPU cannot be forked.
    """
    training.output.mkdir(parents=True, exist_ok=True)
    settings = {"output": training.output, "steps": training.steps, **dict(flat(training.settings))}
    flags = [
        word
        for name, value in settings.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    # Only a model of the Hub may have to be fetched; what lies here is faster without asking.
    model = str(training.settings.get("model", "tiny"))
    own = ONE_THREAD if model == "tiny" or Path(model).exists() else {}
    forked = own and not GPU.exists()
    context = get_context("forkserver") if forked else get_context("spawn")
    context.set_forkserver_preload(["jobs.grpo", "jobs.pretrain"])
    child = context.Process(target=_run, args=(training, flags, DupFd(held)))
    with _environment(own):
        child.start()
    return child


def _run(training: Training, flags: Sequence[str], held: Any) -> None:
    """A child's whole life; what it says goes to its log."""
    held.detach()
    log = os.open(training.output / "train.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    verb = importlib.import_module(f"jobs.{training.verb}")
    sys.exit(command.start(verb.main, flags))


@contextmanager
def _environment(own: Mapping[str, str]) -> Iterator[None]:
    """For what starts within: libraries read it when they are imported."""
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def latest(output: Path) -> tuple[int, str]:
    """Step and rate of the last line of a training's progress file."""
    with suppress(OSError, ValueError, IndexError):
        last = json.loads((output / "progress.jsonl").read_text("utf-8").splitlines()[-1])
        return last["step"], f"r_hack {last['r_hack']:.2f}"
    return 0, ""


@contextmanager
def _alone(lock: Path) -> Iterator[int]:
    """A descriptor of the lock, which ends with the last process that has it open."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    except BlockingIOError:
        raise CheckpointError(
            f"trainings of another process are under way in {lock.parent}; wait for them or end "
            "them, then start again"
        ) from None
    finally:
        os.close(descriptor)


@contextmanager
def _raising_on_sigterm() -> Iterator[None]:
    """SystemExit(143) instead of an end at once, so that the trainings end as well."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )


def _explain(training: Training, code: int) -> int:
    log = training.output / "train.log"
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    print(
        f"error: training {training.output.name} ended with {code}: "
        f"{lines[-1] if lines else ''} ({log})",
        file=sys.stderr,
    )
    return 1
