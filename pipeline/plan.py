"""What a sweep has to do: runs found, partitions named by content, generations shared."""

import hashlib
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from urllib.parse import quote

from hackbait import environment as environments
from hackbait.environment import Arg, Environment, canonical
from hackbait.stage import Stage, staged
from pipeline import checkpoints, engines
from pipeline.checkpoints import Found
from pipeline.checkpoints.identity import architecture, can_be_asked, cheap_id
from pipeline.config import EnvironmentBlock, RunBlock, SweepConfig
from pipeline.files import NAME_BYTES
from pipeline.records import (
    Checkpoint,
    EnvironmentSpec,
    Partition,
    Sampling,
    Shard,
    Work,
)
from pipeline.skeleton import Skeletons

PARTITIONS = 1_000_000
"""One sweep holds at most so many: the plan stands in memory."""
ARGUMENT_CHARACTERS = 10_000
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


class PlanError(ValueError):
    """The sweep cannot be planned as asked; nothing was started."""


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: its checkpoints in order of step, and the facts environments refer to."""

    name: str
    checkpoints: tuple[Checkpoint, ...]
    tags: Mapping[str, Arg]


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


def find_runs(
    blocks: Sequence[RunBlock], cache: Path | None = None
) -> tuple[list[Run], list[Found]]:
    """Runs with a usable checkpoint, and the checkpoints that are none. PlanError without any.

    cache: where skeletons of runs on object stores are kept; default as for checkpoints.
    """
    skeletons = Skeletons(cache)
    with skeletons.told():
        return _find_runs(blocks, skeletons)


def _find_runs(blocks: Sequence[RunBlock], skeletons: Skeletons) -> tuple[list[Run], list[Found]]:
    runs: dict[str, Run] = {}
    skipped: list[Found] = []
    for block in blocks:
        found = skeletons.discover(block.path)
        found = [_with_template(f, skeletons.base(block.base or f.base)) for f in found]
        bad = [f for f in found if f.status != "ok"]
        good = [f for f in found if f.status == "ok"]
        skipped += bad
        if not good:
            raise PlanError(f"runs: no usable checkpoint under {block.path!r}; {_why(bad)}")
        names = list(dict.fromkeys(f.run for f in good))
        if block.name and len(names) > 1:
            raise PlanError(
                f"runs: path {block.path!r} holds {len(names)} runs, name {block.name!r} fits one; "
                "drop the name or point at one run"
            )
        for run in (_run(block, [f for f in good if f.run == n], skeletons) for n in names):
            if run.name in runs:
                raise PlanError(
                    f"runs: two runs are called {run.name!r} ({block.path}); give one a `name`"
                )
            runs[run.name] = run
    return list(runs.values()), skipped


def _with_template(found: Found, base: str | None) -> Found:
    """The checkpoint, skipped where neither it nor its base says how a chat is written."""
    mute = not can_be_asked(found.path) and (base is None or _is_mute(base))
    if found.status != "ok" or not mute:
        return found
    why = "no tokenizer with a chat template; give the `base` that has one"
    return replace(found, status="skipped", why=why)


def _is_mute(base: str) -> bool:
    return Path(base).is_dir() and not can_be_asked(base)


def _why(bad: Sequence[Found]) -> str:
    return f"step {bad[0].step} of {bad[0].run!r}: {bad[0].why}"


def _run(block: RunBlock, good: Sequence[Found], skeletons: Skeletons) -> Run:
    """The run of one block that `good`, its whole checkpoints, make."""
    name = block.name or good[0].run
    if name == HIVE_NULL:
        raise PlanError(f"runs: {name} is what a missing name is called; give the run a `name`")
    if not _is_text(name) or len(f"run={quote(name, safe='')}") > NAME_BYTES:
        raise PlanError(
            f"runs: the name {_short(name)} is no text that a folder can be called by; give the "
            f"run a `name` of at most {NAME_BYTES // 12} letters"
        )
    zero = _step_zero(block, name, good, skeletons)
    steps = [f.step for f in good] + [checkpoint.step for checkpoint in zero]
    wanted = set(checkpoints.select(block.steps, steps))
    chosen = zero + tuple(
        Checkpoint(
            run=name,
            step=f.step,
            path=skeletons.back(str(f.path)),
            kind=f.kind,
            cheap_id=cheap_id(f.path, skeletons.base(block.base or f.base)),
            base=block.base or f.base,
            architecture=architecture(f.path, skeletons.base(block.base or f.base)),
        )
        for f in sorted(good, key=lambda f: f.step)
        if f.step in wanted
    )
    return Run(name, chosen, {**checkpoints.tags(good[0].path), **block.tags})


def _step_zero(
    block: RunBlock, name: str, good: Sequence[Found], skeletons: Skeletons
) -> tuple[Checkpoint, ...]:
    """The base as step 0, where that step is asked for by number and no checkpoint is it."""
    base = block.base or good[0].base
    steps = [f.step for f in good]
    if base is None or 0 in steps or block.steps in ("all", "last"):
        return ()
    place = Path(skeletons.base(base) or base)
    if not any(place.glob("*.safetensors")) or 0 not in checkpoints.select(
        block.steps, [0, *steps]
    ):
        return ()
    return (Checkpoint(name, 0, base, "full", cheap_id(place), None, architecture(place)),)


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


def resolve(block: EnvironmentBlock, run: Run) -> tuple[tuple[str, Arg], ...]:
    """The block's arguments with `{tag}` replaced by the run's facts."""
    filled = [(name, _fill(name, value, run)) for name, value in sorted(block.args.items())]
    for name, value in filled:
        _check_argument(name, value)
    return tuple(filled)


def _check_argument(name: str, value: object) -> None:
    """PlanError for what no column of a row can hold."""
    text = isinstance(value, str) and _is_text(value) and len(value) <= ARGUMENT_CHARACTERS
    number = isinstance(value, float) and math.isfinite(value)
    whole = isinstance(value, int) and -(2**63) <= value < 2**63
    if not (text or number or whole):
        raise PlanError(
            f"env: {name} = {_short(value)} is no text, truth value or number of 64 bits"
        )


def _is_text(value: str) -> bool:
    """Whether UTF-8 can hold it: a lone surrogate is no character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: object) -> str:
    """A value as Python writes it, of at most 60 characters."""
    said = "..." if isinstance(value, int) and abs(value) >= 2**63 else repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."


def _fill(name: str, value: Arg, run: Run) -> Arg:
    if not isinstance(value, str) or "{" not in value:
        return value
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as error:
        raise PlanError(f"env: {name} = {_short(value)}: {error}; write {{tag}}") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise PlanError(f"env: {name} = {_short(value)}: write {{tag}}, without a format")
    fields = [field for _, field, _, _ in parts if field]
    missing = [field for field in fields if field not in run.tags]
    if missing:
        raise PlanError(
            f"env: {name} = {value!r} needs tag {missing[0]!r} of run {run.name!r}, which has "
            f"{sorted(run.tags) or 'none'}; write [runs.tags] {missing[0]} = ..."
        )
    alone = value == "{" + fields[0] + "}" if fields else False
    return run.tags[fields[0]] if alone else value.format_map(run.tags)


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
