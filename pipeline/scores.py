"""Somebody's own scores of a sweep's rollouts, from a Parquet file joined to the rows by key."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.rows import CurveError, collected

KEY = ("run", "step", "index", "sample")
"""What names a rollout; `env` too, and any field of the identity in which a run's rows differ."""
SCORE, SCORED = "|score", "|scored"
"""Columns that `joined` adds: the score, and whether the file has the rollout's key at all."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows with their scores, and what of either was left over."""

    rows: pl.LazyFrame
    """The rows with `SCORE`, null where there is none, and `SCORED`."""
    extra: int
    """Keys of the file that no row has."""
    example: str | None
    """One of them."""
    elsewhere: int
    """Keys of the file that are of another environment."""


def read(path: Path, column: str) -> pl.DataFrame:
    """The file's keys and `SCORE`, float64. CurveError naming the file, what is wrong, the cure.

    A score is a finite number or a truth value; null is for no score.
    """
    try:
        table = pl.read_parquet(path, hive_partitioning=False)
    except pl.exceptions.PolarsError as error:
        said = str(error).splitlines()[0]
        raise CurveError(f"{path}: no Parquet file that can be read ({said})") from error
    for name in (*KEY, column):
        if name not in table.columns:
            raise CurveError(f"{path}: no column {name!r}; it has {', '.join(table.columns)}")
    for name in KEY[1:]:
        if not table.schema[name].is_integer():
            raise CurveError(f"{path}: {name!r} is {table.schema[name]}; write whole numbers")
    for name in [n for n in (*KEY, "env") if n in table.columns]:
        if lost := table[name].null_count():
            raise CurveError(f"{path}: {name!r} is null in {lost} rows; every row needs its key")
    kept = [name for name in table.columns if name not in (column, SCORE, SCORED)]
    return table.select(*kept, numbers(pl.col(column), table.schema[column], f"{path}: {column}"))


def numbers(column: pl.Expr, kind: pl.DataType, what: str) -> pl.Expr:
    """The column as `SCORE`, float64. CurveError where it holds no numbers."""
    if not (kind.is_numeric() or kind == pl.Boolean or kind == pl.Null):
        raise CurveError(f"{what!r} is {kind}; a score is a number, or true and false")
    return column.cast(pl.Float64).alias(SCORE)


def joined(
    rows: pl.LazyFrame, scores: pl.DataFrame, identity: Sequence[str], environment: str
) -> Joined:
    """The rows of an environment with their scores. CurveError where a key is not one rollout's."""
    own = scores.filter(env=environment) if "env" in scores.columns else scores
    on = [*KEY, *(name for name in identity if name in scores.columns)]
    schema = rows.collect_schema()
    try:
        own = own.select(*(pl.col(name).cast(schema[name]) for name in on), SCORE)
    except pl.exceptions.PolarsError as error:
        said = str(error).splitlines()[0]
        raise CurveError(f"the scores' keys are not those of rows ({said})") from error
    _refuse_twice(own, on)
    _refuse_vague(rows, on, identity)
    known = collected(rows.select(on))
    extra = own.join(known, on=on, how="anti", nulls_equal=True)
    told = own.lazy().with_columns(pl.lit(True).alias(SCORED))
    found = rows.join(told, on=on, how="left", nulls_equal=True)
    return Joined(
        rows=found.with_columns(pl.col(SCORED).fill_null(False)),
        extra=len(extra),
        example=_key(extra.row(0, named=True), on) if len(extra) else None,
        elsewhere=len(scores) - len(own),
    )


def _refuse_twice(scores: pl.DataFrame, on: Sequence[str]) -> None:
    twice = scores.filter(pl.struct(on).is_duplicated())
    if len(twice):
        raise CurveError(
            f"the scores have {_key(twice.row(0, named=True), on)} twice ({len(twice)} rows share "
            "their key with another); keep one score of a rollout"
        )


def _refuse_vague(rows: pl.LazyFrame, on: Sequence[str], identity: Sequence[str]) -> None:
    """CurveError where a key fits several rows, which differ in a field that the scores lack."""
    free = [name for name in identity if name not in on]
    kinds = collected(rows.select("run", "step", *free).unique())
    for name in free:
        many = kinds.group_by("run", "step").agg(pl.col(name).n_unique().alias("many"))
        if (many["many"] > 1).any():
            (run, *_) = many.filter(pl.col("many") > 1).row(0)
            raise CurveError(
                f"the rows of run {run!r} differ in {name}, and the scores have no column {name!r} "
                "to tell them apart; add it"
            )


def _key(row: dict[str, Any], on: Sequence[str]) -> str:
    return ", ".join(f"{name} {row[name]!r}" for name in on)
