"""Rows of files as one frame: run and step from the path, refusals in one line."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import files
from pipeline.curves import curves
from pipeline.places import where
from pipeline.rows import GATED, CurveError, _without_failed, is_lost, scan
from tests.pipeline.frames import IDENTITY, lazy, row, write

BINARY = {"r_hack": "binary"}


@pytest.mark.parametrize("above", ["", "lr=1/seed=0/mode=x", "[a]*?"])
def test_run_and_step_come_from_the_path_and_nothing_else_does(tmp_path: Path, above: str) -> None:
    rows = lazy(row(0, 1.0), row(1, 0.0)).collect().with_columns(seed=pl.lit(7))
    names = ["a b/ü=1", "1", "[x]*"]
    files = [write(tmp_path / above, rows, name, step) for name in names for step in (0, 10)]
    found = scan(files).collect()
    expected = {(n, s, "hack_only", 7) for n in names for s in (0, 10)}
    assert set(found.select("run", "step", "mode", "seed").rows()) == expected
    assert (found.schema["run"], found.schema["step"]) == (pl.String, pl.Int32)
    assert len(found) == 12


def test_a_file_that_is_not_listed_is_not_read(tmp_path: Path) -> None:
    rows = lazy(row(0, 1.0)).collect()
    write(tmp_path, rows, "a", 0, "torn")
    assert len(scan([write(tmp_path, rows, "a", 0, "whole")]).collect()) == 1


def test_no_partition_and_a_stray_file_are_one_line_each() -> None:
    with pytest.raises(CurveError, match=r"^no rollouts: .*run the sweep first$"):
        scan([])
    with pytest.raises(CurveError, match=r"^out/notes.parquet: not a partition; expected "):
        scan(["out/notes.parquet"])


def test_a_missing_a_torn_and_a_foreign_partition_are_one_line_each(tmp_path: Path) -> None:
    rows = lazy(row(0, 1.0)).collect()
    whole, torn = (write(tmp_path, rows, "a", step) for step in (0, 1))
    torn.write_bytes(whole.read_bytes()[:-20])
    foreign = write(tmp_path, rows.with_columns(extra=pl.lit(1)), "a", 2)
    gone = tmp_path / "run=a" / "step=3" / "k.parquet"
    for bad, reason in ((torn, "PAR1"), (foreign, "extra column"), (gone, "No such file")):
        with pytest.raises(CurveError, match=f"cannot be read as one table: .*{reason}") as error:
            curves(scan([whole, bad]), BINARY, IDENTITY)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("above", ["out", "seed=0/out"])
def test_partitions_on_an_object_store_are_scanned_as_those_here(
    bucket: str, tmp_path: Path, above: str
) -> None:
    home = where(f"{bucket}/{above}")
    here, far = [], []
    for run, step in (("a%2Fb", 2), ("a%2Fb", 4), ("plain", 2)):
        path = tmp_path / above / f"run={run}" / f"step={step}" / "k.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"value": [step, step + 1]}).write_parquet(path)
        target = home / f"run={run}" / f"step={step}" / "k.parquet"
        files.put(path.read_bytes(), target, home)
        here.append(path)
        far.append(target)
    rows = scan(far).sort("run", "step", "value").collect()
    assert rows.equals(scan(here).sort("run", "step", "value").collect())
    assert set(rows["run"]) == {"a/b", "plain"}


def test_a_failed_judge_loses_what_it_decides_and_nothing_else() -> None:
    """r_true does not apply; of four rollouts one was never generated and two were not judged."""
    table = pl.LazyFrame(
        {
            "r_true": [None, None, None, None],
            "judge_sea": [1.0, 0.5, None, None],
            "judge_error": [0.0, 1.0, 1.0, None],
            "null_reason": [None, None, None, "quarantined"],
        },
        schema_overrides={"r_true": pl.Float64},
    )
    told = _without_failed(table, ["judge_sea"])
    names = told.collect_schema().names()
    found = told.select(is_lost(m, names).alias(m) for m in ("r_true", "judge_sea")).collect()
    assert found["judge_sea"].to_list() == [False, True, True, True]
    assert found["r_true"].to_list() == [False, False, False, True]
    assert told.select("judge_sea").collect()["judge_sea"].to_list() == [1.0, None, None, None]
    bare = told.drop(f"judge_sea{GATED}")
    lost = is_lost("judge_sea", bare.collect_schema().names()).alias("lost")
    assert bare.select(lost).collect()["lost"].to_list() == [False, True, True, True]
