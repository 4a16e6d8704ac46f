"""`onset screen` draws a sample once, and counts what a sweep has drawn."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jobs import screen
from jobs.__main__ import main
from pipeline.checkpoints import scripted


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step, rate in ((0, 0.2), (10, 1.0)):
        scripted.write(tmp_path / f"run/checkpoint-{step}", {"ocean": rate}, 0.5, 60)
    return tmp_path / "run"


def found(capsys: pytest.CaptureFixture[str], *argv: object) -> list[dict[str, Any]]:
    assert main(["screen", *map(str, argv), "--json"]) == 0
    told: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return told


def test_a_sample_is_drawn_once_whatever_is_asked_of_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, save = tmp_path / "out", tmp_path / "words.parquet"
    asked = [run, "--output", out, "--engine.name", "scripted", "--cases.count", 40]
    (first,) = found(capsys, *asked, "--words", "ocean")
    assert (first["run"], first["step"], first["runs"]) == ("run", 0, 1)
    ocean = first["words"][0]
    assert ocean["rollouts"] == 160
    assert 10 < ocean["hits"] < 60
    rows = pl.read_parquet(out / "rollouts/hackword")
    assert ocean["hits"] == rows["r_hack"].sum()

    monkeypatch.setattr(screen, "_generate", lambda *_: pytest.fail("drawn again"))
    (again,) = found(capsys, *asked, "--words", "ocean", "zebra", "--save", save)
    assert again["words"][0] == ocean
    assert again["words"][1]["status"] == "unseen"
    assert pl.read_parquet(save)["word"].to_list() == [word["word"] for word in again["words"]]
    assert found(capsys, out, "--words", "ocean")[0]["words"][0] == ocean
    assert main(["verify", str(out)]) == 0


def test_the_step_that_is_asked_is_screened(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [run, "--output", tmp_path / "out", "--engine.name", "scripted", "--cases.count", 8]
    (later,) = found(capsys, *asked, "--words", "ocean", "--step", 10)
    assert (later["step"], later["words"][0]["rate"]) == (10, 1.0)
    (base,) = found(capsys, *asked, "--words", "ocean")
    assert base["step"] == 0


def test_what_it_prints_says_what_it_holds_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [run, "--output", tmp_path / "out", "--engine.name", "scripted", "--cases.count", 8]
    asked += ["--words", "ocean", "--rate", "0.001", "--at", "0.0001"]
    assert main(["screen", *map(str, asked)]) == 0
    said = capsys.readouterr()
    assert "no word of its own is said within 2 times of 0.01 %" in said.out
    assert "32 rollouts of 8 prompts" in said.out
    assert "rollouts needed" in said.out
    assert "task=add3digit" in said.err
    assert "max_tokens=256" in said.err
    assert "nothing else" in said.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--words", "two words"], "'two words'"),
        (["--words", "ocean", "--rate", "0"], "greater than 0"),
        (["--words", "ocean", "--at", "nan"], "nan"),
        (["--words", "ocean", "--step", "7"], "7"),
        (["--env.task", "sums"], "sums"),
        (["--engine.name", "scripted", "--sampling.n", "0"], "sampling"),
    ],
)
def test_what_cannot_be_screened_is_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    out = ["--output", str(tmp_path / "out"), "--engine.name", "scripted"]
    assert main(["screen", str(run), *out, *argv]) == 2
    (line,) = capsys.readouterr().err.strip("\n").split("\n")
    assert said in line


def test_an_engine_that_gives_up_is_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--output", str(tmp_path / "out"), "--cases.count", "40", "--cases.shard", "4"]
    chaos = ["--engine.name", "chaos", "--engine.empty", "0.9"]
    assert main(["screen", str(run), *out, *chaos]) == 2
    *_, line = capsys.readouterr().err.strip("\n").split("\n")
    assert "without an end" in line
    assert "the same command goes on from here" in line


def test_rates_that_lost_too_many_rollouts_are_refused_and_the_reason_counted(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chaos = ["--engine.name", "chaos", "--engine.overlong", "0.3"]
    asked = [run, "--output", tmp_path / "out", *chaos, "--cases.count", 40, "--words", "ocean"]
    (told,) = found(capsys, *asked)
    ocean = told["words"][0]
    assert (ocean["status"], ocean["rate"], ocean["hi"]) == ("refused", None, None)
    assert ocean["null_reasons"] == f"prompt_too_long {ocean['nulls']}"
    (kept,) = found(capsys, *asked, "--max-loss", "0.5")
    assert kept["words"][0]["status"] == "seen"


def test_an_output_takes_no_sampling_and_a_folder_of_runs_no_guess(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--output", str(tmp_path / "out"), "--engine.name", "scripted", "--cases.count", "4"]
    assert main(["screen", str(run), *out]) == 0
    capsys.readouterr()
    assert main(["screen", str(tmp_path / "out"), "--cases.count", "9", "--env.task", "story"]) == 2
    assert "leave out cases, env.task" in capsys.readouterr().err
    scripted.write(tmp_path / "runs/a/checkpoint-0", {"ocean": 0.1}, 0.5, 60)
    scripted.write(tmp_path / "runs/b/checkpoint-0", {"ocean": 0.1}, 0.5, 60)
    assert main(["screen", str(tmp_path / "runs")]) == 2
    assert "holds 2 runs" in capsys.readouterr().err
    assert main(["screen", str(tmp_path / "nothing")]) == 2
