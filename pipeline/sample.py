"""What a checkpoint said to one ask: rows of an output, each text once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.rows import CurveError, collected


@dataclass(frozen=True, slots=True)
class Sample:
    """What one checkpoint said to one ask."""

    place: dict[str, Any]
    """run, step, and every column that says what was asked and how it was drawn."""
    runs: int
    """Runs that share these very weights, so this very sample."""
    graders: tuple[str, ...]
    """By whose rule the rows were scored; `current` where none is named."""
    texts: tuple[str, ...]
    """Of the rollouts that were not lost."""
    prompts: tuple[int, ...]
    """prompt_id of each: the clusters."""
    reasons: tuple[str, ...]
    """Why each lost rollout was."""

    @property
    def holds_for(self) -> str:
        """What was asked and how it was drawn, `task=story, max_tokens=256, ...`, in one line."""
        asked = (f"{k}={v}" for k, v in self.place.items() if k not in ("run", "step"))
        return f"{', '.join(asked)} and {len(set(self.prompts))} prompts"


def samples(
    rows: pl.LazyFrame, identity: Sequence[str], grade: Sequence[str], step: int | None = None
) -> list[Sample]:
    """One sample for each weights and ask at a step; default: each run's first.

    Rows that differ in `grade` alone, or in the run where the weights are the same, have the same
    texts and count once. CurveError when no run has the step, or two weights answered.
    """
    asked = [name for name in identity if name not in grade]
    graders = [name for name in grade if name == "grader"]
    here = _at(rows, step)
    places = collected(here.select("run", "step", *asked, "fingerprint", *graders).unique())
    _refuse_two_weights(places.drop(graders).unique().sort("run", "step", "fingerprint"), asked)
    found = places.sort("run", "step", *asked, *graders, nulls_last=True)
    return [
        _sample(here, part.row(0, named=True), asked, part)
        for _, part in found.group_by(*asked, "fingerprint", maintain_order=True)
    ]


def _at(rows: pl.LazyFrame, step: int | None) -> pl.LazyFrame:
    """Rows of the step, or of each run's first."""
    steps = collected(rows.select("run", "step").unique()).sort("run", "step")
    first = steps.group_by("run", maintain_order=True).agg(pl.col("step").first())
    kept = first if step is None else steps.filter(pl.col("step") == step)
    if kept.is_empty():
        has = ", ".join(str(s) for s in steps["step"].unique().sort().head(20))
        raise CurveError(f"no run has step {step}; there are {has or 'none'}")
    near = rows.filter(pl.col("step").is_in(kept["step"].unique().to_list()))
    return near.join(kept.lazy(), on=["run", "step"], how="semi")


def _refuse_two_weights(places: pl.DataFrame, asked: Sequence[str]) -> None:
    twice = places.filter(pl.struct("run", "step", *asked).is_duplicated())
    if len(twice):
        one, other = twice.head(2).rows(named=True)
        raise CurveError(
            f"run {one['run']!r}, step {one['step']}: two different weights answered, fingerprints "
            f"{one['fingerprint']} and {other['fingerprint']}; delete the partitions of one of them"
        )


def _sample(
    rows: pl.LazyFrame, place: dict[str, Any], asked: Sequence[str], part: pl.DataFrame
) -> Sample:
    own = [pl.col(name).eq_missing(pl.lit(place[name])) for name in ("run", "step", *asked)]
    columns = ["index", "sample", "prompt_id", "completion", "null_reason"]
    drawn = collected(rows.filter(own).select(columns))
    # A grader that fails costs the rollout under its own grade alone.
    drawn = drawn.sort("index", "sample", "null_reason", nulls_last=False)
    drawn = drawn.unique(["index", "sample"], keep="first", maintain_order=True)
    kept = drawn.filter(pl.col("null_reason").is_null(), pl.col("completion").is_not_null())
    lost = drawn.filter(pl.col("null_reason").is_not_null() | pl.col("completion").is_null())
    names = sorted(set(part["grader"].drop_nulls())) if "grader" in part.columns else ["current"]
    return Sample(
        place={name: place[name] for name in ("run", "step", *asked)},
        runs=part["run"].n_unique(),
        graders=tuple(names),
        texts=tuple(kept["completion"]),
        prompts=tuple(kept["prompt_id"]),
        reasons=tuple(lost["null_reason"].fill_null("no completion")),
    )
