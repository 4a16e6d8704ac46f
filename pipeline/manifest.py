"""What `OUT/compacted/manifest.json` says: which files hold the rows of which partitions. Pure."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

VERSION = 1


class Damaged(ValueError):
    """The text is no manifest; nothing may be concluded from it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One partition inside a compacted file."""

    key: str
    run: str
    step: int
    rows: int
    group: int
    """Row group that holds all of it."""
    offset: int
    """Its first row there."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """One large file, `OUT/compacted/ENV/NAME.parquet`."""

    environment: str
    """Folder name."""
    name: str
    bytes: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The compacted files whose rows count, each partition in one of them at most."""

    files: tuple[Compacted, ...] = ()

    @property
    def keys(self) -> set[str]:
        return {part.key for file in self.files for part in file.parts}

    def of(self, environment: str) -> "Manifest":
        return Manifest(tuple(file for file in self.files if file.environment == environment))

    def replacing(self, old: Iterable[Compacted], new: Compacted) -> "Manifest":
        kept = [file for file in self.files if file not in set(old)]
        return Manifest(tuple(sorted([*kept, new], key=lambda f: (f.environment, f.name))))


def name(keys: Iterable[str]) -> str:
    """Of the file that holds the partitions of these keys, in this order."""
    return hashlib.blake2b(" ".join(keys).encode(), digest_size=16).hexdigest()


def dump(manifest: Manifest) -> bytes:
    files = [
        {
            "environment": file.environment,
            "name": file.name,
            "bytes": file.bytes,
            "parts": [[p.key, p.run, p.step, p.rows, p.group, p.offset] for p in file.parts],
        }
        for file in manifest.files
    ]
    return json.dumps({"version": VERSION, "files": files}, indent=0).encode()


def parse(content: bytes) -> Manifest:
    """The manifest that `dump` wrote. Raises Damaged."""
    try:
        said = json.loads(content)
        if said["version"] != VERSION:
            raise Damaged(f"version {said['version']!r}, {VERSION} is read")
        found = Manifest(tuple(_file(file) for file in said["files"]))
    except (ArithmeticError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(f"no manifest of compacted files: {error}") from None
    if len(found.keys) < sum(len(file.parts) for file in found.files):
        raise Damaged("a manifest that names a partition twice")
    return found


def _file(said: Any) -> Compacted:
    environment, name = _word(said["environment"]), _word(said["name"])
    return Compacted(environment, name, int(said["bytes"]), tuple(map(_part, said["parts"])))


def _part(said: Any) -> Part:
    key, run, *numbers = said
    if not isinstance(run, str) or any(type(n) is not int or n < 0 for n in numbers):
        raise TypeError(f"{said!r} is no partition")
    step, rows, group, offset = numbers
    return Part(_word(key), run, step, rows, group, offset)


def _word(text: object) -> str:
    """Part of a file's name: it leads nowhere else."""
    if not isinstance(text, str) or not text or "/" in text or "\0" in text or text in (".", ".."):
        raise TypeError(f"{text!r} is no part of a file's name")
    return text
