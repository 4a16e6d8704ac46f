"""What of a sweep is done, running, owed and failed, and why: while it runs and after.

onset status outputs/story
onset status outputs/story --json
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs import command, terminal
from jobs.curves import folder
from pipeline import contents, standing, status
from pipeline.config import StatusConfig, read
from pipeline.holdings import StoreError, holdings
from pipeline.places import Where
from pipeline.printable import one_line

REASONS = 20
"""Lines of reasons, and of notes, that are printed; --json has them all."""


def main(argv: Sequence[str]) -> int:
    """Print how a sweep stands; 0."""
    config = read(StatusConfig, argv, positional="path")
    found = look(folder(config.path))
    if config.json:
        terminal.as_json([found])
    else:
        show(found, time.time())
    return 0


def look(out: Where) -> dict[str, Any]:
    """The standing of a sweep from its files. StoreError where there are none."""
    is_alive = standing.is_alive(out)
    plan, snapshot = standing.read(out)
    if is_alive is False and snapshot and not snapshot.ended:
        is_alive = standing.is_alive(out)
    held = holdings(out).held
    notes = []
    if plan is None:
        if not held:
            raise StoreError(f"{out}: no plan and no partition of a sweep; is this its output?")
        notes = ["no plan lies in status/: what is owed is not known; the next sweep writes one"]
        plan = status.Plan(
            tuple(
                status.Planned(h.key, h.environment, h.run, h.step, contents.count(h)) for h in held
            )
        )
    done = {one.key for one in held}
    states = status.states_of(plan, done, snapshot, is_alive)
    state = status.state(snapshot, is_alive)
    return {
        "state": state,
        "began": snapshot and snapshot.began,
        "updated": snapshot and snapshot.updated,
        "rows_per_second": snapshot and snapshot.rows_per_second,
        "partitions_per_minute": snapshot and snapshot.partitions_per_minute,
        "nulls": snapshot and snapshot.nulls,
        "eta_seconds": status.eta(plan, states, snapshot) if state == status.RUNNING else None,
        "runs": [asdict(one) for one in status.standings(plan, done, snapshot, is_alive)],
        "failed": status.reasons(plan, states, snapshot),
        "skipped": [asdict(one) for one in plan.skipped],
        "searched": [asdict(one) for one in plan.searched],
        "notes": [*notes, *map(str, plan.searched)],
    }


def show(found: dict[str, Any], now: float) -> None:
    """The table, then why, then how the sweep as a whole stands."""
    runs = found["runs"]
    names = list(runs[0]) if runs else []
    total = {"run": f"all {len(runs)}"} | {n: sum(r[n] for r in runs) for n in names[1:]}
    terminal.table([*runs, total] if len(runs) > 1 else runs, names)
    whys = [
        f"failed: run {one['run']!r} step {one['step']}, {one['partitions']} partitions: "
        f"{terminal.cell(one['reason'])}"
        for one in found["failed"]
    ]
    whys += [
        f"skipped: run {one['run']!r} step {one['step']}: {terminal.cell(one['why'])}"
        for one in found["skipped"]
    ]
    for lines in (whys, found["notes"]):
        for line in lines[:REASONS]:
            print(one_line(line))
        if len(lines) > REASONS:
            print(f"and {len(lines) - REASONS} more; --json has them all")
    print(terminal.cell(_sentence(found, now)))


def _sentence(found: dict[str, Any], now: float) -> str:
    if found["updated"] is None:
        return str(found["state"])
    said = f"{found['state']}, began {_moment(found['began'])}"
    if found["state"] not in (status.RUNNING, status.STARTING):
        return f"{said}, last heard of {_moment(found['updated'])}"
    said += f", last heard of {max(0.0, now - found['updated']):.0f} s ago"
    if found["state"] == status.RUNNING:
        said += f", {found['rows_per_second']:,.1f} rollouts/s"
        said += f", {found['partitions_per_minute']:,.1f} partitions/min"
        left = found["eta_seconds"]
        said += ", ETA not known" if left is None else f", ETA {timedelta(seconds=round(left))}"
    return said


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds")


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
