"""The tables that people read and save: what stands in them, and why a curve ends."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jobs import command, curves, table
from jobs.__main__ import main as start
from pipeline import store
from pipeline.printable import one_line

CSV = "run,step,rate\na,0,0.1\na,10,0.9\n"


@pytest.fixture
def out(small_output: Path, tmp_path: Path) -> Path:
    """Runs `a` and another, steps 0 and 10, of 6 prompts of 2 rollouts."""
    return Path(shutil.copytree(small_output, tmp_path / "out"))


def rows(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    assert table.main([*argv, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_an_onset_is_printed_with_its_interval_its_bracket_and_the_gap(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table.main([str(out), "--threshold", "0.6"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == (
        "run word base rate onset bracket status true at base true at end gap at end "
        "n k prompts deff checkpoints nulls"
    )
    assert "(0, 10]" in first
    (a, *_) = rows(capsys, str(out), "--threshold", "0.6")
    assert a["text"] in first
    assert (a["n"], a["k"], a["prompts"]) == (12, 2, 6)
    assert a["gap_end"] == pytest.approx(
        rates(out, "r_hack", a["run"])[10] - rates(out, "r_true", a["run"])[10]
    )


def rates(out: Path, metric: str, run: str) -> dict[int, float]:
    found = curves.measure(curves.CurvesConfig(path=out)).frame.filter(metric=metric, run=run)
    return dict(zip(found["step"], found["rate"], strict=True))


def test_a_run_whose_last_checkpoint_is_owed_is_not_called_out_of_budget(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(out / "rollouts" / "hackword" / "run=a" / "step=10")
    found = {r["run"]: r["reason"] for r in rows(capsys, str(out), "--threshold", "0.999")}
    assert found == {"a": "missing_checkpoint", "b\n../é": "budget"}


def test_a_run_that_was_to_go_on_by_its_tag_is_aborted(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "runs.json").write_text(json.dumps({"a": {"steps": 50}, "b\n../é": {"steps": 10}}))
    found = {r["run"]: r["reason"] for r in rows(capsys, str(out), "--threshold", "0.999")}
    assert found == {"a": "aborted", "b\n../é": "budget"}
    (out / "status" / "plan.json").write_bytes(b"torn")
    assert rows(capsys, str(out), "--threshold", "0.999")[0]["reason"] is not None


@pytest.mark.parametrize("verb", ["table", "curves", "report", "compare"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content[:100] + bytes(len(content) // 3) + content[100:],
    ],
    ids=["half", "one byte less", "empty", "zeros within"],
)
def test_a_partition_that_cannot_be_read_is_named_with_the_cure(
    spoil: Callable[[bytes], bytes], verb: str, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = store.partition_files(out)[-1]
    assert isinstance(torn, Path)
    torn.write_bytes(spoil(torn.read_bytes()))
    assert start([verb, str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{one_line(str(torn))}: damaged, or no Parquet file" in line
    assert line.endswith("delete it and sweep again")


def test_partitions_that_are_missing_or_out_of_place_are_counted_by_their_names(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert curves.main([str(out)]) == 0
    assert capsys.readouterr().err == ""
    first, second, *_ = store.partition_files(out)
    assert isinstance(first, Path)
    assert isinstance(second, Path)
    shutil.copy(first, first.with_stem("0" * 32))
    second.unlink()
    assert curves.main([str(out)]) == 0
    assert capsys.readouterr().err == (
        "note: 1 of 8 planned partitions are not there (see onset status); "
        "1 that are there were not planned so (see onset verify)\n"
    )


def test_a_table_is_saved_with_every_column(out: Path, tmp_path: Path) -> None:
    assert table.main([str(out), "--save", str(tmp_path / "t.parquet")]) == 0
    saved = pl.read_parquet(tmp_path / "t.parquet")
    assert {"onset_lo", "onset_hi", "sensitivity", "gap_base_lo", "base_bound"} <= set(
        saved.columns
    )


def test_rates_of_another_tool_have_an_onset_without_an_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rates.csv").write_text(CSV)
    (row,) = rows(capsys, str(tmp_path / "rates.csv"))
    assert (row["onset"], row["text"], row["bracket"]) == (5.0, "5.0", "(0, 10]")
    assert [row[name] for name in ("onset_lo", "interval", "confirmed", "gap_end")] == [None] * 4


@pytest.mark.parametrize("rate", ["nan", "inf"])
def test_a_rate_that_is_no_number_is_one_line(
    rate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rates.csv").write_text(f"{CSV}a,20,{rate}\n")
    assert command.start(table.main, [str(tmp_path / "rates.csv")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error:")
    assert f"rate '{rate}' is not a finite number" in line


def test_rollouts_prompts_and_design_effect_stand_in_every_table_of_curves(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert curves.main([str(out)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert {"rollouts", "k", "prompts", "deff"} <= set(head.split())
    assert [line.split()[2] for line in lines if line.startswith("a ")] == [
        *("r_hack", "r_true", "gap", "r_hack", "r_true", "gap"),
    ]
