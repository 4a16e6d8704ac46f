"""Generations that are under way, and those of their rollouts that are there: pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pipeline.losses import name
from pipeline.records import Generated, Work


@dataclass(slots=True)
class Generation:
    """A work that is not written yet; its rollouts may come in parts."""

    work: Work
    owed: int
    """Rollouts that are not there yet."""
    parts: dict[int, Any] = field(default_factory=dict)
    """References to rollouts, by the number of the first."""
    records: list[Generated] = field(default_factory=list)

    @property
    def rollouts(self) -> list[Any]:
        """References in order."""
        return [self.parts[start] for start in sorted(self.parts)]

    @property
    def fault(self) -> str | None:
        """Why it must not be written, if so."""
        fingerprints = {record.fingerprint for record in self.records}
        if not fingerprints:
            return "every one of its rollouts ends the engine"
        return "its weights were replaced while it was swept" if len(fingerprints) > 1 else None


class Generations:
    """Those that are owed, by name."""

    def __init__(self, works: Iterable[Work] = ()) -> None:
        self._owed: dict[str, Generation] = {}
        for work in works:
            self.open(work)

    def __contains__(self, work: Work) -> bool:
        return name(work) in self._owed

    def open(self, work: Work) -> None:
        """All of its rollouts are owed, whatever was there."""
        self._owed[name(work)] = Generation(work, len(work.every_row))

    def close(self, work: Work) -> bool:
        """It is owed no more; whether it was."""
        return self._owed.pop(name(work), None) is not None

    def add(self, work: Work, rollouts: Any, record: Generated | None) -> Generation | None:
        """Rollouts of all or a part of a work; the generation, once nothing of it is owed.

        record: what the engine said of them, None for rollouts that no engine would give.
        """
        generation = self._owed.get(name(work))
        if generation is None:
            return None
        rows = work.every_row if work.rows is None else work.rows
        generation.parts[rows.start] = rollouts
        generation.owed -= len(rows)
        generation.records += [record] if record else []
        return None if generation.owed else generation
