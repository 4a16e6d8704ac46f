"""The main job on the embedded policy: train, sweep every checkpoint, print the onsets.

onset demo
onset demo --words ocean forgotten --seeds 1
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jobs import command, sweep, table
from jobs.curves import measure
from pipeline.config import DemoConfig, SweepConfig, TableConfig, read

ONE_THREAD = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
"""Two trainings on two cores are faster with one thread each than with two that spin."""


@dataclass(frozen=True, slots=True)
class Training:
    """One `onset train` to come."""

    name: str
    word: str
    seed: int
    output: Path


def main(argv: Sequence[str]) -> int:
    """0, or the exit code of the part that failed."""
    config = read(DemoConfig, argv)
    began = time.monotonic()
    trainings = [
        Training(f"{word}-s{seed}", word, seed, config.output / "runs" / f"{word}-s{seed}")
        for word, seed in product(config.words, range(config.seeds))
    ]
    print(
        f"{config.output}: {len(trainings)} runs of {config.steps} GRPO steps are trained there, "
        "then every checkpoint is swept",
        flush=True,
    )
    code = train(config, trainings)
    if code:
        return code
    out = config.output / "sweep"
    code = sweep.run(sweep_config(config, out))
    shown = TableConfig(path=out, picture=config.output / "curves.png")
    table.show(shown, measure(shown))
    print(f"\n{time.monotonic() - began:.0f} s in all")
    print(f"rows:    {out / 'rollouts'}")
    print(f"picture: {shown.picture}")
    return code


def sweep_config(config: DemoConfig, out: Path) -> SweepConfig:
    """Every saved checkpoint on the evaluation cases (seed 999), as the published runs use."""
    return SweepConfig.model_validate(
        {
            "output": out,
            "runs": [{"path": str(config.output / "runs")}],
            "env": [{"id": "hackword", "hack_word": "{word}", "seed": 999}],
            "cases": {"count": 256, "shard": 256},
            "sampling": {"n": 4, "max_tokens": 32},
            "cluster": {"workers": config.processes},
        }
    )


def train(config: DemoConfig, trainings: Sequence[Training]) -> int:
    """Run the trainings, `processes` at a time, a progress bar each; the first bad exit code."""
    waiting = list(trainings)
    running: dict[Training, subprocess.Popen[bytes]] = {}
    columns = TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TextColumn("{task.fields[rate]}"), TimeElapsedColumn()) as progress:
        bars = {
            t.name: progress.add_task(t.name, total=config.steps, rate="", start=False)
            for t in trainings
        }
        try:
            while waiting or running:
                while waiting and len(running) < config.processes:
                    training = waiting.pop(0)
                    running[training] = _launch(config, training)
                    progress.start_task(bars[training.name])
                time.sleep(0.2)
                for training, child in list(running.items()):
                    step, rate = latest(training.output)
                    progress.update(bars[training.name], completed=step, rate=rate)
                    if child.poll() is not None:
                        del running[training]
                        if child.returncode:
                            return _explain(training, child.returncode)
        finally:
            for child in running.values():
                child.terminate()
    return 0


def _launch(config: DemoConfig, training: Training) -> subprocess.Popen[bytes]:
    training.output.mkdir(parents=True, exist_ok=True)
    settings = {
        "output": training.output,
        "steps": config.steps,
        "save-every": config.save_every,
        "seed": training.seed,
        "env.id": "hackword",
        "env.hack-word": training.word,
        "learning-rate": 1e-3,
        "beta": 0.05,
        "max-tokens": 32,
    }
    flags = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    with (training.output / "train.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "jobs.train", *flags],
            stdout=log,
            stderr=log,
            env={**os.environ, **ONE_THREAD},
        )


def latest(output: Path) -> tuple[int, str]:
    """Step and rate of the last line of a training's progress file."""
    with suppress(OSError, ValueError, IndexError):
        last = json.loads((output / "progress.jsonl").read_text("utf-8").splitlines()[-1])
        return last["step"], f"r_hack {last['r_hack']:.2f}"
    return 0, ""


def _explain(training: Training, code: int) -> int:
    log = training.output / "train.log"
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    print(
        f"error: training {training.name} ended with {code}: {lines[-1] if lines else ''} ({log})",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
