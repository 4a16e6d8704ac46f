"""Files of an output that nobody planned, and planned ones that are not there."""

import tomllib
from collections.abc import Mapping

from pydantic import ValidationError

from hackbait.environment import EnvironmentRefused
from pipeline import compaction, contents, files, plan, standing, unjudged
from pipeline.checkpoints import LayoutError
from pipeline.config import SweepConfig
from pipeline.findings import Report, as_line
from pipeline.holdings import Holdings, StoreError, compacted_path, is_partition
from pipeline.places import Remote, Where
from pipeline.records import CheckpointError, PlanError


def gaps_and_orphans(out: Where, report: Report, found: Holdings) -> None:
    """Partitions that nobody planned, and planned ones without a file."""
    try:
        wanted, why = _plan_of(out)
        told = files.exists(out / "status" / "plan.json")
    except (StoreError, PlanError, LayoutError, CheckpointError, EnvironmentRefused, OSError) as e:
        wanted, why, told = None, as_line(e), False
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
    config = last_config(out)
    if config is None:
        return None, "no status/plan.json and no config.toml"
    if config.order.strategy == "adaptive":
        return None, "no status/plan.json, and an adaptive sweep wants what its rates say"
    return {p.key: (p.run, p.step) for p in plan.plan(config).partitions}, ""


def last_config(out: Where) -> SweepConfig | None:
    """What the last launch was configured with. StoreError where that was no sweep."""
    try:
        said = tomllib.loads(files.read_bytes(out / "config.toml").decode())
        if not _is_rejudge(said):
            return SweepConfig.model_validate(said)
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError) as error:
        raise StoreError(f"config.toml cannot be read: {as_line(error)[:200]}") from None
    raise StoreError(f"its rollouts were graded again; their sweep is in {said['path']}")


def _is_rejudge(said: Mapping[str, object]) -> bool:
    return "path" in said and "runs" not in said


def strange_files(out: Where, report: Report, found: Holdings) -> None:
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
        only = set(contents.compacted_footers(path)) - keys
    except StoreError as error:
        report.add("orphan", path, [as_line(error)])
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
