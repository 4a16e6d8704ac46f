"""Rates per checkpoint with their intervals, and the proxy-true gap, from an output or a CSV.

onset curves outputs/demo/sweep
onset curves outputs/demo/sweep --metric r_hack --save curves.parquet
onset curves other-tool.csv --plot
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jobs import command, terminal
from pipeline import curves, frames, gap, nulls, onset, opinions, readings, standing, store
from pipeline.config import CurvesConfig, read
from pipeline.onset import End
from pipeline.places import Where
from pipeline.report import plot
from pipeline.rows import CurveError, as_one
from pipeline.tallies import by_prompts

ALWAYS = {"run", "step", "metric", "rollouts", "prompts", "rate", "lo", "hi", "deff", "nulls"}
"""Columns that are printed even where they are the same throughout; k stands beside rollouts."""
SHOWN = 5
"""Refused rates that are named one by one."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Curves and what their columns mean."""

    frame: Any
    """polars frame, one row per curve and step (see pipeline.curves)."""
    identity: tuple[str, ...]
    proxy: str
    true: str | None
    prompts: Mapping[str, Any] = field(default_factory=dict)
    """`tallies.by_prompt` of the metric that was asked for, of proxy and true; none of a CSV."""
    ends: Mapping[str, End] = field(default_factory=dict)
    """By run, where its sweep and its training were to end."""


def main(argv: Sequence[str]) -> int:
    """Print or save the curves; 0."""
    config = read(CurvesConfig, argv, positional="path")
    measured = measure(config)
    rows = measured.frame
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        rows.write_parquet(config.save)
    if config.json:
        terminal.as_json(rows.to_dicts())
    elif config.plot:
        print(plots(measured, config.metric or measured.proxy))
    else:
        shown = [c for c in rows.columns if rows[c].n_unique() > 1 or c in ALWAYS]
        told = [row | {"k": _per_prompt(row)} for row in rows.to_dicts()]
        terminal.table(
            told, [name for c in shown for name in ((c, "k") if c == "rollouts" else (c,))]
        )
    return 0


def plots(measured: Measured, metric: str, threshold: float = 0.5) -> str:
    """A metric's curves, and the true rate where it was measured too, drawn in characters."""
    there = set(measured.frame["metric"]) - {metric}
    true = measured.true if measured.true in there else None
    pen = plot.pen(sys.stdout.encoding)
    found = onsets(measured, metric, threshold)
    return plot.plots(measured.frame, found, metric, true, threshold, pen)


def onsets(measured: Measured, metric: str, threshold: float) -> Any:
    """`onset.onsets` with all that was measured beside the rates."""
    return onset.onsets(
        measured.frame,
        metric,
        measured.identity,
        threshold,
        measured.prompts.get(metric),
        ends=measured.ends,
    )


def measure(config: CurvesConfig) -> Measured:
    """The curves of an output folder or a CSV, of one metric when asked, pooled when asked."""
    path = config.path
    if isinstance(path, Path) and path.suffix.lower() == ".csv" and not path.is_dir():
        frame = nulls.refuse(curves.from_csv(path), config.max_loss)
        return Measured(frame, (), "rate", None, ends=_ends_of_csv(path))
    about = store.about(folder(path), config.env)
    if config.metric and config.metric not in about.metrics:
        raise CurveError(f"metric {config.metric!r} is none of {', '.join(about.metrics)}")
    metrics = {n: k for n, k in about.metrics.items() if config.metric in (None, n)}
    identity = about.identity

    def look(rows: Any) -> Any:
        frame = (curves.pooled if config.pool else curves.curves)(rows, metrics, identity)
        rows = as_one(rows) if config.pool else rows
        wanted = dict.fromkeys([config.metric or about.proxy, about.proxy, about.true])
        return frame, by_prompts(rows, [m for m in wanted if m in metrics], identity)

    frame, prompts = frames.reading(path, about, look)
    if said := standing.astray(path, about.environment):
        terminal.line(f"note: {said}")
    # Votes of a judge that failed tell how they agree, too.
    every = replace(about, gated=())
    for said in frames.reading(path, every, lambda rows: opinions.told(rows, about.metrics)):
        terminal.line(said)
    kept = nulls.refuse(frame, config.max_loss)
    refusals = nulls.refusals(kept)
    for said in refusals[:SHOWN]:
        terminal.line(f"refused: {said}; above --max-loss {config.max_loss:g}")
    if len(refusals) > SHOWN:
        terminal.line(f"refused: {len(refusals) - SHOWN} rates more")
    if about.true in metrics and about.proxy in metrics:
        both = [prompts[about.proxy], prompts[about.true]]
        kept = curves.join([kept, gap.rows(kept, about.proxy, about.true, both)])
    return Measured(kept, identity, about.proxy, about.true, prompts, ends(path, about.tags))


def _per_prompt(row: Mapping[str, Any]) -> float | None:
    """k, rollouts a prompt; None where the prompts are unknown."""
    rollouts, prompts = row["rollouts"], row["prompts"]
    return rollouts / prompts if rollouts and prompts else None


def _ends_of_csv(path: Path) -> dict[str, End]:
    try:
        return {run: End(*known) for run, known in readings.ends(path).items()}
    except readings.ReadingError as error:
        raise CurveError(str(error)) from error


def assumed(path: Where, measured: Measured, found: Any) -> list[str]:
    """A line on runs that end below the threshold, where nobody says that training was to go on."""
    cut = [run for run, why in found.select("run", "reason").iter_rows() if why == "budget"]
    silent = [run for run in cut if run not in measured.ends or not measured.ends[run].budget]
    if not silent:
        return []
    runs = f"run {silent[0]!r}" if len(silent) == 1 else f"{len(silent)} runs, {silent[0]!r} first,"
    verb, kind = "is" if len(silent) == 1 else "are", "tag" if measured.identity else "column"
    return [
        f"{path}: {runs} below the threshold at the last checkpoint {verb} taken as cut by the "
        f"budget; a {kind} {readings.BUDGET!r}, the updates that were planned, would say"
    ]


def ends(out: Where, tags: Mapping[str, Mapping[str, Any]]) -> dict[str, End]:
    """The last checkpoint that each run's sweep planned or skipped, and its tag `steps`."""
    planned: dict[str, int] = {}
    with suppress(store.StoreError, OSError):
        plan, _ = standing.read(out)
        known = [(p.run, p.step) for p in plan.partitions] if plan else []
        known += [(s.run, s.step) for s in plan.skipped] if plan else []
        planned = dict(sorted(known))
    budgets = {
        run: facts[readings.BUDGET]
        for run, facts in tags.items()
        if _is_step(facts.get(readings.BUDGET))
    }
    return {
        run: End(planned.get(run, 0), budgets.get(run, 0))
        for run in planned.keys() | budgets.keys()
    }


def _is_step(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def folder(path: Where) -> Where:
    """The output of a sweep. Raises StoreError for a file, which is none."""
    if isinstance(path, Path) and path.is_file():
        raise store.StoreError(
            f"{path} is a file; give the output folder of a sweep (onset table and onset curves "
            f"take a .csv of {', '.join(readings.REQUIRED)} as well)"
        )
    return path


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
