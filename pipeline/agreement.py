"""How well a column agrees with ground truth over rollouts, per run and over all of them.

Rates are over pairs: rollouts that have both. Clusters are prompts, whatever the checkpoint or run
that answered: intervals are Wilson's on the effective sample size (`intervals`), those of kappa
(Cohen 1960) and alpha (Krippendorff 2004, nominal) by a jackknife over prompts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pipeline import intervals
from pipeline.delay import DELAY, delays
from pipeline.intervals import Array
from pipeline.kappa import alpha, jackknife, kappa
from pipeline.rows import CurveError, collected
from pipeline.scores import SCORE, SCORED, numbers

CELLS = ("tp", "fp", "fn", "tn")
"""Column and truth are 1 1, 1 0, 0 1 and 0 0."""
RATES = {
    "precision": (("tp", "fp"), ("tp",)),
    "recall": (("tp", "fn"), ("tp",)),
    "specificity": (("fp", "tn"), ("tn",)),
    "agreement": (CELLS, ("tp", "tn")),
    "rate_of": (CELLS, ("tp", "fp")),
    "rate_against": (CELLS, ("tp", "fn")),
}
"""Each rate: the cells that it is over, and those that count as hits."""


@dataclass(frozen=True, slots=True)
class Column:
    """What is held against the truth."""

    of: str
    against: str
    cut: float | None = None
    """The column counts as 1 from this value on; None: it is 0 or 1 already."""


def pairs(rows: pl.LazyFrame, column: Column, identity: Sequence[str]) -> pl.LazyFrame:
    """Rows as run, identity, step, prompt_id, fingerprint, null_reason, `of` and `against`.

    Where rows were joined with scores, their `SCORE` is the column. CurveError for values that are
    no numbers, a truth that is not 0 or 1, a column that is neither and has no cut.
    """
    schema = rows.collect_schema()
    is_joined = SCORE in schema
    for name in [column.against] if is_joined else [column.of, column.against]:
        if name not in schema:
            raise CurveError(f"rows have no column {name!r}; they have {', '.join(schema)}")
    if not is_joined:
        rows = rows.with_columns(
            numbers(pl.col(column.of), schema[column.of], column.of),
            pl.lit(True).alias(SCORED),
        )
    truth = numbers(pl.col(column.against), schema[column.against], column.against)
    truth = pl.when(pl.col("null_reason").is_null()).then(truth)
    kept = ("run", *identity, "step", "prompt_id", "fingerprint", "null_reason", SCORED)
    found = rows.select(*kept, pl.col(SCORE).alias("of"), truth.alias("against"))
    _refuse_impossible(found, column)
    if column.cut is not None:
        found = found.with_columns((pl.col("of") >= column.cut).cast(pl.Float64))
    return found


def _refuse_impossible(pairs: pl.LazyFrame, column: Column) -> None:
    """CurveError naming the first value that cannot be counted."""
    of, binary = pl.col("of"), [0.0, 1.0]
    faults = [
        ("of", ~of.is_finite(), "a score is a finite number; null is for none"),
        ("against", ~pl.col("against").is_in(binary), "a truth is 0 or 1; name one: --against"),
    ]
    if column.cut is None:
        faults.append(("of", ~of.is_in(binary), "neither 0 nor 1; give --cut THRESHOLD"))
    for name, bad, cure in faults:
        first = collected(pairs.filter(bad).select("run", "step", name).head(1))
        if len(first):
            run, step, value = first.row(0)
            said = getattr(column, name)
            raise CurveError(f"run {run!r}, step {step}: {said} is {value:g}; {cure}")


def agreement(
    pairs: pl.LazyFrame,
    identity: Sequence[str],
    grade: Sequence[str] = (),
    *,
    threshold: float = 0.5,
    max_loss: float = 0.02,
    rng_seed: int = 0,
) -> pl.DataFrame:
    """One row per run and identity, sorted, then one of all runs, its run null: `AGREEMENT`.

    Runs are put together where they differ in fields of `grade` alone (the word, say), which are
    null there and named in `reason`; what was asked otherwise has a row of its own. CurveError when
    there is no row.
    """
    keys = ["run", *identity]
    cells = collected(pairs.group_by(*keys, "prompt_id").agg(*_cells(), *_counts()))
    if cells.is_empty():
        raise CurveError("no rollouts: there is nothing to hold against the truth")
    cells = cells.sort(*keys, "prompt_id")
    rows = [
        dict(zip(keys, key, strict=True)) | _figures(part, max_loss)
        for key, part in cells.group_by(keys, maintain_order=True)
    ]
    asked = [pl.lit(0), *(pl.col(name) for name in identity if name not in grade)]
    for _, part in cells.group_by(asked, maintain_order=True):
        rows.append(_together(part, identity, max_loss))
    schema = {name: cells.schema[name] for name in keys} | dict(AGREEMENT)
    found = pl.DataFrame(rows, schema=schema, infer_schema_length=None)
    both = pl.col("of").is_not_null() & pl.col("against").is_not_null()
    told = pairs.with_columns(pl.when(both).then(n).alias(n) for n in ("of", "against"))
    options = {"threshold": threshold, "max_loss": max_loss}
    late = delays(told, "of", "against", identity, rng_seed=rng_seed, **options)
    return found.drop(DELAY).join(late, on=keys, how="left", nulls_equal=True).select(*schema)


def _together(cells: pl.DataFrame, identity: Sequence[str], max_loss: float) -> dict[str, Any]:
    """The row of several runs, in which a prompt is one cluster."""
    alike = {name: cells[name][0] for name in identity if cells[name].n_unique() == 1}
    prompts = cells.group_by("prompt_id").agg(pl.col(*CELLS, *COUNTS).sum()).sort("prompt_id")
    row = alike | _figures(prompts, max_loss)
    differ = [name for name in identity if name not in alike]
    over = f"over runs that differ in {', '.join(differ)}" if differ else None
    return row | {"reason": "; ".join(said for said in (row["reason"], over) if said) or None}


COUNTS = ("rollouts", "lost", "nulls_against", "nulls_of", "missing")
"""Rollouts, and those of them that are no pair: that have a null_reason, no truth, no score, or no
key in the scores. They and the pairs add up to the rollouts."""
FIGURES = [f"{name}{end}" for name in (*RATES, "kappa", "alpha") for end in ("", "_lo", "_hi")]
AGREEMENT = pl.Schema(
    [
        ("status", pl.String()),
        ("reason", pl.String()),
        *((name, pl.Int64()) for name in ("pairs", "prompts", *CELLS)),
        *((name, pl.Float64()) for name in FIGURES),
        *DELAY.items(),
        *((name, pl.Int64()) for name in COUNTS),
    ]
)
"""Columns of `agreement` after run and identity."""


def _cells() -> list[pl.Expr]:
    of, against = pl.col("of"), pl.col("against")
    each = ((of == a) & (against == b) for a, b in ((1, 1), (1, 0), (0, 1), (0, 0)))
    return [cell.sum().cast(pl.Int64).alias(n) for n, cell in zip(CELLS, each, strict=True)]


def _counts() -> list[pl.Expr]:
    lost, truth = pl.col("null_reason").is_not_null(), pl.col("against").is_not_null()
    told = (
        pl.len(),
        lost.sum(),
        (~lost & ~truth).sum(),
        (truth & pl.col(SCORED) & pl.col("of").is_null()).sum(),
        (truth & ~pl.col(SCORED)).sum(),
    )
    return [n.cast(pl.Int64).alias(name) for name, n in zip(COUNTS, told, strict=True)]


def _figures(prompts: pl.DataFrame, max_loss: float) -> dict[str, Any]:
    """Every column of one row but the onsets, from the cells of each prompt."""
    cells = prompts.select(CELLS).to_numpy().astype(np.float64)
    total, counts = cells.sum(axis=0), prompts.select(pl.col(*COUNTS).sum()).row(0, named=True)
    clusters = int((cells.sum(axis=1) > 0).sum())
    status, reason = _status(total, clusters, counts, max_loss)
    return {
        **{"status": status, "reason": reason, "pairs": int(total.sum()), "prompts": clusters},
        **dict(zip(CELLS, map(int, total), strict=True)),
        **_rates(cells),
        **_chance_corrected(cells),
        **counts,
    }


def _status(
    total: Array, prompts: int, counts: dict[str, int], max_loss: float
) -> tuple[str, str | None]:
    """What the figures are worth, and why."""
    (tp, fp, fn, _), n = total, total.sum()
    if n == 0:
        return "no_data", "no rollout has both the column and the truth"
    without = counts["lost"] + counts["nulls_of"] + counts["missing"]
    if without / (n + without) > max_loss:
        return "partial", f"{without} of {int(n + without)} rollouts were lost or have no score"
    if prompts == 1:
        return "one_prompt", "rollouts of one prompt tell nothing of others"
    for side, ones in (("truth", tp + fn), ("column", tp + fp)):
        if ones in (0, n):
            return "constant", f"the {side} is {int(ones > 0)} in every pair"
    return "measured", None


def _rates(cells: Array) -> dict[str, float | None]:
    """The rates with their intervals; null where no rollout is of their kind."""
    at = {name: cells[:, i] for i, name in enumerate(CELLS)}
    k = np.stack([sum(at[c] for c in over) for over, _ in RATES.values()], axis=1)
    x = np.stack([sum(at[c] for c in hits) for _, hits in RATES.values()], axis=1)
    tally = intervals.of_prompts(k, x)
    n_eff = intervals.effective(tally, np.full(len(RATES), np.nan))
    low, high = intervals.bounded_interval(tally, n_eff)
    found: dict[str, float | None] = {}
    for i, name in enumerate(RATES):
        found |= _with_interval(name, tally.rate[i], low[i], high[i])
    return found


def _with_interval(name: str, value: float, low: float, high: float) -> dict[str, float | None]:
    ends = {name: value, f"{name}_lo": low, f"{name}_hi": high}
    return {key: None if np.isnan(number) else float(number) for key, number in ends.items()}


def _chance_corrected(cells: Array) -> dict[str, float | None]:
    """kappa and alpha with their intervals."""
    found: dict[str, float | None] = {}
    for name, statistic in (("kappa", kappa), ("alpha", alpha)):
        found |= _with_interval(
            name, statistic(cells.sum(axis=0)[None])[0], *jackknife(cells, statistic)
        )
    return found
