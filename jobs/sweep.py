"""Sweep checkpoints over environments into Parquet partitions.

onset sweep @ sweep.toml
onset sweep @ sweep.toml --dry-run
onset sweep @ sweep.toml --order.strategy adaptive
"""

import os
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
from rich.text import Text

from jobs import command, terminal
from pipeline import cluster, files, judging, standing, status, store, timeline, unjudged
from pipeline.config import SweepConfig, read
from pipeline.mixture import options_of_rows, refuse_other_sweep
from pipeline.order.adaptive import Adaptive
from pipeline.order.whole import Whole
from pipeline.plan import Plan, build, owed, plan
from pipeline.printable import one_line
from pipeline.records import Failure, Work, Written
from pipeline.runs import Run

DRAIN_SECONDS, ONE_SIGNAL_SECONDS = 8.0, 2.0
"""What is under way has so long to be written after a signal to stop; and a signal counts once for
so long."""
SHOWN = 20
"""Runs of an adaptive sweep that are told one by one."""


def main(argv: Sequence[str]) -> int:
    return run(read(SweepConfig, argv))


def run(config: SweepConfig, at: Callable[[str], None] = files.no_boundary) -> int:
    """Write every partition that is owed; an exit code: see README. `at`: see `store.commit`."""
    wanted = plan(config)
    refuse_other_sweep(config, wanted)
    judging.check((build(p.environment) for p in wanted.partitions), config.judge, config.dry_run)
    if config.dry_run:
        done = _announce(wanted, config)
        for line in _order(wanted, config, done).outlook():
            terminal.line(line)
        return 0
    writing = store.writing(config.output, tomli_w.dumps(config.of_the_rows()), at)
    with _leaving(), _stopping() as signals, writing:
        store.tell_runs(config.output, {run.name: facts(run) for run in wanted.runs}, at)
        order = _order(wanted, config, _announce(wanted, config))
        with standing.told(config.output, order.so_far, searched=order.searched) as told:
            failures: list[Failure] = []
            signalled = 0
            if not order.is_over:
                failures, signalled = _sweep(config, order, told, signals, at)
            if signalled:
                told.ended = f"{status.INTERRUPTED} (signal {signalled})"
    for said in order.searched[:SHOWN]:
        terminal.line(str(said))
    if len(order.searched) > SHOWN:
        terminal.line(f"and {len(order.searched) - SHOWN} runs more; onset status --json has all")
    for failure in _first_of_each(failures)[1:]:
        terminal.line(_said(failure))
    if signalled:
        left = len({p.key for p in order.so_far.partitions} - order.done)
        terminal.line(f"interrupted, {left} partitions are owed; run the same command to go on")
        return 128 + signalled
    return 1 if failures or wanted.skipped else 0


def facts(run: Run) -> dict[str, Any]:
    """Its tags, and its base model unless a tag says that."""
    bases = {checkpoint.base for checkpoint in run.checkpoints} - {None}
    return ({"base": bases.pop()} if len(bases) == 1 else {}) | dict(run.tags)


def _order(wanted: Plan, config: SweepConfig, done: set[str]) -> Adaptive | Whole:
    if config.order.strategy == "full":
        return Whole(wanted, done)
    return Adaptive(wanted, config.output, config.order, done, config.cluster.workers or 1)


def _announce(wanted: Plan, config: SweepConfig) -> set[str]:
    """Say what there is and what is owed; keys of the partitions that are not."""
    done = store.done(config.output, wanted.partitions)
    if config.retry:
        again = store.with_reason(config.output, done, config.retry)
        if not again:
            terminal.line(f"note: no partition holds a null of reason {' or '.join(config.retry)}")
        done -= again
    most = "at most " if config.order.strategy == "adaptive" else ""
    for note in wanted.notes:
        terminal.line(f"note: {note}")
    for found in wanted.skipped:
        terminal.line(f"skipped: run {found.run!r} step {found.step}: {found.why}")
    kept, rest = unjudged.apart(config.output, owed(wanted.works, done))
    drawn = f", {wanted.rollouts(kept)} drawn before to judge" if kept else ""
    terminal.line(
        f"{len(wanted.runs)} runs, {sum(len(r.checkpoints) for r in wanted.runs)} checkpoints, "
        f"{len(wanted.partitions)} partitions, {len(done)} done; "
        f"{most}{wanted.rollouts(rest)} rollouts to generate{drawn}"
    )
    return done


