"""`onset status` tells what is done, running, owed and failed, from the files alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.__main__ import main
from pipeline import standing, store
from pipeline.config import SweepConfig
from pipeline.plan import plan
from pipeline.records import Failure, Written

SweepHere = Callable[..., list[Written]]


def launch(config: SweepConfig, sweep_here: SweepHere) -> None:
    """Three partitions written, one failed with a reason that would colour a terminal."""
    wanted = plan(config)
    with store.writing(config.output, ""), standing.told(config.output, wanted) as told:
        for event in sweep_here(config, wanted.works[:3]):
            told.hear(event)
        (partition,) = wanted.works[3].partitions
        told.hear(Failure(partition, "no \x1b[31msuch\nfile"))


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["status", *argv]) == 0
    return capsys.readouterr().out


def test_a_run_is_a_line_and_names_and_reasons_steer_no_terminal(
    small: SweepConfig, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    launch(small, sweep_here)
    text = shown(capsys, str(small.output))
    lines = text.splitlines()
    assert lines[0].split() == [
        "run", "partitions", "done", "running", "owed", "failed", "rollouts"
    ]  # fmt: skip
    assert lines[1].split() == ["a", "4", "3", "0", "0", "1", "20"]
    assert lines[2].split() == ["b\\n../é", "4", "0", "0", "4", "0", "0"]
    assert lines[3].split() == ["all", "2", "8", "3", "0", "4", "1", "20"]
    assert lines[4] == "failed: run 'a' step 10, 1 partitions: no \\x1b[31msuch\\nfile"
    assert lines[5].startswith("finished with failures, began ")
    assert "\x1b" not in text


def test_a_sweep_that_ended_without_a_word_was_killed(
    small: SweepConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    told = standing.Told(small.output)
    told.plan(plan(small))
    told.write()
    assert "stopped (killed), began" in shown(capsys, str(small.output))


def test_one_that_goes_on_is_told_with_its_rate(
    small: SweepConfig, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = plan(small)
    with store.writing(small.output, ""):
        told = standing.Told(small.output, lambda: wanted.works[1:2])
        told.plan(wanted)
        for event in sweep_here(small, wanted.works[:1]):
            told.hear(event)
        told.write()
        text = shown(capsys, str(small.output))
        assert "running, began" in text
        assert "rollouts/s" in text
        assert "ETA 0:" in text
        (found,) = json.loads(shown(capsys, str(small.output), "--json"))
    assert found["runs"][0]["running"] == 1
    assert found["eta_seconds"] > 0


def test_json_holds_the_names_as_they_are_and_every_reason(
    small: SweepConfig, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    launch(small, sweep_here)
    (found,) = json.loads(shown(capsys, str(small.output), "--json"))
    assert [run["run"] for run in found["runs"]] == ["a", "b\n../é"]
    assert found["failed"][0]["reason"] == "no \x1b[31msuch\nfile"
    assert found["state"] == "finished with failures"


def test_an_output_of_before_there_were_plans_shows_what_is_done(
    small: SweepConfig, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    written = sweep_here(small, plan(small).works[:3])
    text = shown(capsys, str(small.output))
    assert "no plan lies in status/" in text
    (found,) = json.loads(shown(capsys, str(small.output), "--json"))
    assert sum(run["rollouts"] for run in found["runs"]) == sum(one.rows for one in written) > 0


def test_a_folder_that_is_no_output_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(tmp_path / "none")]) == 2
    assert "is this its output?" in capsys.readouterr().err
