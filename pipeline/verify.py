"""Whether an output holds what its footers and plan say: every file is read, nothing is trusted."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from hackbait.environment import Case, Environment, EnvironmentRefused, canonical
from hackbait.stage import unstaged
from pipeline import compaction, files, plan, soundness, standing, store, unjudged
from pipeline.cache import Near
from pipeline.checkpoints import LayoutError
from pipeline.config import SweepConfig
from pipeline.holdings import (
    LOOKS,
    Held,
    Holdings,
    StoreError,
    compacted_path,
    holdings,
    is_partition,
)
from pipeline.judging import panel_of
from pipeline.places import Remote, Where
from pipeline.plan import PlanError
from pipeline.records import CheckpointError, EnvironmentSpec
from pipeline.rereading import fingerprint
from pipeline.soundness import Identity, Sample

SHARDS = 64
"""Shards of cases that are kept, for the next checkpoint."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    kind: str
    """damage, rows, mixture, double, orphan, gap, grade, weights; harmless: left-over, note."""
    where: str
    what: str

    @property
    def is_wrong(self) -> bool:
        return self.kind not in ("left-over", "note")


@dataclass(slots=True)
class Report:
    """What was read, and what was found."""

    partitions: int = 0
    rows: int = 0
    graded: int = 0
    checkpoints: int = 0
    """Whose bytes were read again."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not any(finding.is_wrong for finding in self.findings)

    def add(self, kind: str, where: object, whats: Iterable[str]) -> None:
        self.findings += [Finding(kind, str(where), what) for what in whats]


@dataclass(frozen=True, slots=True)
class Seen:
    """One partition whose identity could be read."""

    held: Held
    identity: Identity
    fingerprints: tuple[str, ...]
    """Of its rows: one where it is sound."""


def verify(out: Where, *, sample: int = 1000, deep: bool = False) -> Report:
    """Read all of an output. StoreError where there is none, or its manifest is damaged."""
    report, drawn = Report(), Sample(sample)
    found = holdings(out)
    if not found.held and not files.exists(out / "config.toml"):
        raise StoreError(f"{out}: no partition and no config.toml; is this a sweep's output?")
    seen = read_all(out, found.held, report, drawn)
    _grades(report, drawn, {one.held.key: one for one in seen})
    together(report, seen)
    _planned(out, report, found)
    _files(out, report, found)
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
                report.add("damage", path, [_said(error)])
        keys = {one.key for one in gone}
        held = [one for one in holdings(out).held if one.key in keys] if gone else []
    for path in compaction.by_file(held):
        report.add("damage", path, ["it is not there"])
    return seen


def _said(error: Exception) -> str:
    return " ".join(str(error).split())


def _file(path: Where, held: Sequence[Held], report: Report, drawn: Sample) -> Iterator[Seen]:
    for one, rows, record in store.contents(held):
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
        yield Seen(one, said, tuple(rows["fingerprint"].unique().to_pylist()))


def _asked(said: Identity) -> tuple[Sequence[Case], str]:
    """Cases of a partition; none, and why, where they cannot be made here."""
    try:
        environment = _environment(said)
    except EnvironmentRefused as error:
        return [], f"its cases cannot be made here: {_said(error)}"
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
        if key not in seen or row["index"] not in range(*_range(seen[key].identity)):
            continue
        said, where = seen[key].identity, f"{seen[key].held.at} ({key}) row {number}"
        cases, why = _asked(said)
        if why:
            continue
        environment = _environment(said)
        if panel_of(environment) is not None:
            judged[key] = seen[key].held.at
            continue
        if environment.fingerprint != said["grader_fingerprint"]:
            report.add("note", seen[key].held.at, ["its graders are not the ones here"])
            continue
        wrong = soundness.misgraded(environment, {case.index: case for case in cases}, row)
        report.graded += 1
        report.add("grade", where, [wrong] if wrong else [])
    for at in judged.values():
        report.add("note", at, ["a judge graded it; its scores are not made again"])


def _range(said: Identity) -> tuple[int, int]:
    return said["start"], said["stop"]


def together(report: Report, seen: Sequence[Seen]) -> None:
    """What partitions say of each other: one sweep, one policy a checkpoint, each case once."""
    settings: dict[str, Seen] = {}
    weights: dict[tuple[str, int], Seen] = {}
    taken: dict[str, list[Seen]] = {}
    for one in seen:
        said, where = one.identity, one.held.at
        for name, value in _common(said).items():
            first = settings.setdefault(name, one)
            other = _common(first.identity)[name]
            if other != value:
                what = f"{name.partition(' ')[0]} is {value}, elsewhere {other}"
                report.add("mixture", where, [what])
        policy = weights.setdefault((said["run"], said["step"]), one)
        if policy.identity["checkpoint"] != said["checkpoint"]:
            report.add("mixture", where, ["planned of other bytes than its checkpoint's others"])
        if policy.fingerprints != one.fingerprints:
            report.add("weights", where, [f"its fingerprint differs from that in {policy.held.at}"])
        group = {name: value for name, value in said.items() if name not in ("start", "stop")}
        taken.setdefault(canonical(group), []).append(one)
    for group_of in taken.values():
        _doubles(report, group_of)


def _common(said: Identity) -> dict[str, str]:
    """What all of an output has in common, and what all of one environment has."""
    graded = canonical([said["env"], said["ask"], said["grade"]])
    return {
        "sampling": canonical(said["sampling"]),
        "engine": said["engine"],
        "dtype": said["dtype"],
        f"env_version {said['env']}": said["env_version"],
        f"grader_fingerprint {graded}": said["grader_fingerprint"],
    }


def _doubles(report: Report, same: Sequence[Seen]) -> None:
    ordered = sorted(same, key=lambda one: _range(one.identity))
    for before, after in pairwise(ordered):
        if after.identity["start"] < before.identity["stop"]:
            what = f"cases [{after.identity['start']}, ...) are in {before.held.at} too"
            report.add("double", after.held.at, [what])


def _planned(out: Where, report: Report, found: Holdings) -> None:
    """Partitions that nobody planned, and planned ones without a file."""
    try:
        wanted, why = _plan_of(out)
        told = files.exists(out / "status" / "plan.json")
    except (StoreError, PlanError, LayoutError, CheckpointError, EnvironmentRefused, OSError) as e:
        wanted, why, told = None, _said(e), False
    if wanted is None:
        report.add("note", out, [f"gaps and orphans are not known, there is no plan: {why}"])
        return
    there = {held.key: held for held in found.held}
    for key in sorted(there.keys() - wanted.keys()):
        # Without the plans of all launches, config.toml tells what the last one wanted.
        kind = "orphan" if told else "note"
        report.add(kind, there[key].at, [f"partition {key} is in no plan"])
    for key in sorted(wanted.keys() - there.keys()):
        run, step = wanted[key]
        report.add("gap", out, [f"partition {key} of run {run!r} step {step} is not there"])


def _plan_of(out: Where) -> tuple[dict[str, tuple[str, int]] | None, str]:
    """Run and step by key, as the last launches planned them, or as config.toml would now."""
    said, _ = standing.read(out)
    if said is not None:
        return {one.key: (one.run, one.step) for one in said.partitions}, ""
    config = _config(out)
    if config is None:
        return None, "no status/plan.json and no config.toml"
    if config.order.strategy == "adaptive":
        return None, "no status/plan.json, and an adaptive sweep wants what its rates say"
    return {p.key: (p.run, p.step) for p in plan.plan(config).partitions}, ""


def _config(out: Where) -> SweepConfig | None:
    """What the last launch was configured with. StoreError where it cannot be read."""
    try:
        return SweepConfig.model_validate(
            tomllib.loads(files.read_bytes(out / "config.toml").decode())
        )
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError) as error:
        raise StoreError(f"config.toml cannot be read: {_said(error)[:200]}") from None


def _files(out: Where, report: Report, found: Holdings) -> None:
    """Files that are none of an output's."""
    known = {*found.partitions, *found.superseded}
    for path in _below(out / "rollouts"):
        if path not in known:
            wrong = "a partition since verify began" if _is_named(out, path) else "no partition"
            report.add("note" if _is_named(out, path) else "orphan", path, [wrong])
    moved = ["its rows count from a compacted file; the next compact deletes it"]
    for path in found.superseded:
        report.add("left-over", path, moved)
    named, keys = {compacted_path(out, f) for f in found.manifest.files}, found.manifest.keys
    for path in compaction.compacted_files(out):
        if path not in named:
            _stale(report, path, keys | {held.key for held in found.held})
    for path in _below(out / "staging"):
        if path.parent.name == unjudged.FOLDER:
            report.add("left-over", path, ["rollouts without their judge; the next sweep has them"])
        elif path.name != "lock" and path.parent.name != "leases":
            report.add("left-over", path, ["unfinished; the next sweep or compact deletes it"])


