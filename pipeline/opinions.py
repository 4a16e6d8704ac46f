"""How well the votes of a judge stage agree, and how often it had no opinion."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.curves import JUDGE_ERROR, collected
from pipeline.intervals import Array
from pipeline.kappa import jackknife

VOTES = "_votes"


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

    def __str__(self) -> str:
        share = self.errors / self.rollouts if self.rollouts else 0.0
        said = "alpha of votes unknown, all agree on one label"
        if not np.isnan(self.alpha):
            said = f"alpha of votes {self.alpha:.3g} [{self.low:.3g}, {self.high:.3g}]"
        return f"{said}; no opinion of {self.errors:,} of {self.rollouts:,} rollouts ({share:.2%})"


def stages(metrics: Iterable[str]) -> list[str]:
    """Metrics that are a stage's opinion."""
    names = list(metrics)
    return [name for name in names if f"{name}{VOTES}" in names]


def opinions(rows: pl.LazyFrame, metric: str, metrics: Iterable[str]) -> Opinions:
    """Agreement over the rollouts of rows, its interval over prompts."""
    votes = pl.col(f"{metric}{VOTES}")
    names = [n for n in metrics if n.startswith(f"{metric}_") and n != f"{metric}{VOTES}"]
    asked = rows.filter(votes.is_not_null())
    counts = [(pl.col(name).fill_null(0.0) * votes).round().alias(name) for name in names]
    table = collected(asked.select("prompt_id", JUDGE_ERROR, *counts))
    cells = of_prompts(table.select(names).to_numpy(), table["prompt_id"].to_numpy())
    value = alpha(cells.sum(axis=0)[None])[0]
    return Opinions(len(table), int(table[JUDGE_ERROR].sum()), value, *jackknife(cells, alpha))


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
