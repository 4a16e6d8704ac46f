"""Sweep checkpoints over environments into Parquet partitions.

onset sweep @ sweep.toml
onset sweep @ sweep.toml --dry-run
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tomli_w
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from jobs import command, terminal
from pipeline import cluster, files, standing, status, store, timeline
from pipeline.config import SweepConfig, read
from pipeline.mixture import refuse_mixture
from pipeline.plan import Plan, Run, owed, plan
from pipeline.records import Failure, Work, Written

DRAIN_SECONDS = 8.0
"""What is under way has so long to be written after a signal to stop."""


def main(argv: Sequence[str]) -> int:
    return run(read(SweepConfig, argv))


def run(config: SweepConfig, at: Callable[[str], None] = files.no_boundary) -> int:
    """Write every partition that is owed; an exit code: see README. `at`: see `store.commit`."""
    wanted = plan(config)
    refuse_mixture(wanted, store.foreign(config.output, wanted.partitions))
    if config.dry_run:
        _announce(wanted, config)
        return 0
    not_of_the_rows = {"dry_run", "timeline", "retry"}
    resolved = config.model_dump(mode="json", exclude_none=True, exclude=not_of_the_rows)
    with store.writing(config.output, tomli_w.dumps(resolved), at):
        store.tell_runs(config.output, {run.name: facts(run) for run in wanted.runs}, at)
        works = _announce(wanted, config)
        with standing.told(config.output, wanted) as told:
            failures, signalled = _sweep(config, works, told, at) if works else ([], 0)
            if signalled:
                told.ended = f"{status.INTERRUPTED} (signal {signalled})"
    for failure in _first_of_each(failures):
        where = f"run {failure.partition.run!r} step {failure.partition.step}"
        terminal.line(f"failed: {where}: {failure.reason}")
    if signalled:
        left = len(wanted.partitions) - len(store.done(config.output, wanted.partitions))
        terminal.line(f"interrupted, {left} partitions are owed; run the same command to go on")
        return 128 + signalled
    return 1 if failures or wanted.skipped else 0


def facts(run: Run) -> dict[str, Any]:
    """Its tags, and its base model unless a tag says that."""
    bases = {checkpoint.base for checkpoint in run.checkpoints} - {None}
    return ({"base": bases.pop()} if len(bases) == 1 else {}) | dict(run.tags)


def _announce(wanted: Plan, config: SweepConfig) -> list[Work]:
    """Say what there is and what is owed; the works that are."""
    done = store.done(config.output, wanted.partitions)
    if config.retry:
        done -= store.with_reason(config.output, done, config.retry)
    works = owed(wanted.works, done)
    for note in wanted.notes:
        terminal.line(f"note: {note}")
    for found in wanted.skipped:
        terminal.line(f"skipped: run {found.run!r} step {found.step}: {found.why}")
    terminal.line(
        f"{len(wanted.runs)} runs, {sum(len(r.checkpoints) for r in wanted.runs)} checkpoints, "
        f"{len(wanted.partitions)} partitions, {len(done)} done; "
        f"{wanted.rollouts(works)} rollouts to generate"
    )
    return works


def _sweep(
    config: SweepConfig, works: Sequence[Work], told: standing.Told, at: Callable[[str], None]
) -> tuple[list[Failure], int]:
    """What failed, and the signal that ended it early, 0 without one."""
    failures: list[Failure] = []
    written: list[Written] = []
    partitions = sum(len(work.partitions) for work in works)
    provenance = {"versions": store.versions()}
    with cluster.session(config.cluster), _progress() as progress:
        bar = progress.add_task("sweep", total=partitions, rate="")
        sweep = cluster.Sweep(config.output, config.engine, config.cluster, provenance, at)
        told.under_way = lambda: sweep.under_way
        rows, began = 0, time.monotonic()
        with _stopping(sweep) as signals:
            for event in sweep.run(works):
                told.hear(event)
                if isinstance(event, Failure):
                    failures.append(event)
                else:
                    rows += event.rows
                    written += [event] if config.timeline else []
                seconds = time.monotonic() - began
                progress.update(bar, advance=1, rate=f"{rows / seconds:,.0f} rollouts/s")
    if config.timeline:
        timeline.save(config.timeline, written)
    return failures, signals[0] if signals else 0


@contextmanager
def _stopping(sweep: cluster.Sweep) -> Iterator[list[int]]:
    """The first Ctrl-C or SIGTERM lets finished partitions be written; a second one does not."""
    signals: list[int] = []

    def stop(number: int, frame: object) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)
        sweep.stop(within=DRAIN_SECONDS)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _first_of_each(failures: Sequence[Failure]) -> list[Failure]:
    """One failure a checkpoint: its shards all failed for the same reason."""
    return list({(f.partition.run, f.partition.step): f for f in reversed(failures)}.values())[::-1]


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
