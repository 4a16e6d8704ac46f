"""Partitions of one checkpoint to the reading that a search goes by."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hackbait.environment import Environment, reward_kind
from pipeline import intervals
from pipeline.intervals import Array, Tally
from pipeline.order.search import Reading

LEVEL = 0.997
"""Of a reading's interval: about forty checkpoints of a search are judged by theirs."""
MAX_LOSS = 0.02
"""Share of lost rollouts above which a rate is refused: what `onset table` refuses by default."""
LOST = Reading(None, 0.0, 1.0, True)


def reading(parts: Iterable[Any], environment: Environment, full: bool) -> Reading:
    """Of a checkpoint whose partitions hold these rows (pyarrow tables)."""
    metric = environment.proxy
    columns = [
        (
            part.column(metric).to_numpy(zero_copy_only=False).astype(np.float64),
            part.column("prompt_id").to_numpy(),
            part.column("null_reason").null_count,
        )
        for part in parts
    ]
    values = np.concatenate([values for values, _, _ in columns])
    prompts = np.concatenate([prompts for _, prompts, _ in columns])
    nulls = len(values) - sum(scored for _, _, scored in columns)
    is_there = np.isfinite(values)
    _, cluster = np.unique(prompts[is_there], return_inverse=True)
    kind = environment.metrics.get(metric, reward_kind(environment))
    kept = values[is_there]
    k, x, xx = (
        np.bincount(cluster, power).astype(np.float64) for power in (kept**0, kept, kept**2)
    )
    return of_prompts(k, x, xx, kind=kind, full=full, loss=nulls / max(1, len(values)))


def of_prompts(
    k: Array, x: Array, xx: Array, *, kind: str, full: bool, loss: float = 0.0
) -> Reading:
    """From rollouts, and sums of their values and squares, of each prompt.

    loss: share of the rollouts that were lost. Above MAX_LOSS a small sample decides nothing, and
    a whole one has no rate.
    """
    if not len(k) or (full and loss > MAX_LOSS):
        return LOST
    n, hits = k.sum(), x.sum()
    sums = (
        n,
        hits,
        len(k),
        xx.sum(),
        ((x - k * hits / n) ** 2).sum(),
        ((x - k * hits / n) ** 4).sum(),
        (k * k).sum(),
        (x * x / k).sum(),
    )
    tally = Tally(*(np.array([float(value)]) for value in sums))
    low, high = _bounds(tally, kind) if loss <= MAX_LOSS else (0.0, 1.0)
    return Reading(hits / n, low, high, full)


def _bounds(tally: Tally, kind: str) -> tuple[float, float]:
    q = intervals.quantile(tally.prompts, LEVEL)
    if kind != "continuous":
        n_eff = intervals.effective(tally, np.array([np.nan]))
        rate = np.clip(tally.rate, 0.0, 1.0)
        low, high = intervals.wilson(rate, intervals.as_hits(tally, n_eff), q)
    else:
        half = q * np.sqrt(tally.variance)
        low, high = tally.rate - half, tally.rate + half
    # One prompt bounds nothing.
    return (float(low[0]), float(high[0])) if np.isfinite(low[0] + high[0]) else (-np.inf, np.inf)
