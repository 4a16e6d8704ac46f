"""The rows of a sweep as one frame for polars, whatever files they lie in."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import unquote

import polars as pl

from pipeline.places import Where, polars_options, where

T = TypeVar("T")

PARTITION = re.compile(r"(?P<above>.*?/)?run=(?P<run>[^/]+)/step=(?P<step>\d+)/[^/]+\.parquet")
COMPACTED = re.compile(r"(?:.*/)?compacted/[^/]+/[0-9a-f]{32}\.parquet")
JUDGE_ERROR = "judge_error"
"""Column that is 1 where a judge failed, and the null reason of what it left unknown."""
GATED = "|gated"
"""Behind the name of each metric that a judge decides: a column that says where it failed."""


class CurveError(ValueError):
    """No curve can be had from this input; one line, with the value and the cure."""


class Unreadable(CurveError):
    """A file of rows is missing, torn or of another schema."""


def scan(files: Sequence[str | Where], gated: Sequence[str] = ()) -> pl.LazyFrame:
    """Rows of partitions and compacted files, with run (decoded) and step.

    gated: metrics that are null, for the reason `judge_error`, where that is 1.

    Partitions are `.../run=NAME/step=N/KEY.parquet`; compacted files, `.../compacted/ENV/NAME`,
    hold both as columns. All on disks, or all on one object store. Only these two path parts become
    columns, even when a folder above is called `seed=0`.
    CurveError when there is no file, or one lies elsewhere.
    """
    paths = [str(file) for file in files]
    if not paths:
        raise CurveError("no rollouts: the list of partitions is empty; run the sweep first")
    compacted = [path for path in paths if COMPACTED.fullmatch(path)]
    options = polars_options(where(paths[0]))
    frames = [_scan_partitions(alone, options)] if (alone := _without(paths, compacted)) else []
    if compacted:
        frames.append(
            pl.scan_parquet(compacted, glob=False, hive_partitioning=False, storage_options=options)
        )
    rows = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")
    return _without_failed(rows, gated) if gated else rows


def _without_failed(rows: pl.LazyFrame, gated: Sequence[str]) -> pl.LazyFrame:
    failed = pl.col(JUDGE_ERROR).eq_missing(1.0)
    kept = [pl.when(~failed).then(name).alias(name) for name in gated]
    kept += [failed.alias(f"{name}{GATED}") for name in gated]
    told = pl.when(failed).then(pl.col("null_reason").fill_null(JUDGE_ERROR))
    return rows.with_columns(*kept, null_reason=told.otherwise("null_reason"))


def _without(paths: Sequence[str], others: Sequence[str]) -> list[str]:
    left_out = set(others)
    return [path for path in paths if path not in left_out]


def _scan_partitions(paths: list[str], options: dict[str, str]) -> pl.LazyFrame:
    parts = [PARTITION.fullmatch(path) for path in paths]
    strays = [path for path, part in zip(paths, parts, strict=True) if part is None]
    if strays:
        raise CurveError(f"{strays[0]}: not a partition; expected .../run=NAME/step=N/KEY.parquet")
    found = [part for part in parts if part is not None]
    if any("=" in (part["above"] or "") for part in found):
        return _scan_below_keys(paths, found, options)
    hive = {"run": pl.String, "step": pl.Int32}
    return pl.scan_parquet(
        paths, glob=False, hive_partitioning=True, hive_schema=hive, storage_options=options
    )


def _scan_below_keys(
    paths: list[str], parts: list[re.Match[str]], options: dict[str, str]
) -> pl.LazyFrame:
    """As `scan`, joined on the path: polars would take every `key=value` above for a column."""
    runs = [unquote(part["run"]) for part in parts]
    steps = pl.Series([int(part["step"]) for part in parts], dtype=pl.Int32)
    places = pl.LazyFrame({"path": paths, "run": runs, "step": steps})
    rows = pl.scan_parquet(
        paths,
        glob=False,
        hive_partitioning=False,
        include_file_paths="path",
        storage_options=options,
    )
    return rows.join(places, on="path").drop("path")


def as_one(rows: pl.LazyFrame, name: str = "pooled") -> pl.LazyFrame:
    """The rows of all runs as those of one run, whose fingerprint is null."""
    return rows.with_columns(run=pl.lit(name), fingerprint=pl.lit(None, pl.String))


def collected(table: pl.LazyFrame) -> pl.DataFrame:
    """The table, read. Raises Unreadable."""
    return readable(lambda: table.collect(engine="streaming"))


def readable(read: Callable[[], T]) -> T:
    """What `read` returns. Raises Unreadable."""
    try:
        return read()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise Unreadable(
            f"partitions cannot be read as one table: {reason}; `onset verify OUT` names the file "
            "that is torn or foreign: delete it and sweep again"
        ) from error


def is_lost(metric: str, columns: Sequence[str]) -> pl.Expr:
    """Where a metric is null and should not be. A failed judge loses what it decides alone."""
    reason = pl.col("null_reason")
    lost = pl.col(metric).is_null() & reason.is_not_null()
    if f"{metric}{GATED}" not in columns and any(name.endswith(GATED) for name in columns):
        lost &= reason != JUDGE_ERROR
    return lost
