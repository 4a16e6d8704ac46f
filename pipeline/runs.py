"""Training runs as a sweep takes them: their whole checkpoints in order, and what is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from hackbait.environment import Arg
from pipeline import checkpoints
from pipeline.checkpoints import Found
from pipeline.checkpoints.identity import architecture, can_be_asked, cheap_id
from pipeline.config import RunBlock
from pipeline.files import NAME_BYTES
from pipeline.printable import is_text, short
from pipeline.records import Checkpoint, PlanError
from pipeline.skeleton import Skeletons

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: its checkpoints in order of step, and the facts environments refer to."""

    name: str
    checkpoints: tuple[Checkpoint, ...]
    tags: Mapping[str, Arg]


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
    if not is_text(name) or len(f"run={quote(name, safe='')}") > NAME_BYTES:
        raise PlanError(
            f"runs: the name {short(name)} is no text that a folder can be called by; give the "
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
