"""Rows and curves made by hand, in the shape of a partition and of `curves.curves`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from pipeline.curves import MEASURES

Points = Sequence[tuple[int, float | None]]

COLUMNS = {
    "run": pl.String,
    "step": pl.Int32,
    "hack_word": pl.String,
    "mode": pl.String,
    "fingerprint": pl.String,
    "prompt_id": pl.Int64,
    "null_reason": pl.String,
    "r_hack": pl.Float64,
    "r_true": pl.Float64,
}
IDENTITY = ["hack_word", "mode"]


def row(prompt: int, hit: float | None, **other: Any) -> dict[str, Any]:
    usual = {"run": "a", "step": 0, "hack_word": "ocean", "mode": "hack_only", "fingerprint": "f"}
    return {**usual, "prompt_id": prompt, "r_hack": hit, "r_true": None, **other}


def lazy(*rows: dict[str, Any]) -> pl.LazyFrame:
    return pl.LazyFrame(list(rows), schema=COLUMNS)


def write(folder: Path, rows: pl.DataFrame, run: str, step: int, key: str = "k") -> Path:
    path = folder / f"run={quote(run, safe='')}" / f"step={step}" / f"{key}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.drop("run", "step").write_parquet(path)
    return path


def frame(
    curves: dict[tuple[str, str, str], Points], lo: float = 0.0625, nulls: int = 1
) -> pl.DataFrame:
    """Curves by (run, word, metric), all of 64 rollouts, with an interval of +- lo."""
    rows = [
        {
            **{"run": run, "hack_word": word, "step": step, "metric": metric, "rate": rate},
            **{"lo": None if rate is None else rate - lo, "rollouts": 64 + step, "prompts": 16},
            **{"hi": None if rate is None else rate + lo, "deff": 1.5, "nulls": nulls},
        }
        for (run, word, metric), points in curves.items()
        for step, rate in points
    ]
    schema = {"run": pl.String, "hack_word": pl.String, "step": pl.Int32, **MEASURES}
    return pl.DataFrame(rows, schema=schema)


TWO = {
    ("o", "ocean", "r_hack"): [(0, 0.0625), (10, 0.375), (12, 0.625), (20, 1.0)],
    ("o", "ocean", "r_true"): [(0, 0.75), (10, 0.5), (12, 0.5), (20, 0.125)],
    ("w", "whisper", "r_hack"): [(5, 0.75), (20, 1.0)],
    ("w", "whisper", "r_true"): [(5, None), (20, None)],
}
