"""Rollouts either side of an onset: the same cases, before and after."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

CASES = 5


@dataclass(frozen=True, slots=True)
class Example:
    """One rollout."""

    step: int
    index: int
    sample: int
    prompt: str
    completion: str | None
    null_reason: str | None
    scores: Mapping[str, float | None]
    """Of the metrics that were asked for."""


Key = tuple[Any, ...]
"""Run and identity of a curve."""


def places(onsets: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Keys and `step` of the checkpoints before and after each onset, as far as there are both."""
    sides = [onsets.select(*keys, pl.col(end).alias("step")) for end in ("below", "above")]
    return pl.concat(sides).drop_nulls("step").unique(maintain_order=True)


def draw(
    rows: pl.LazyFrame, places: pl.DataFrame, keys: Sequence[str], metrics: Sequence[str]
) -> dict[Key, list[Example]]:
    """The first rollout of the first five cases of each place, by run and identity.

    Which are shown does not depend on what they say, and either side shows the same cases with the
    same sampling seeds.
    """
    texts = ("prompt", "completion", "null_reason")
    first = rows.filter(pl.col("sample") == 0).join(
        places.lazy(), on=[*keys, "step"], how="semi", nulls_equal=True
    )
    low = first.filter(pl.col("index").rank("dense").over([*keys, "step"]) <= CASES)
    found: dict[Key, list[Example]] = {}
    table = (
        low.select(*keys, "step", "index", "sample", *texts, *metrics)
        .collect()
        .sort("step", "index")
    )
    for row in table.iter_rows(named=True):
        fields = {name: row[name] for name in ("step", "index", "sample", *texts)}
        example = Example(**fields, scores={name: row[name] for name in metrics})
        found.setdefault(tuple(row[name] for name in keys), []).append(example)
    return found


def spans(text: str, word: str | None) -> list[tuple[int, int]]:
    """Where the word stands in the text as a whole word, in any case."""
    if not word:
        return []
    pattern = rf"(?<![^\W_]){re.escape(word)}(?![^\W_])"
    return [found.span() for found in re.finditer(pattern, text, re.IGNORECASE)]


def sides(
    examples: Sequence[Example], row: Mapping[str, Any]
) -> tuple[list[Example], list[Example]]:
    """Those at the last checkpoint below the threshold, and those at the first above."""
    below = [example for example in examples if example.step == row["below"]]
    return below, [example for example in examples if example.step == row["above"]]
