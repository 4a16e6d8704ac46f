"""How many steps later one binary metric crosses than another, over the same rollouts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline import crossing, nulls, onset
from pipeline.crossing import Counts
from pipeline.curves import curves
from pipeline.tallies import by_prompts

DELAY = pl.Schema(
    {
        "onset_of": pl.Float64,
        "onset_against": pl.Float64,
        "onset_status": pl.String,
        "delay": pl.Float64,
        "delay_lo": pl.Float64,
        "delay_hi": pl.Float64,
        "delay_interval": pl.String,
    }
)
"""Columns of `delays` after run and identity.

onset_status     of both onsets, `crossed/left`
delay            onset_of - onset_against; null unless both were crossed after the first checkpoint
delay_lo, _hi    95 %; null on a side without a bound: a crossing that is not confirmed may be later
delay_interval   bootstrap, +bracket where the grid decides more than the prompts do
"""


def delays(
    rows: pl.LazyFrame,
    of: str,
    against: str,
    identity: Sequence[str],
    *,
    threshold: float = 0.5,
    max_loss: float = 0.02,
    rng_seed: int = 0,
) -> pl.DataFrame:
    """One row per run and identity, columns `DELAY`; both metrics are null in the same rows."""
    keys, metrics = ["run", *identity], (of, against)
    tallies = by_prompts(rows, metrics, identity)
    rates = nulls.refuse(curves(rows, dict.fromkeys(metrics, "binary"), identity), max_loss)
    onsets = [
        onset.onsets(rates, metric, identity, threshold, tallies[metric], rng_seed).to_dicts()
        for metric in metrics
    ]
    counts = [_counts(rates.filter(metric=metric), tallies[metric], keys) for metric in metrics]
    found = []
    for pair in zip(*onsets, strict=True):
        key = tuple(pair[0][name] for name in keys)
        seen = {
            "onset_of": pair[0]["onset"],
            "onset_against": pair[1]["onset"],
            "onset_status": "/".join(side["status"] for side in pair),
        }
        own = [part.get(key) for part in counts]
        late = _delay(pair, own[0], own[1], threshold, rng_seed)
        found.append(dict(zip(keys, key, strict=True)) | seen | late)
    return pl.DataFrame(found, schema={name: rates.schema[name] for name in keys} | DELAY)


def _counts(
    rates: pl.DataFrame, tallies: pl.DataFrame, keys: Sequence[str]
) -> dict[tuple[Any, ...], Counts | None]:
    prompts = tallies.partition_by(keys, as_dict=True)
    parts = rates.partition_by(keys, as_dict=True)
    return {key: onset.counts_of(parts[key], prompts[key]) for key in parts.keys() & prompts.keys()}


def _delay(
    sides: Sequence[dict[str, Any]],
    of: Counts | None,
    against: Counts | None,
    threshold: float,
    rng_seed: int,
) -> dict[str, Any]:
    """The delay and its percentile interval over resampled prompts, which both metrics share.

    With few prompts, or a rate that jumps over a bracket, it holds what the brackets allow as well;
    else what either line may miss (`crossing.bend`). As an onset of its own, one that is not
    confirmed has no upper bound, so that the delay has none on that side.
    """
    first, second = sides
    if of is None or against is None or any(side["onset"] is None for side in sides):
        return {}
    delay = first["onset"] - second["onset"]
    n = len(of.k)
    if n < 2:
        return {"delay": delay}
    resamples = crossing.weights(np.random.default_rng(rng_seed), n)
    low, high = _quantiles(of, against, threshold, resamples)
    bends = [s for s in sides if s["jump"] <= crossing.JUMP]
    missed = sum(crossing.bend(s["jump"], s["above"] - s["below"]) for s in bends)
    low, high, rule = min(delay, low) - missed, max(delay, high) + missed, "bootstrap"
    if n < crossing.FEW_PROMPTS or len(bends) < len(sides):
        rule = "bootstrap+bracket"
        low = min(low, first["below"] - second["above"])
        high = max(high, first["above"] - second["below"])
    low = low if second["confirmed"] else -np.inf
    high = high if first["confirmed"] else np.inf
    ends = [float(end) if np.isfinite(end) else None for end in (low, high)]
    return {"delay": delay, "delay_lo": ends[0], "delay_hi": ends[1], "delay_interval": rule}


def _quantiles(
    of: Counts, against: Counts, threshold: float, resamples: crossing.Array
) -> tuple[float, float]:
    """2.5 and 97.5 %; a resample in which neither crosses could be any delay."""
    first, second = (crossing.resampled(counts, threshold, resamples) for counts in (of, against))
    known = np.isfinite(first) | np.isfinite(second)
    ends = [np.full(len(known), end) for end in (-np.inf, np.inf)]
    for late in ends:
        late[known] = first[known] - second[known]
    low, high = (np.sort(late) for late in ends)
    place = [int(np.ceil(share * len(late))) - 1 for share in (0.025, 0.975)]
    return float(low[place[0]]), float(high[place[1]])
