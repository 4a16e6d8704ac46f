"""What partitions say of each other: one sweep, one policy a checkpoint, each case once."""

from collections.abc import Sequence
from itertools import pairwise

from hackbait.environment import canonical
from pipeline import engines
from pipeline.engines import EngineError
from pipeline.findings import Report, Seen
from pipeline.soundness import Identity


def together(report: Report, seen: Sequence[Seen]) -> None:
    """What partitions say of each other: one sweep, one policy a checkpoint, each case once."""
    settings: dict[str, str] = {}
    weights: dict[tuple[str, int], Seen] = {}
    taken: dict[str, list[Seen]] = {}
    for one in seen:
        said, where = one.identity, one.held.at
        for name, value in {**_common(said), **_options(one)}.items():
            other = settings.setdefault(name, value)
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


def _options(one: Seen) -> dict[str, str]:
    """Its engine's options that changed its rows, one of them or, by a null reason, some."""
    name = one.identity["engine"]
    try:
        reasons = engines.changing(name)
    except EngineError:  # somebody's own, which is not here
        reasons = {}
    return {
        f"engine.{option} of {name}": canonical(value)
        for option, value in one.options.items()
        if (reason := reasons.get(option)) is None or reason in one.reasons
    }


def _doubles(report: Report, same: Sequence[Seen]) -> None:
    ordered = sorted(same, key=lambda one: one.cases)
    for before, after in pairwise(ordered):
        if after.identity["start"] < before.identity["stop"]:
            what = f"cases [{after.identity['start']}, ...) are in {before.held.at} too"
            report.add("double", after.held.at, [what])
