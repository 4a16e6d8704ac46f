"""What `verify` read of an output, and what it found there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.holdings import Held
from pipeline.soundness import Identity


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    kind: str
    """damage, rows, mixture, double, orphan, gap, grade, weights; harmless: left-over, note."""
    where: str
    what: str

    @property
    def is_wrong(self) -> bool:
        return self.kind not in ("left-over", "note")


@dataclass(slots=True)
class Report:
    """What was read, and what was found."""

    partitions: int = 0
    rows: int = 0
    graded: int = 0
    checkpoints: int = 0
    """Whose bytes were read again."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not any(finding.is_wrong for finding in self.findings)

    def add(self, kind: str, where: object, whats: Iterable[str]) -> None:
        self.findings += [Finding(kind, str(where), what) for what in whats]


@dataclass(frozen=True, slots=True)
class Seen:
    """One partition whose identity could be read."""

    held: Held
    identity: Identity
    fingerprints: tuple[str, ...]
    """Of its rows: one where it is sound."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of its engine, those that change rows."""
    reasons: frozenset[str] = frozenset()
    """Of its nulls."""

    @property
    def cases(self) -> tuple[int, int]:
        """First, and the one after the last."""
        return self.identity["start"], self.identity["stop"]


def as_line(error: Exception) -> str:
    """An error on one line."""
    return " ".join(str(error).split())


def as_records(report: Report) -> list[dict[str, Any]]:
    """For JSON: one record."""
    findings = [
        {"kind": f.kind, "wrong": f.is_wrong, "where": f.where, "what": f.what}
        for f in report.findings
    ]
    counts = {
        "partitions": report.partitions,
        "rows": report.rows,
        "graded": report.graded,
        "checkpoints": report.checkpoints,
    }
    return [{"sound": report.is_sound, **counts, "findings": findings}]
