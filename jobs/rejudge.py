"""Grade stored rollouts again, with another grader, word or judge: no inference, old beside new.

onset rejudge outputs/story --env.id hackword --env.grader assay-0.1.0
onset rejudge outputs/market @ judge.toml
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from hackbait.stage import unstaged
from jobs import command, terminal
from jobs.curves import folder
from pipeline import flips, judging, opinions, rejudging, standing, status, store
from pipeline.config import RejudgeConfig, read
from pipeline.holdings import holdings
from pipeline.mixture import refuse_mixture
from pipeline.places import Where
from pipeline.plan import Plan, build
from pipeline.records import Work
from pipeline.rejudging import Again
from pipeline.rows import CurveError, scan

REFUSALS = 20
"""Rates that are refused and named one by one."""
UNSAVED = {"dry_run", "json", "save", "metric", "max_loss"}


def main(argv: Sequence[str]) -> int:
    """Write the new scores, then print both; 0, or 1 where a judge left partitions owed."""
    config = read(RejudgeConfig, argv, positional="path")
    out = sibling(config)
    wanted = rejudging.plan(folder(config.path), config.env, config.judge.stage())
    planned = Plan((), tuple(one.work for one in wanted), (), ())
    refuse_mixture(planned, store.foreign(out, planned.partitions))
    done = {held.key for held in holdings(out).held}
    owed = [one for one in wanted if one.partition.key not in done]
    terminal.line(
        f"{out}: {len(wanted)} partitions, {len(wanted) - len(owed)} done; "
        f"{planned.rollouts(one.work for one in owed):,} rollouts to grade again"
    )
    if owed:
        specs = (one.partition.environment for one in owed)
        judging.check(map(build, specs), config.judge, config.dry_run)
    if config.dry_run:
        return 0
    if owed:
        why = _write(config, out, planned, owed)
        if why:
            terminal.line(f"judge: {why}; the same command goes on from here")
            return 1
    show(config, compared(config, out))
    about = store.about(out, config.env.id)
    rows = scan(store.row_files(out, about.environment))
    for said in opinions.told(rows, about.metrics):
        terminal.line(said)
    return 0


def sibling(config: RejudgeConfig) -> Where:
    """Where the new scores go. StoreError where the old ones are."""
    out = config.output
    if out is None:
        out = config.path.parent / f"{config.path.name}-rejudged"
    if str(out) == str(config.path):
        raise store.StoreError(f"output {out} is what is graded again; name another folder")
    return out


def _write(config: RejudgeConfig, out: Where, planned: Plan, owed: Sequence[Again]) -> str:
    """Commit what is owed; why the judge ended it early, empty where it did not."""
    resolved = config.model_dump(mode="json", exclude_none=True, exclude=UNSAVED)
    provenance: dict[str, Any] = {"versions": store.versions(), "rejudged_from": str(config.path)}
    answers = None
    if made := judging.engine_of(config.judge):
        engine = judging.JudgeEngine(*made)
        answers, provenance["judge"] = engine.answer, engine.load()
    runs, under_way = {one.partition.run for one in owed}, list[Work]()
    tags = {run: told for run, told in store.run_tags(config.path).items() if run in runs}
    with store.writing(out, tomli_w.dumps(resolved)), standing.told(out, planned) as told:
        told.under_way = lambda: under_way
        store.tell_runs(out, tags)
        for one in terminal.tracked(owed, "rejudge"):
            under_way = [one.work]
            try:
                for written in rejudging.write(one, out, config.judge, provenance, answers):
                    told.hear(written)
            except judging.JudgeBusy as busy:
                told.ended = f"{status.INTERRUPTED}: judge: {busy}"
                return str(busy)
    return ""


def compared(config: RejudgeConfig, out: Where) -> Any:
    """Every checkpoint and metric under both grades (`flips.side_by_side`)."""
    old, new = (store.about(place, config.env.id) for place in (config.path, out))
    metrics, added = flips.kept_and_added(old.metrics, new.metrics)
    if config.metric and config.metric not in {**metrics, **added}:
        raise CurveError(
            f"metric {config.metric!r} is none of the new rows: {', '.join([*metrics, *added])}"
        )
    changed = {*config.env.args, "grader_fingerprint"}
    own = unstaged(dict.fromkeys(old.identity, ""))
    on = [name for name in own if name in new.identity and name not in changed]
    sides = [
        scan(store.row_files(place, about.environment), about.gated)
        for place, about in ((config.path, old), (out, new))
    ]
    return flips.side_by_side(sides[0], sides[1], metrics, on, added, config.max_loss)


def show(config: RejudgeConfig, found: Any) -> None:
    """The table on stdout and, where asked, as Parquet."""
    changed = flips.together(found)
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        found.write_parquet(config.save)
    if config.json:
        terminal.as_json(found.to_dicts())
        return
    for metric, change in changed.items():
        if (change.pairs or change.lost) and config.metric in (None, metric):
            print(f"{metric}: {change}")
    stage = config.judge.stage()
    shown = [config.metric or (stage.metric if stage else "")]
    if not config.metric:
        shown += [metric for metric, change in changed.items() if change.flipped or change.lost]
    rows = [row for row in found.to_dicts() if row["metric"] in shown]
    if rows:
        terminal.table(map(_readable, rows), list(_readable(rows[0])))
    refused = [
        f"run {row['run']!r} step {row['step']}: {row['metric']}, {side}: {row[f'{side}_refused']}"
        for row in rows
        for side in flips.SIDES
        if row[f"{side}_refused"]
    ]
    for said in refused[:REFUSALS]:
        terminal.line(f"not shown: {said}; --max-loss")
    if len(refused) > REFUSALS:
        terminal.line(f"and {len(refused) - REFUSALS} more; --json has them all")


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("run", "step", "metric", "pairs", "up", "down")},
        **{side: _rate(row, side) for side in flips.SIDES},
        "lost": " -> ".join(str(n) for n in (row["old_lost"], row["new_lost"]) if n is not None),
    }


def _rate(row: Mapping[str, Any], side: str) -> str | None:
    """`0.931 [0.902, 0.957]`; without the brackets where there is no interval."""
    rate, low, high = row[side], row[f"{side}_lo"], row[f"{side}_hi"]
    if rate is None:
        return None
    return f"{rate:.3g}" if low is None else f"{rate:.3g} [{low:.3g}, {high:.3g}]"


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