def _is_named(out: Where, path: Where) -> bool:
    return is_partition(path.parts[len((out / "rollouts").parts) :])


def _stale(report: Report, path: Where, keys: set[str]) -> None:
    try:
        only = set(store.compacted_footers(path)) - keys
    except StoreError as error:
        report.add("orphan", path, [_said(error)])
        return
    if only:
        report.add("orphan", path, [f"in no manifest, yet {len(only)} partitions are only there"])
    else:
        report.add("left-over", path, ["in no manifest; the next compact deletes it"])


def _below(folder: Where) -> list[Where]:
    """Every file under a folder."""
    if isinstance(folder, Remote):
        return [found.at for found in files.below(folder)]
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def _deep(out: Where, report: Report, seen: Sequence[Seen]) -> None:
    """Compare fingerprints with the bytes of the checkpoints that are still where they were."""
    said = {(one.identity["run"], one.identity["step"]): one for one in seen}
    try:
        config = _config(out)
        runs = plan.find_runs(config.runs, config.cluster.cache)[0] if config else []
    except (StoreError, PlanError, LayoutError, CheckpointError, OSError) as error:
        report.add("note", out, [f"its checkpoints are not found: {_said(error)}"])
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
            report.add("note", where, [f"its checkpoint cannot be read: {_said(error)}"])
            continue
        report.checkpoints += 1
        if one.fingerprints != (now,):
            report.add("weights", where, ["other weights lie there than those that answered"])


def as_records(report: Report) -> list[dict[str, Any]]:
    """For JSON: one record."""
    findings = [
        {"kind": f.kind, "wrong": f.is_wrong, "where": f.where, "what": f.what}
        for f in report.findings
    ]
    counts = {
        "partitions": report.partitions,
        "rows": report.rows,
        "graded": report.graded,
        "checkpoints": report.checkpoints,
    }
    return [{"sound": report.is_sound, **counts, "findings": findings}]
