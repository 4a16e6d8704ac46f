"""How well the votes of a judge agree, and how often it had no opinion or was not asked."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.intervals import Array
from pipeline.kappa import jackknife
from pipeline.rows import JUDGE_ERROR, collected
from pipeline.twophase import BESIDE, CHANCE

VOTES = "_votes"
GATE = ("judge_apart", "judge_confirming", "judge_denying")
"""Of a gate: disagreement, and votes for either label."""


@dataclass(frozen=True, slots=True)
class Opinions:
    """Of all rollouts that a judge was asked about."""

    rollouts: int
    errors: int
    """Without an opinion: votes that were lost, or a tie."""
    alpha: float
    """Krippendorff's, nominal, the votes being coders; NaN where they never vary."""
    low: float
    high: float
    settled: int = 0
    """Rollouts that a cheap metric gave a label, so that nobody was asked."""
    undrawn: int = 0
    """Rollouts that the sub-sample left out."""

    def __str__(self) -> str:
        share = self.errors / self.rollouts if self.rollouts else 0.0
        said = "alpha of votes unknown, none differ from another"
        if not np.isnan(self.alpha):
            within = "" if np.isnan(self.low) else f" [{self.low:.3g}, {self.high:.3g}]"
            said = f"alpha of votes {self.alpha:.3g}{within}"
        spared = {"settled without a call": self.settled, "not drawn": self.undrawn}
        others = "".join(f"; {count:,} {what}" for what, count in spared.items() if count)
        lost = f"no opinion of {self.errors:,} of {self.rollouts:,} rollouts ({share:.2%})"
        return f"{said}; {lost}{others}"


def told(rows: pl.LazyFrame, metrics: Iterable[str]) -> list[str]:
    """A line for each judge of an output, as `judge_cares: alpha of votes ...`."""
    names = list(metrics)
    lines = [f"{stage}: {opinions(rows, stage, names)}" for stage in stages(names)]
    return lines + ([f"judge: {gate(rows)}"] if set(GATE) <= set(names) else [])


def stages(metrics: Iterable[str]) -> list[str]:
    """Metrics that are a stage's opinion."""
    names = list(metrics)
    return [name for name in names if f"{name}{VOTES}" in names]


def opinions(rows: pl.LazyFrame, metric: str, metrics: Iterable[str]) -> Opinions:
    """Agreement over the rollouts that were asked about, its interval over prompts.

    metrics: all of the rows.
    """
    votes, names = pl.col(f"{metric}{VOTES}"), list(metrics)
    labels = [
        n for n in names if n.startswith(f"{metric}_") and n.removeprefix(metric) not in BESIDE
    ]
    counts = [(pl.col(name).fill_null(0.0) * votes).round().alias(name) for name in labels]
    table = collected(rows.filter(votes.is_not_null()).select("prompt_id", JUDGE_ERROR, *counts))
    cells = of_prompts(table.select(labels).to_numpy(), table["prompt_id"].to_numpy())
    settled, undrawn = 0, 0
    if metric + CHANCE in names:
        others = rows.filter(votes.is_null() & pl.col(metric + CHANCE).is_not_null())
        told = pl.col(metric).is_not_null()
        settled, undrawn = collected(others.select(told.sum(), (~told).sum().alias("no"))).row(0)
    errors = int(table[JUDGE_ERROR].sum())
    return Opinions(len(table), errors, *agreement(cells), settled, undrawn)


def gate(rows: pl.LazyFrame) -> Opinions:
    """Agreement of the votes on each provision, over the rollouts that had credit to judge."""
    asked = rows.filter(pl.col("judge_gated") == 1.0)
    sums = [pl.col(name).fill_null(0.0).sum() for name in GATE]
    counts = [pl.len().alias("rollouts"), (pl.col(JUDGE_ERROR) == 1.0).sum().alias("errors")]
    table = collected(asked.group_by("prompt_id").agg(*sums, *counts))
    rollouts, errors = (int(table[name].sum()) for name in ("rollouts", "errors"))
    return Opinions(rollouts, errors, *agreement(table.select(GATE).to_numpy()))


def agreement(cells: Array) -> tuple[float, float, float]:
    """alpha and its 95 % interval; NaN where there is none."""
    return float(alpha(cells.sum(axis=0)[None])[0]), *jackknife(cells, alpha)


def of_prompts(counts: Array, prompts: Array) -> Array:
    """For each prompt, its rollouts' disagreement and its votes for each label: what `alpha` takes.

    counts: votes [rollout][label]. A rollout with fewer than two votes pairs with nothing.
    """
    n = counts.sum(axis=1)
    pairable, within = counts * (n >= 2)[:, None], np.maximum(n - 1, 1)
    apart = (pairable.sum(axis=1) ** 2 - (pairable**2).sum(axis=1)) / within
    _, which = np.unique(prompts, return_inverse=True)
    cells = np.zeros((which.max(initial=-1) + 1, 1 + counts.shape[1]))
    np.add.at(cells, which, np.column_stack([apart, pairable]))
    return cells


def alpha(cells: Array) -> Array:
    """Krippendorff (2004) 1 - Do/De = 1 - (n - 1) D / (n^2 - sum n_c^2) of each row of cells."""
    apart, votes = cells[:, 0], cells[:, 1:]
    n = votes.sum(axis=1)
    expected = n**2 - (votes**2).sum(axis=1)
    known = expected > 0
    ratio: Array = np.divide((n - 1) * apart, expected, out=np.full_like(n, np.nan), where=known)
    return np.subtract(1.0, ratio)
