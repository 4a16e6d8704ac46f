"""What a sweep has to do: partitions named by content, generations shared."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from hackbait import environment as environments
from hackbait.environment import Environment, canonical
from hackbait.stage import Stage, staged
from pipeline import engines
from pipeline.arguments import resolve
from pipeline.checkpoints import Found
from pipeline.config import EnvironmentBlock, SweepConfig
from pipeline.records import (
    Checkpoint,
    EnvironmentSpec,
    Partition,
    PlanError,
    Sampling,
    Shard,
    Work,
)
from pipeline.runs import Run, find_runs

PARTITIONS = 1_000_000
"""One sweep holds at most so many: the plan stands in memory."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a sweep would do, and what it had to leave out."""

    runs: tuple[Run, ...]
    works: tuple[Work, ...]
    skipped: tuple[Found, ...]
    """Checkpoints that are none, each with its reason."""
    notes: tuple[str, ...]
    """What environments want said of their arguments."""

    @property
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(partition for work in self.works for partition in work.partitions)

    def rollouts(self, works: Iterable[Work] | None = None) -> int:
        """Completions to generate; rollouts shared by several partitions count once."""
        chosen = self.works if works is None else works
        return sum((w.shard.stop - w.shard.start) * w.sampling.n for w in chosen)


@cache
def build(spec: EnvironmentSpec) -> Environment:
    """The environment of a spec, built once a process."""
    return staged(environments.load(spec.id, **dict(spec.args)), spec.stage)


def plan(config: SweepConfig) -> Plan:
    """Find the runs on disk and lay out the work. Raises PlanError before anything starts."""
    engines.check_options(config.engine.name, config.engine.options)
    sampling = config.sampling.record()
    engines.check_room(config.engine.name, config.engine.options, sampling)
    runs, skipped = find_runs(config.runs, config.cluster.cache)
    shards = cut(config.cases.count, config.cases.shard)
    engine = {"name": config.engine.name, "dtype": config.engine.dtype}
    works = lay_out(runs, config.env, shards, sampling, engine, config.judge.stage())
    notes = {
        note
        for work in works
        for partition in work.partitions
        for note in getattr(build(partition.environment), "notes", ())
    }
    return Plan(tuple(runs), tuple(works), tuple(skipped), tuple(sorted(notes)))


def cut(count: int, size: int) -> list[Shard]:
    """Cases [0, count) in shards of `size`; the last may be shorter. PlanError for too many."""
    if -(-count // size) > PARTITIONS:
        raise PlanError(
            f"cases: {count:,} in shards of {size:,} are more than {PARTITIONS:,} partitions a "
            "checkpoint; make `shard` larger"
        )
    return [Shard(start, min(start + size, count)) for start in range(0, count, size)]


def lay_out(
    runs: Sequence[Run],
    blocks: Sequence[EnvironmentBlock],
    shards: Sequence[Shard],
    sampling: Sampling,
    engine: Mapping[str, str],
    stage: Stage | None = None,
) -> list[Work]:
    """Partitions of every run and environment, those with equal rollouts in one Work.

    Ordered by checkpoint, so that a worker loads each one once.
    """
    many = len(blocks) * len(shards) * sum(len(run.checkpoints) for run in runs)
    if many > PARTITIONS:
        raise PlanError(
            f"{many:,} partitions are more than {PARTITIONS:,}; make cases.shard larger, or sweep "
            "fewer runs or steps at a time"
        )
    grouped: dict[tuple[object, ...], list[tuple[Checkpoint, Partition]]] = {}
    for run in runs:
        specs = [EnvironmentSpec(b.id, resolve(b, run), stage) for b in blocks]
        if len(set(specs)) < len(specs):
            raise PlanError(f"env: two blocks are the same for run {run.name!r}; drop one")
        _refuse_two_schemas(specs)
        for checkpoint in run.checkpoints:
            for spec in specs:
                asked = canonical([spec.id, build(spec).version, dict(build(spec).ask)])
                for shard in shards:
                    partition = name_partition(checkpoint, spec, shard, sampling, engine)
                    group = (checkpoint.cheap_id, checkpoint.base, asked, shard.start)
                    grouped.setdefault(group, []).append((checkpoint, partition))
    return [
        Work(
            checkpoint=members[0][0],
            environment=members[0][1].environment,
            shard=members[0][1].shard,
            sampling=sampling,
            partitions=tuple(partition for _, partition in members),
        )
        for members in grouped.values()
    ]


def _refuse_two_schemas(specs: Sequence[EnvironmentSpec]) -> None:
    """PlanError where blocks of one environment have other metrics: their rows are one table."""
    columns: dict[str, set[str]] = {}
    for spec in specs:
        metrics = set(build(spec).metrics)
        if differ := columns.setdefault(spec.id, metrics) ^ metrics:
            raise PlanError(
                f"env: blocks of {spec.id!r} differ in the metric {min(differ)!r}; has one a judge "
                "and the other none? Sweep them into two outputs"
            )


def name_partition(
    checkpoint: Checkpoint,
    spec: EnvironmentSpec,
    shard: Shard,
    sampling: Sampling,
    engine: Mapping[str, str],
) -> Partition:
    """The partition's identity, and the 32 hex digits of its hash that name its file."""
    environment = build(spec)
    identity = canonical(
        {
            "run": checkpoint.run,
            "step": checkpoint.step,
            "checkpoint": checkpoint.cheap_id,
            "env": environment.id,
            "env_version": environment.version,
            "ask": dict(environment.ask),
            "grade": dict(environment.grade),
            "grader_fingerprint": environment.fingerprint,
            "start": shard.start,
            "stop": shard.stop,
            "sampling": asdict(sampling),
            "engine": engine["name"],
            "dtype": engine["dtype"],
        }
    )
    return Partition(checkpoint.run, checkpoint.step, spec, shard, key_of(identity), identity)


def key_of(identity: str) -> str:
    """32 hex digits that name the partition of this canonical identity."""
    return hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def owed(works: Iterable[Work], done: set[str]) -> list[Work]:
    """Works with a partition whose key is not done, less the partitions that are."""
    left = []
    for work in works:
        partitions = tuple(p for p in work.partitions if p.key not in done)
        if partitions:
            left.append(
                Work(
                    work.checkpoint,
                    partitions[0].environment,
                    work.shard,
                    work.sampling,
                    partitions,
                )
            )
    return left
