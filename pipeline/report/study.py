"""All that a page tells, before it is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline import headline
from pipeline.comparison import Comparison
from pipeline.report import panels
from pipeline.report.examples import Example, Key
from pipeline.report.panels import Panel
from pipeline.report.provenance import Provenance
from pipeline.status import Searched


@dataclass(frozen=True, slots=True)
class Study:
    """All that a page tells."""

    name: str
    """Where the rows or rates come from."""
    curves: pl.DataFrame
    onsets: pl.DataFrame
    identity: tuple[str, ...]
    proxy: str
    true: str | None
    threshold: float
    examples: Mapping[Key, Sequence[Example]] | None
    """None where there are no rollouts to show."""
    losses: pl.DataFrame | None
    """run, null_reason, rollouts, checkpoints; None where lost rollouts are not known."""
    gaps: tuple[str, ...]
    """Lines on checkpoints that a sweep skipped, failed at or owes."""
    provenance: Provenance | None
    comparisons: Mapping[str, Comparison] | str
    """Words compared, by what sets runs apart that are never compared; or why there are none."""
    searched: tuple[Searched, ...] = ()
    """What an adaptive sweep evaluated of each run; empty where every checkpoint was wanted."""
    judged: tuple[str, ...] = ()
    """A line for each judge: how its votes agree, and what it left without an opinion."""

    @property
    def headline(self) -> pl.DataFrame:
        return headline.headline(self.curves, self.onsets, self.proxy, self.true)

    @property
    def panels(self) -> list[Panel]:
        return panels.panels(self.curves, self.onsets, self.proxy, self.true)
