"""An output holds one sweep: another on the same folder is refused, by the fields it changes."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline import engines, store
from pipeline.config import EngineBlock, SweepConfig
from pipeline.config.kinds import spelled
from pipeline.places import Where
from pipeline.plan import Plan
from pipeline.records import PlanError

IN_COMMON = ("sampling", "engine", "dtype")
"""What all partitions of an output have alike."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any], under: str = "") -> list[str]:
    """Fields in which two identities differ, as `field: old -> new` lines."""
    lines: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name), new.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            lines += differences(a, b, f"{under}{name}.")
        elif a != b:
            lines.append(f"{under}{name}: {a!r} -> {b!r}")
    return lines


def refuse_other_sweep(config: SweepConfig, plan: Plan) -> None:
    """PlanError when the output holds rows that this sweep would not have written."""
    refuse_mixture(plan, store.foreign(config.output, plan.partitions))
    before = store.configured(config.output).get("engine")
    changed = other_options(config.engine, before, config.retry)
    if changed and store.row_files(config.output):
        raise PlanError(
            f"output holds rows that were made with other options ({config.output}/config.toml): "
            f"{'; '.join(changed)}; go back to what it was, or use another output"
        )


def other_options(engine: EngineBlock, before: object, retried: Collection[str]) -> list[str]:
    """Options that change rows and differ from what another launch said, as `name: old -> new`.

    before: its [engine], or None. One that changes rows of a null reason alone may differ where
    these are made again. Another engine is another matter: its name is in the identity.
    """
    if not isinstance(before, Mapping) or before.get("name") != engine.name:
        return []
    old, new = _of_rows(engine.name, before), options_of_rows(engine)
    changed = []
    for option, reason in engines.changing(engine.name).items():
        if old[option] != new[option] and reason not in retried:
            again = f" (or --retry {reason}, which asks those again)" if reason else ""
            changed.append(f"engine.{option}: {old[option]!r} -> {new[option]!r}{again}")
    return changed


def options_of_rows(engine: EngineBlock) -> dict[str, Any]:
    """What the engine's options that change rows are set to, as every footer tells them."""
    return _of_rows(engine.name, engine.options)


def _of_rows(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    return engines.of_rows(name, spelled(said, engines.builder(name)))


def refuse_mixture(plan: Plan, present: Mapping[Where, Mapping[str, Any]]) -> None:
    """PlanError when the output holds partitions of these checkpoints under another identity.

    Or of others that were drawn otherwise. present: see `store.foreign`.
    """
    planned: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for partition in plan.partitions:
        identity = json.loads(partition.identity)
        planned.setdefault((identity["env"], identity["run"], identity["step"]), []).append(
            identity
        )
    for path, old in present.items():
        rivals = planned.get((old["env"], old["run"], old["step"]))
        one_of_all = next(iter(planned.values()))
        if not rivals and any(old[name] != one_of_all[0][name] for name in IN_COMMON):
            rivals = [{**old, **{name: one_of_all[0][name] for name in IN_COMMON}}]
        if rivals:
            raise PlanError(
                f"output holds rows of another sweep (run {old['run']!r}, step {old['step']}, "
                f"{path.name}): {'; '.join(_changed(old, rivals))}; go back to "
                "what it was, or use another output"
            )


def _changed(old: Mapping[str, Any], rivals: Sequence[Mapping[str, Any]]) -> list[str]:
    """What tells an identity from the nearest of its rivals, by the names of the configuration."""
    cuts = [(new["start"], new["stop"]) for new in rivals]
    here = old["start"], old["stop"]
    count, shard = max(stop for _, stop in cuts), max(stop - start for start, stop in cuts)
    recut = (
        f"cases.count or cases.shard: a partition of cases [{here[0]}, {here[1]}) is there, and "
        f"{count} in shards of {shard} have none such"
    )
    settings = _configured(old)
    named = [
        [*differences(settings, _configured(new)), *([recut] if here != cut else [])]
        for new, cut in zip(rivals, cuts, strict=True)
    ]
    return min(named, key=len)


def _configured(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity by the names that a configuration has for its parts; its cases are left out."""
    renamed = ("env", "ask", "grade", "engine", "dtype", "checkpoint", "start", "stop")
    return {
        **{name: value for name, value in identity.items() if name not in renamed},
        "env": {**identity["ask"], **identity["grade"]},
        "engine": {"name": identity["engine"], "dtype": identity["dtype"]},
        "bytes of the checkpoint or its base": identity["checkpoint"],
    }
