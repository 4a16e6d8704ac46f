"""Sweep checkpoints over environments into Parquet partitions.

onset sweep @ sweep.toml
onset sweep @ sweep.toml --dry-run
"""

import sys
import time
from collections.abc import Sequence

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
from pipeline import cluster, store, timeline
from pipeline.config import SweepConfig, read
from pipeline.plan import Plan, owed, plan, refuse_mixture
from pipeline.records import Failure, Work, Written


def main(argv: Sequence[str]) -> int:
    return run(read(SweepConfig, argv))


def run(config: SweepConfig) -> int:
    """Write every partition that is owed; 0, or 1 when something failed or was skipped."""
    wanted = plan(config)
    refuse_mixture(wanted, store.foreign(config.output, wanted.partitions))
    done = store.done(config.output, wanted.partitions)
    works = owed(wanted.works, done)
    if not config.dry_run:
        resolved = config.model_dump(
            mode="json", exclude_none=True, exclude={"dry_run", "timeline"}
        )
        store.prepare(config.output, tomli_w.dumps(resolved))
    _announce(wanted, works, len(done))
    if config.dry_run:
        return 0
    failures = _sweep(config, works) if works else []
    for failure in _first_of_each(failures):
        where = f"run {failure.partition.run!r} step {failure.partition.step}"
        terminal.line(f"failed: {where}: {failure.reason}")
    return 1 if failures or wanted.skipped else 0


def _announce(wanted: Plan, works: Sequence[Work], done: int) -> None:
    for note in wanted.notes:
        terminal.line(f"note: {note}")
    for found in wanted.skipped:
        terminal.line(f"skipped: run {found.run!r} step {found.step}: {found.why}")
    terminal.line(
        f"{len(wanted.runs)} runs, {sum(len(r.checkpoints) for r in wanted.runs)} checkpoints, "
        f"{len(wanted.partitions)} partitions, {done} done; "
        f"{wanted.rollouts(works)} rollouts to generate"
    )


def _sweep(config: SweepConfig, works: Sequence[Work]) -> list[Failure]:
    failures: list[Failure] = []
    written: list[Written] = []
    partitions = sum(len(work.partitions) for work in works)
    with cluster.session(config.cluster), _progress() as progress:
        bar = progress.add_task("sweep", total=partitions, rate="")
        sweep = cluster.Sweep(
            config.output, config.engine, config.cluster, {"versions": store.versions()}
        )
        rows, began = 0, time.monotonic()
        for event in sweep.run(works):
            if isinstance(event, Failure):
                failures.append(event)
            else:
                rows += event.rows
                written += [event] if config.timeline else []
            seconds = time.monotonic() - began
            progress.update(bar, advance=1, rate=f"{rows / seconds:,.0f} rollouts/s")
    if config.timeline:
        timeline.save(config.timeline, written)
    return failures


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
