"""One page that people read: onsets, curves, rollouts and provenance, in a single HTML file.

onset report outputs/demo/sweep
onset report other-tool.csv --to pages/other
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs import command, status
from jobs.compare import tags
from jobs.curves import Measured, assumed, measure, onsets
from pipeline import comparison, contents, files, grouping, nulls, opinions, store
from pipeline.comparison import Comparison
from pipeline.config import CurvesConfig, ReportConfig, read
from pipeline.holdings import Held, holdings, settled
from pipeline.places import Where
from pipeline.report import examples, page, provenance
from pipeline.report.provenance import Provenance
from pipeline.report.study import Study
from pipeline.rows import CurveError, scan
from pipeline.status import Searched

FOOTERS = 200
"""Partitions whose footers are read: the first of each run, until there are so many."""


def main(argv: Sequence[str]) -> int:
    """Write the page and its charts, and say where; 0."""
    config = read(ReportConfig, argv, positional="path")
    print(write(config, measured(config)))
    return 0


def write(config: ReportConfig, measured: Measured) -> Path:
    """The page's path, once it and its charts are written."""
    told = study(config, measured)
    config.folder.mkdir(parents=True, exist_ok=True)
    for name, content in page.files(told):
        (config.folder / name).write_bytes(content)
    return config.folder / "report.html"


def measured(config: ReportConfig) -> Measured:
    """Curves of every metric. Raises CurveError or StoreError where there are none."""
    fields = config.model_dump(include={"path", "env", "max_loss"}, exclude_none=True)
    return measure(CurvesConfig.model_validate(fields))


def study(config: ReportConfig, measured: Measured) -> Study:
    """All that the page tells. Raises CurveError where there is no such metric."""
    metric = config.metric or measured.proxy
    found = onsets(measured, metric, config.threshold)
    beside: dict[str, Any] = {"examples": None, "losses": None, "gaps": (), "provenance": None}
    if measured.identity:
        beside = settled(lambda: _beside(config, measured, found, metric))
    gaps = (*beside.pop("gaps"), *assumed(config.path, measured, found))
    return Study(
        name=str(config.path),
        curves=measured.frame,
        onsets=found,
        identity=measured.identity,
        proxy=metric,
        true=measured.true,
        threshold=config.threshold,
        gaps=gaps,
        comparisons=_compared(config.path, measured, found),
        **beside,
    )


def _compared(path: Where, measured: Measured, found: Any) -> dict[str, Comparison] | str:
    """Words of runs that may be compared; why not, where no run says its word or all say one."""
    facts = tags(path)
    parts = grouping.alike(grouping.with_base(found, measured.frame), facts)
    try:
        groups = {
            name: grouping.by_word(grouping.runs(part, facts)) for name, part in parts.items()
        }
    except CurveError as error:
        return f"words are not compared: {error}"
    several = {name: comparison.compared(one) for name, one in groups.items() if len(one) > 1}
    return several or "one word alone, nothing to compare it with."


def _beside(config: ReportConfig, measured: Measured, found: Any, metric: str) -> dict[str, Any]:
    """What of a study rollouts and files tell beside the curves, by its names."""
    about = store.about(config.path, config.env)
    held = holdings(config.path, about.environment).held
    keys = ["run", *measured.identity]
    places = examples.places(found, keys)
    wanted = set(places.select("run", "step").iter_rows())
    near = list(dict.fromkeys(one.at for one in held if (one.run, one.step) in wanted))
    metrics = [metric, *([measured.true] if measured.true else [])]
    shown = examples.draw(scan(near, about.gated), places, keys, metrics) if near else {}
    rows = scan(store.row_files(config.path, about.environment), about.gated)
    gaps, searched = _standing(config.path)
    return {
        "examples": shown,
        "losses": nulls.by_run(rows),
        "gaps": gaps,
        "provenance": _provenance(config, held, measured, rows),
        "searched": searched,
        "judged": tuple(opinions.told(rows, about.metrics)),
    }


def _standing(out: Where) -> tuple[tuple[str, ...], tuple[Searched, ...]]:
    """A line for each checkpoint that was skipped or failed, and each run that is owed some; and
    what an adaptive sweep evaluated."""
    found = status.look(out)
    searched = tuple(Searched(**one) for one in found["searched"])
    said = [f"run {r['run']!r} step {r['step']}: skipped, {r['why']}" for r in found["skipped"]]
    said += [f"run {r['run']!r} step {r['step']}: failed, {r['reason']}" for r in found["failed"]]
    said += [
        f"run {r['run']!r}: {r['owed'] + r['running']} of {r['partitions']} partitions are owed"
        for r in found["runs"]
        if r["owed"] + r["running"]
    ]
    told = set(map(str, searched))
    return (*said, *(note for note in found["notes"] if note not in told)), searched


def _provenance(
    config: ReportConfig, held: Sequence[Held], measured: Measured, rows: Any
) -> Provenance:
    firsts = list({one.run: one for one in reversed(held)}.values())[:FOOTERS]
    try:
        written = files.read_bytes(config.path / "config.toml").decode("utf-8", "replace")
    except FileNotFoundError:
        written = None
    footers = list(contents.footers(firsts))
    verb = "rejudge" if any("rejudged" in footer for footer in footers) else "sweep"
    return Provenance(
        facts=(
            *provenance.facts(footers),
            provenance.determinism(rows),
            provenance.first_weights(measured.frame),
        ),
        config=written and provenance.without_credentials(written),
        commands=provenance.commands(
            str(config.path), verb if written is not None else None, config.threshold
        ),
        partitions=len(held),
        footers=len(firsts),
    )


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
