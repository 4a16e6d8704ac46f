"""Whether an output holds what its footers and plan say: every file is read, nothing is trusted."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hackbait.environment import Case, Environment, EnvironmentRefused
from hackbait.stage import unmarked, unstaged
from pipeline import compaction, contents, files, plan, soundness
from pipeline.cache import Near
from pipeline.checkpoints import LayoutError
from pipeline.consistency import together
from pipeline.findings import Report, Seen, as_line
from pipeline.holdings import LOOKS, Held, StoreError, holdings
from pipeline.judging import panel_of
from pipeline.places import Where
from pipeline.records import CheckpointError, EnvironmentSpec, PlanError
from pipeline.rereading import fingerprint
from pipeline.runs import find_runs
from pipeline.soundness import Identity, Sample
from pipeline.strays import gaps_and_orphans, last_config, strange_files

SHARDS = 64
"""Shards of cases that are kept, for the next checkpoint."""


def verify(out: Where, *, sample: int = 1000, deep: bool = False) -> Report:
    """Read all of an output. StoreError where there is none, or its manifest is damaged."""
    report, drawn = Report(), Sample(sample)
    found = holdings(out)
    if not found.held and not files.exists(out / "config.toml"):
        raise StoreError(f"{out}: no partition and no config.toml; is this a sweep's output?")
    seen = read_all(out, found.held, report, drawn)
    _grades(report, drawn, {one.held.key: one for one in seen})
    together(report, seen)
    gaps_and_orphans(out, report, found)
    strange_files(out, report, found)
    if deep:
        _deep(out, report, seen)
    return report


def read_all(out: Where, held: Sequence[Held], report: Report, drawn: Sample) -> list[Seen]:
    """Every partition; what a compaction moves meanwhile is read where it lies then."""
    seen: list[Seen] = []
    for _ in range(LOOKS):
        gone: list[Held] = []
        for path, own in compaction.by_file(held).items():
            try:
                seen += _file(path, own, report, drawn)
            except FileNotFoundError:
                gone += own
            except (StoreError, OSError) as error:
                report.add("damage", path, [as_line(error)])
        keys = {one.key for one in gone}
        held = [one for one in holdings(out).held if one.key in keys] if gone else []
    for path in compaction.by_file(held):
        report.add("damage", path, ["it is not there"])
    return seen


def _file(path: Where, held: Sequence[Held], report: Report, drawn: Sample) -> Iterator[Seen]:
    for one, rows, record in contents.each(held):
        where = path if one.part is None else f"{path} ({one.key})"
        said, wrong = soundness.identity_of(one, record)
        report.add("rows", where, wrong)
        report.partitions += 1
        report.rows += len(rows)
        if said is None:
            continue
        wrong = list(soundness.of_rows(rows, record, said))
        report.add("rows", where, wrong)
        if any(what.startswith("columns are missing") for what in wrong):
            continue
        cases, why = _asked(said)
        report.add("note", where, [why] if why else [])
        report.add("rows", where, soundness.of_cases(rows, said, cases))
        drawn.offer(one.key, rows, [*record["metrics"], "reward"])
        weights, reasons = (
            rows[name].unique().to_pylist() for name in ("fingerprint", "null_reason")
        )
        options = record.get("options", {})
        yield Seen(one, said, tuple(weights), options, frozenset(reasons) - {None})


def _asked(said: Identity) -> tuple[Sequence[Case], str]:
    """Cases of a partition; none, and why, where they cannot be made here."""
    try:
        environment = _environment(said)
    except EnvironmentRefused as error:
        return [], f"its cases cannot be made here: {as_line(error)}"
    if environment.version != said["env_version"] or dict(environment.ask) != said["ask"]:
        return [], f"it was asked by version {said['env_version']}, here is {environment.version}"
    return _cases(environment.id, _args(said), said["start"], said["stop"]), ""


def _args(said: Identity) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted({**said["ask"], **unstaged(said["grade"])}.items()))


def _environment(said: Identity) -> Environment:
    return plan.build(EnvironmentSpec(said["env"], _args(said)))


@lru_cache(SHARDS)
def _cases(id: str, args: tuple[tuple[str, Any], ...], start: int, stop: int) -> list[Case]:
    return plan.build(EnvironmentSpec(id, args)).cases(start, stop)


def _grades(report: Report, drawn: Sample, seen: Mapping[str, Seen]) -> None:
    """Grade the drawn rows again, where the graders are the ones that graded them."""
    judged: dict[str, Where] = {}
    for _, key, number, row in sorted(drawn.rows, key=lambda row: row[1:3]):
        if key not in seen or row["index"] not in range(*seen[key].cases):
            continue
        said, where = seen[key].identity, f"{seen[key].held.at} ({key}) row {number}"
        cases, why = _asked(said)
        if why:
            continue
        environment = _environment(said)
        if panel_of(environment) is not None:
            judged[key] = seen[key].held.at
            continue
        graders, labelled = unmarked(said["grader_fingerprint"])
        if labelled:
            judged[key] = seen[key].held.at
        if environment.fingerprint != graders:
            report.add("note", seen[key].held.at, ["its graders are not the ones here"])
            continue
        wrong = soundness.misgraded(environment, {case.index: case for case in cases}, row)
        report.graded += 1
        report.add("grade", where, [wrong] if wrong else [])
    for at in judged.values():
        report.add("note", at, ["what a judge said of it is not asked again"])


def _deep(out: Where, report: Report, seen: Sequence[Seen]) -> None:
    """Compare fingerprints with the bytes of the checkpoints that are still where they were."""
    said = {(one.identity["run"], one.identity["step"]): one for one in seen}
    try:
        config = last_config(out)
        runs = find_runs(config.runs, config.cluster.cache)[0] if config else []
    except (StoreError, PlanError, LayoutError, CheckpointError, OSError) as error:
        report.add("note", out, [f"its checkpoints are not found: {as_line(error)}"])
        return
    there = {(c.run, c.step): c for run in runs for c in run.checkpoints}
    for place, one in said.items():
        where = f"run {place[0]!r} step {place[1]}"
        if place not in there or config is None:
            what = "not among the checkpoints that config.toml's runs have now; not read again"
            report.add("note", where, [what])
            continue
        near = Near(config.cluster.cache, config.cluster.cache_size)
        try:
            now = fingerprint(near.bring(there[place]))
        except (CheckpointError, OSError) as error:
            report.add("note", where, [f"its checkpoint cannot be read: {as_line(error)}"])
            continue
        report.checkpoints += 1
        if one.fingerprints != (now,):
            report.add("weights", where, ["other weights lie there than those that answered"])
