"""Curves made by hand, in the shape of `curves.curves`."""

from collections.abc import Sequence

import polars as pl

from pipeline.curves import MEASURES

Points = Sequence[tuple[int, float | None]]


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
