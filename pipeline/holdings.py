"""What an output holds: every committed partition once, wherever its rows lie.

They lie in a file of their own, or in a compacted file that the manifest names; then a file of
their own, if one is still there, does not count.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from pipeline import files, manifest
from pipeline.manifest import Compacted, Manifest, Part
from pipeline.places import Where

T = TypeVar("T")

LOOKS = 4
PARTITION = re.compile(r"(?P<env>[^/]+)/run=(?P<run>[^/]+)/step=(?P<step>\d+)/(?P<key>[^/]+)")


class StoreError(ValueError):
    """The output folder cannot be used as asked."""


@dataclass(frozen=True, slots=True)
class Held:
    """One committed partition."""

    environment: str
    """Folder name."""
    run: str
    step: int
    key: str
    """As the name of its file, or the manifest, has it."""
    at: Where
    part: Part | None = None
    """Where in a compacted file; None where the file is the partition's own."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Files at one moment; each row counts once over `partitions` and `manifest`."""

    out: Where
    partitions: tuple[Where, ...]
    """Partition files whose rows count, sorted."""
    superseded: tuple[Where, ...]
    """Partition files whose rows count from a compacted file instead."""
    manifest: Manifest

    @property
    def files(self) -> list[Where]:
        """Every file whose rows count."""
        compacted = [compacted_path(self.out, file) for file in self.manifest.files]
        return [*self.partitions, *compacted]

    @property
    def held(self) -> list[Held]:
        """The partitions, in order of environment, run, step and key."""
        alone = [of_path(path) for path in self.partitions]
        parts = [
            Held(f.environment, p.run, p.step, p.key, compacted_path(self.out, f), p)
            for f in self.manifest.files
            for p in f.parts
        ]
        return sorted([*alone, *parts], key=lambda h: (h.environment, h.run, h.step, h.key))


def folder_of(environment: str) -> str:
    """Name of an environment's folder."""
    return quote(environment, safe="")


def path_of(out: Where, environment: str, run: str, step: int, key: str) -> Where:
    """A partition's own file; `environment` is the folder's name."""
    run = f"run={quote(run, safe='')}"
    return out / "rollouts" / environment / run / f"step={step}" / f"{key}.parquet"


def compacted_path(out: Where, file: Compacted) -> Where:
    return out / "compacted" / file.environment / f"{file.name}.parquet"


def of_path(path: Where) -> Held:
    """The partition that a listed path names."""
    environment, run, step, name = path.parts[-4:]
    run, number = unquote(run.removeprefix("run=")), int(step.removeprefix("step="))
    return Held(environment, run, number, name.removesuffix(".parquet"), path)


def holdings(out: Where, environment: str = "*") -> Holdings:
    """Files of the output, or of one environment's folder. StoreError for a damaged manifest.

    The folders are listed before the manifest is read: a compaction names a partition there before
    it deletes its file, so that what a listing misses the manifest has.
    """
    listed = _listed(out, environment)
    said = read_manifest(out)
    if environment != "*":
        said = said.of(environment)
    keys = said.keys
    moved = tuple(path for path in listed if path.name.removesuffix(".parquet") in keys)
    counts = tuple(path for path in listed if path not in set(moved)) if moved else tuple(listed)
    return Holdings(out, counts, moved, said)


def read_manifest(out: Where) -> Manifest:
    """Empty where nothing was compacted. StoreError where it is damaged."""
    try:
        return manifest.parse(files.read_bytes(out / "compacted" / "manifest.json"))
    except (FileNotFoundError, NotADirectoryError):
        return Manifest()
    except manifest.Damaged as error:
        raise StoreError(
            f"{out / 'compacted' / 'manifest.json'}: {error}; put back the one that was there"
        ) from None


def settled(look: Callable[[], T]) -> T:
    """What `look` says, which lists an output and reads it.

    It looks again where a compaction deleted a file in between: what lay there lies elsewhere now.
    """
    for _ in range(LOOKS - 1):
        with suppress(FileNotFoundError):
            return look()
    return look()


def _listed(out: Where, environment: str) -> Sequence[Where]:
    rollouts = out / "rollouts"
    depth = len(rollouts.parts)
    if isinstance(rollouts, Path):
        found = sorted(rollouts.glob(f"{environment}/run=*/step=*/*.parquet"))
        return [path for path in found if is_partition(path.parts[depth:])]
    folder = rollouts if environment == "*" else rollouts / environment
    return [o.at for o in files.below(folder) if is_partition(o.at.parts[depth:])]


def is_partition(parts: Sequence[str]) -> bool:
    """Whether a path below `rollouts` is ENV/run=/step=/KEY.parquet."""
    return bool(PARTITION.fullmatch("/".join(parts))) and parts[-1].endswith(".parquet")