def _sweep(
    config: SweepConfig,
    order: Adaptive | Whole,
    told: standing.Told,
    signals: "_Signals",
    at: Callable[[str], None],
) -> tuple[list[Failure], int]:
    """What failed, and the signal that ended it early, 0 without one."""
    failures: list[Failure] = []
    written: list[Written] = []
    provenance = {"versions": store.versions(), "options": options_of_rows(config.engine)}
    with (
        cluster.session(config.cluster, signals.take, config.judge.engines),
        _progress() as progress,
    ):
        bar = progress.add_task("sweep", rate="")
        about = config.output, config.engine, config.cluster, provenance, at, config.judge
        sweep = cluster.Sweep(*about)
        signals.heed(sweep)
        told.under_way = lambda: sweep.under_way
        order.workers = len(sweep.workers.all)
        rows, nulls, began = 0, 0, time.monotonic()

        def following() -> list[Work]:
            works = order.works()
            if order.searched:
                told.plan(order.so_far, order.searched)
            total = progress.tasks[bar].completed + sum(len(work.partitions) for work in works)
            progress.update(bar, total=total)
            return works

        for event in sweep.run(following(), following):
            order.hear(event)
            told.hear(event)
            if isinstance(event, Failure):
                if not failures:
                    progress.console.print(Text(one_line(_said(event))), soft_wrap=True)
                failures.append(event)
            else:
                rows += event.rows
                nulls += event.nulls
                written += [event] if config.timeline else []
            seconds = time.monotonic() - began
            progress.update(bar, advance=1, rate=f"{rows / seconds:,.0f} rollouts/s")
    if nulls:
        terminal.line(
            f"{nulls} of {rows} rollouts are null and stay so; onset curves has the reasons, "
            "--retry REASON makes their partitions again"
        )
    if config.timeline:
        timeline.save(config.timeline, written)
    return failures, signals.first


class _Early(KeyboardInterrupt):
    """A signal came while Ray started."""


@contextmanager
def _leaving() -> Iterator[None]:
    """End the process at once after a signal before the first work: Ray's start is not waited for.

    Ray's processes end with ours.
    """
    try:
        yield
    except _Early as error:
        terminal.line("interrupted before anything started; run the same command to go on")
        sys.stdout.flush()
        os._exit(128 + int(str(error)))


class _Signals:
    """The first Ctrl-C or SIGTERM lets finished partitions be written; a later one does not.

    One that follows at once is the same: to the process, and to its group.
    """

    def __init__(self) -> None:
        self.first = 0
        """Number of the signal; 0 without one."""
        self._sweep: cluster.Sweep | None = None
        self._at = 0.0

    def hear(self, number: int, frame: object) -> None:
        if self.first and time.monotonic() > self._at + ONE_SIGNAL_SECONDS:
            raise KeyboardInterrupt
        if not self.first:
            self.first, self._at = number, time.monotonic()
            self._stop()

    def take(self) -> None:
        """Have signals come here, whoever took them meanwhile."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.hear)

    def heed(self, sweep: cluster.Sweep) -> None:
        """Let signals stop this sweep, also one that came while Ray started."""
        self._sweep = sweep
        self._stop()

    def _stop(self) -> None:
        if self.first and self._sweep is None:
            raise _Early(self.first)
        if self.first and self._sweep:
            self._sweep.stop(within=DRAIN_SECONDS)


@contextmanager
def _stopping() -> Iterator[_Signals]:
    signals = _Signals()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signals.take()
    try:
        yield signals
    finally:
        for number, handler in before.items():
            if not signals.first:  # else the same signal may come once more
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


def _said(failure: Failure) -> str:
    where = f"run {failure.partition.run!r} step {failure.partition.step}"
    return f"failed: {where}: {failure.reason}"


def _first_of_each(failures: Sequence[Failure]) -> list[Failure]:
    """One failure a checkpoint: its shards all failed for the same reason."""
    return list({(f.partition.run, f.partition.step): f for f in reversed(failures)}.values())[::-1]


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
