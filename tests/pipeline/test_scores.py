"""Somebody's own scores find their rows by key, or are refused by name."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.rows import CurveError
from pipeline.scores import SCORE, SCORED, joined, read

ROWS = pl.LazyFrame(
    {
        "run": ["a"] * 4,
        "step": pl.Series([0, 0, 5, 5], dtype=pl.Int32),
        "index": pl.Series([0, 1, 0, 1], dtype=pl.Int32),
        "sample": pl.Series([0] * 4, dtype=pl.Int32),
        "hack_word": ["ocean"] * 4,
    }
)
TWO_WORDS = pl.concat([ROWS, ROWS.with_columns(hack_word=pl.lit("moon"))])
KEYS: dict[str, Any] = {"run": ["a", "a"], "step": [0, 5], "index": [1, 0], "sample": [0, 0]}


def file(tmp_path: Path, **columns: Any) -> Path:
    path = tmp_path / "mine.parquet"
    pl.DataFrame(KEYS | {"mark": [0.5, None]} | columns, strict=False).write_parquet(path)
    return path


def test_scores_find_their_rows_and_the_others_are_marked(tmp_path: Path) -> None:
    found = joined(ROWS, read(file(tmp_path), "mark"), ["hack_word"], "hackword")
    rows = found.rows.sort("step", "index").collect()
    assert rows[SCORE].to_list() == [None, 0.5, None, None]
    assert rows[SCORED].to_list() == [False, True, True, False]
    assert (found.extra, found.example, found.elsewhere) == (0, None, 0)


def test_keys_of_no_row_and_of_another_environment_are_counted(tmp_path: Path) -> None:
    path = file(tmp_path, step=[0, 7], env=["hackword", "hackword"], mark=[True, False])
    found = joined(ROWS, read(path, "mark"), ["hack_word"], "hackword")
    assert (found.extra, found.elsewhere) == (1, 0)
    assert found.example == "run 'a', step 7, index 0, sample 0"
    other = joined(ROWS, read(path, "mark"), ["hack_word"], "market_structure")
    assert (other.extra, other.elsewhere) == (0, 2)
    assert not other.rows.collect()[SCORED].any()


def test_rows_that_a_key_does_not_tell_apart_need_the_field_that_does(tmp_path: Path) -> None:
    with pytest.raises(CurveError, match="differ in hack_word, and the scores have no column"):
        joined(TWO_WORDS, read(file(tmp_path), "mark"), ["hack_word"], "hackword")
    told = read(file(tmp_path, hack_word=["moon", "ocean"]), "mark")
    rows = joined(TWO_WORDS, told, ["hack_word"], "hackword").rows.collect()
    assert rows.filter(pl.col(SCORED)).select("hack_word", "step").sort("step").rows() == [
        ("moon", 0), ("ocean", 5)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"index": [0, 0], "step": [0, 0]}, "run 'a', step 0, index 0, sample 0 twice"),
        ({"index": [0.5, 1.0]}, "'index' is Float64; write whole numbers"),
        ({"run": ["a", None]}, "'run' is null in 1 rows"),
        ({"mark": ["high", "low"]}, "mark' is String; a score is a number"),
        ({"run": [["a"], ["b"]]}, "keys are not those of rows"),
        ({"step": [0, 2**40]}, "keys are not those of rows"),
    ],
)
def test_what_is_no_score_of_a_rollout_is_refused(
    tmp_path: Path, columns: dict[str, Any], said: str
) -> None:
    with pytest.raises(CurveError, match=said):
        joined(ROWS, read(file(tmp_path, **columns), "mark"), ["hack_word"], "hackword")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path)
    with pytest.raises(CurveError, match="no column 'grade'; it has run, step"):
        read(path, "grade")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CurveError, match="no Parquet file"):
        read(path, "mark")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.parquet", "mark")
