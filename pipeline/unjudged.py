"""Rollouts whose judge did not answer, kept so that the next launch has them judged, not drawn.

They are no rows yet: they lie in OUT/staging/unjudged, where no reader of rollouts looks, a file a
generation, named by all that decides its rollouts. The grade is left out of that: another judge may
take them over. A file appears whole or not at all, and goes once its rows are there.
"""

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

from hackbait.environment import Case, canonical
from pipeline import files
from pipeline.judging import panel_of
from pipeline.places import Where
from pipeline.plan import build, key_of
from pipeline.records import Completion, Generated, Rollout, Span, Work
from pipeline.rollout import sampling_seeds

FOLDER, SUFFIX = "unjudged", ".json.gz"
OF_THE_ROWS = {"run", "step", "grade", "grader_fingerprint"}
"""What of a partition's identity decides no rollout."""
SAID = ("fingerprint", "determinism", "tokens", "engine_process")
GONE = (FileNotFoundError, gzip.BadGzipFile, EOFError, zlib.error)
DAMAGED = (KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Kept:
    """One generation, and what it was drawn with."""

    record: Generated
    rollouts: list[Rollout]
    made: Mapping[str, Any]
    """What of a footer tells how they were drawn: versions, and options that change rows."""


def name(work: Work) -> str:
    """32 hex digits of what decides the rollouts of a work."""
    said = json.loads(work.partitions[0].identity)
    return key_of(canonical({k: v for k, v in said.items() if k not in OF_THE_ROWS}))


def keep(out: Where, work: Work, kept: Kept) -> None:
    record = kept.record
    told = {
        **{field: getattr(record, field) for field in SAID},
        "made": dict(kept.made),
        "rollouts": [asdict(rollout) for rollout in kept.rollouts],
    }
    content = gzip.compress(json.dumps(told).encode(), compresslevel=1)
    files.put(content, _place(out, name(work)), out / "staging")


def names(out: Where) -> set[str]:
    """What is kept, by name."""
    folder = out / "staging" / FOLDER
    if isinstance(folder, Path):
        found = [path.name for path in folder.glob(f"*{SUFFIX}")]
    else:
        found = [one.at.name for one in files.below(folder)]
    return {one.removesuffix(SUFFIX) for one in found}


def apart(out: Where, works: Sequence[Work]) -> tuple[list[Work], list[Work]]:
    """Works whose rollouts are kept here, and the others. Nothing is looked for without a judge."""
    judged = any(panel_of(build(p.environment)) for work in works for p in work.partitions)
    there = names(out) if judged else set()
    drawn = [bool(there) and name(work) in there for work in works]
    return [*compress(works, drawn)], [*compress(works, map(not_, drawn))]


def kept(out: Where, work: Work, cases: Sequence[Case], now: float) -> Kept | None:
    """What was kept of a work; None where that is gone, damaged, or of other prompts or seeds.

    now: seconds since the epoch, at which it counts as generated.
    """
    try:
        told = json.loads(gzip.decompress(files.read_bytes(_place(out, name(work)))))
        rollouts = [_rollout(one) for one in told["rollouts"]]
        own = {field: told[field] for field in SAID}
        record = Generated(**own, loading=Span(now, now), generating=Span(now, now))
        found = Kept(record, rollouts, dict(told["made"]))
    except (*GONE, *DAMAGED):
        return None
    seeds = zip(cases, sampling_seeds(cases, work.sampling), strict=True)
    due = [(case.index, i, seed) for case, own in seeds for i, seed in enumerate(own)]
    return found if [(one.index, one.sample, one.seed) for one in rollouts] == due else None


def drop(out: Where, work: Work) -> None:
    """It need not be there."""
    files.delete(_place(out, name(work)))


def clear(out: Where) -> None:
    """Everything goes: nothing is owed any more."""
    for one in names(out):
        files.delete(_place(out, one))
    with suppress(OSError):
        if isinstance(out, Path):
            (out / "staging" / FOLDER).rmdir()


def _place(out: Where, name: str) -> Where:
    return out / "staging" / FOLDER / f"{name}{SUFFIX}"


def _rollout(told: dict[str, Any]) -> Rollout:
    return Rollout(**{**told, "completion": Completion(**told["completion"])})
