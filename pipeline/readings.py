"""Rates that another tool measured, read from its CSV."""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REQUIRED = ("run", "step", "rate")
BUDGET = "steps"
"""Column, or tag of a run: the updates that its training was to make."""
FILE_BYTES, ROWS, COLUMNS = 2**26, 1_000_000, 10_000
"""What a table of rates may be at most."""
CELL_SHOWN = 60
STEP_LIMIT = 2**31 - 1
"""Steps are int32, here as in a sweep's rows."""
COUNT_LIMIT = 2**53
"""Rollouts that a float counts one by one."""


class ReadingError(ValueError):
    """A CSV cannot be taken as rates; one line with the file, its line, the value and the cure."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The rate of one run at one step."""

    run: str
    step: int
    rate: float
    n: int | None
    """Rollouts behind the rate; None when the file does not say."""
    hits: float | None


def read(path: Path) -> list[Reading]:
    """Readings in the order of the file; rows whose rate is an empty cell are left out.

    Columns run, step, rate, and n and hits where the file has them; others are for `tags`. Every
    row has as many cells as the header: a short one is what a writer that was cut off leaves.
    ReadingError when nothing, or anything but that, is there.
    """
    if path.exists() and not path.is_file():
        raise ReadingError(f"{path}: not a file")
    if path.exists() and path.stat().st_size > FILE_BYTES:
        raise ReadingError(
            f"{path}: {path.stat().st_size:,} bytes, {FILE_BYTES:,} at most; give one row a run "
            "and step, not one a rollout"
        )
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = list(_readings(path, csv.DictReader(file, skipinitialspace=True)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        cure = "; save it as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
        raise ReadingError(f"{path}: not a CSV that can be read ({error}){cure}") from error
    if not found:
        raise ReadingError(f"{path}: no row with a rate; nothing to measure")
    return found


def tags(path: Path) -> dict[str, dict[str, str]]:
    """What other columns of a file that `read` takes say of each run, where they say one thing."""
    said: dict[str, dict[str, set[str]]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file, skipinitialspace=True):
            cells = {name.strip(): (cell or "").strip() for name, cell in row.items()}
            of_run = said.setdefault(cells["run"], {})
            for name in cells.keys() - {*REQUIRED, "n", "hits"}:
                of_run.setdefault(name, set()).add(cells[name])
    return {
        run: {name: values.pop() for name, values in facts.items() if len(values) == 1}
        for run, facts in said.items()
    }


def ends(path: Path) -> dict[str, tuple[int, int]]:
    """Where each run of a file that `read` takes ends, in steps; 0 where it does not say.

    The last step that it lists, with a rate or not, and its column `steps`, the updates that were
    planned. ReadingError for steps that are no whole number.
    """
    last: dict[str, int] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        for row in rows:
            cells = {name.strip(): (cell or "").strip() for name, cell in row.items()}
            step = _step(f"{path}, line {rows.line_num}", cells, "step")
            last[cells["run"]] = max(step, last.get(cells["run"], 0))
    return {
        run: (last[run], _step(f"{path}, run {_shown(run)}", facts, BUDGET) if planned else 0)
        for run, facts in tags(path).items()
        for planned in [facts.get(BUDGET)]
    }


def _readings(path: Path, rows: "csv.DictReader[str]") -> Iterator[Reading]:
    names = [name.strip() for name in rows.fieldnames or ()]
    if len(names) > COLUMNS:
        raise ReadingError(f"{path}: {len(names):,} columns, {COLUMNS:,} at most; keep those named")
    rows.fieldnames = names
    if not names:
        raise ReadingError(f"{path}: empty; the first line names the columns: run,step,rate")
    for name in REQUIRED:
        if name not in names:
            told = "; columns are parted by commas" if len(names) == 1 else ""
            raise ReadingError(f"{path}: no column {name!r}; it has {', '.join(names)}{told}")
    for name, times in Counter(filter(None, names)).items():
        if times > 1:
            raise ReadingError(f"{path}: column {_shown(name)} stands {times} times; keep one")
    seen: set[tuple[str, int]] = set()
    before = rows.line_num
    for row in rows:
        spanned = sum(cell.count("\n") for cell in row.values() if isinstance(cell, str))
        # A quote that never closes takes in the last line's end as well.
        where = f"{path}, line {max(before + 1, rows.line_num - spanned)}"
        before = rows.line_num
        _refuse_open_quote(where, row)
        if None in row:
            raise ReadingError(f"{where}: more cells than the header has; quote cells with commas")
        if None in row.values():
            held = sum(cell is not None for cell in row.values())
            raise ReadingError(
                f"{where}: {held} cells where the header has {len(names)}; complete the row (an "
                "empty cell says that there is no rate), or leave it out"
            )
        cells = {name: (cell or "").strip() for name, cell in row.items()}
        if not cells["rate"]:
            continue
        reading = _reading(where, cells)
        if (reading.run, reading.step) in seen:
            raise ReadingError(
                f"{where}: run {reading.run!r} has step {reading.step} twice; keep one row of it"
            )
        seen.add((reading.run, reading.step))
        if len(seen) > ROWS:
            raise ReadingError(f"{where}: more than {ROWS:,} rows; give one a run and step")
        yield reading


def _refuse_open_quote(where: str, row: Mapping[str, Any]) -> None:
    """ReadingError where a number spans lines, or any cell of a row that lacks some."""
    numbers = [row.get(name) for name in ("step", "rate", "n", "hits")]
    told = list(row.values()) if None in row.values() or None in row else numbers
    if any("\n" in cell for cell in told if isinstance(cell, str)):
        raise ReadingError(f"{where}: a quote that opens here ends on a later line; close it")


def _reading(where: str, cells: Mapping[str, str]) -> Reading:
    where = f"{where}, run {_shown(cells['run'])}, step {_shown(cells['step'])}"
    if not cells["run"]:
        raise ReadingError(f"{where}: run is empty; every row needs the name of its run")
    step, rate = _step(where, cells, "step"), _number(where, cells, "rate")
    n, hits = (_number(where, cells, name) if cells.get(name) else None for name in ("n", "hits"))
    if not 0 <= rate <= 1:
        cure = "divide percent by 100" if 1 < rate <= 100 else "leave it empty if there is none"
        raise ReadingError(f"{where}: rate {rate:g} is not within [0, 1]; {cure}")
    if n is not None and (n % 1 or not 1 <= n <= COUNT_LIMIT):
        raise ReadingError(f"{where}: n {n:g} is no number of rollouts; leave it empty if unknown")
    if hits is not None and hits < 0:
        raise ReadingError(f"{where}: hits {hits:g} is below 0; leave it empty if unknown")
    if n is not None and hits is not None and abs(hits - n * rate) >= 1:
        raise ReadingError(
            f"{where}: hits {hits:g} is not n x rate = {n * rate:g}; all three must count the same"
        )
    return Reading(cells["run"], step, rate, None if n is None else int(n), hits)


def _step(where: str, cells: Mapping[str, str], name: str) -> int:
    step = _number(where, cells, name)
    if step % 1 or not 0 <= step <= STEP_LIMIT:
        raise ReadingError(
            f"{where}: {name} must be a whole number of updates, 0 to {STEP_LIMIT:,} (int32)"
        )
    return int(step)


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= CELL_SHOWN else f"{cell[:CELL_SHOWN]}...")


def _number(where: str, cells: Mapping[str, str], name: str) -> float:
    try:
        value = float(cells[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        percent = cells[name].endswith("%")
        cure = "divide percent by 100, without the sign" if percent else "mend the file"
        raise ReadingError(f"{where}: {name} {_shown(cells[name])} is not a finite number; {cure}")
    return value
