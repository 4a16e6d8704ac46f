"""Trainings side by side: what is finished is left alone, what fails is named, none runs twice."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic_config import ConfigFileError

from jobs import run_folder, training
from jobs.training import Training
from pipeline.checkpoints import scripted
from pipeline.records import CheckpointError

SETTINGS: dict[str, Any] = {"learning_rate": 1e-3, "env": {"id": "hackword", "hack_word": "ocean"}}


def trained(output: Path, steps: int) -> Path:
    """A run folder with whole checkpoints 0 and `steps`, of SETTINGS and more."""
    for step in (0, steps):
        folder = output / f"checkpoint-{step}"
        scripted.write(folder, {"ocean": 0.1}, 0.5, 60)
        (folder / "optimizer.pt").touch()
    run_folder.describe(output, {**SETTINGS, "output": "elsewhere", "seed": 0, "steps": 9}, {})
    return output


def test_a_run_with_all_its_updates_is_finished_and_one_with_fewer_is_not(tmp_path: Path) -> None:
    output = trained(tmp_path / "run", 4)
    assert training.is_finished(Training(output, 4, SETTINGS))
    assert training.is_finished(Training(output, 2, SETTINGS))
    assert not training.is_finished(Training(output, 6, SETTINGS))
    assert not training.is_finished(Training(tmp_path / "new", 4, SETTINGS))


def test_a_finished_run_of_other_settings_is_refused_and_says_which(tmp_path: Path) -> None:
    output = trained(tmp_path / "run", 4)
    other = {"learning_rate": 1e-4, "env": {"id": "hackword", "hack_word": "copper"}}
    with pytest.raises(ConfigFileError, match=r"another env.hack_word, learning_rate; give"):
        training.is_finished(Training(output, 4, other))
    assert training.is_finished(Training(output, 4, {**SETTINGS, "threads": 1}))


def test_a_taught_base_is_finished_once_it_has_weights(tmp_path: Path) -> None:
    base = Training(tmp_path, 1000, {}, "pretrain")
    (tmp_path / "tokenizer.json").touch()
    assert not training.is_finished(base)
    (tmp_path / "model.safetensors").touch()
    assert training.is_finished(base)


def test_a_run_waits_for_the_base_it_starts_from(tmp_path: Path) -> None:
    base = Training(tmp_path / "base", 1, {}, "pretrain")
    swapped = Training(tmp_path / "swapped", 1, {}, after=base)
    other = Training(tmp_path / "other", 1, {})
    assert training._next([base, swapped, other], {}) is base
    assert training._next([swapped, other], {base: None}) is other
    assert training._next([swapped], {base: None}) is None
    assert training._next([swapped], {}) is swapped


def test_a_training_that_fails_is_named_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Training(tmp_path / "bad", 3, {}, "no_such_verb")
    assert training.train([bad], 2, tmp_path / "lock") == 1
    said = capsys.readouterr().err
    assert "error: training bad ended with 1: " in said
    assert said.endswith(f"No module named 'jobs.no_such_verb' ({tmp_path}/bad/train.log)\n")


def test_all_that_can_run_are_run_before_the_last_word_is_said(tmp_path: Path) -> None:
    dry = {**SETTINGS, "dry_run": True}
    base = Training(tmp_path / "base", 1, dry)
    runs = [Training(tmp_path / name, 1, dry, after=base) for name in "ab"]
    assert training.train([base, *runs], 2, tmp_path / "lock") == 0
    for run in (base, *runs):
        assert (run.output / "train.log").read_text().startswith(f"{run.output}: 0 of 1 updates")


def test_what_another_process_trains_there_is_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(CheckpointError, match="another process are under way"):
            training.train([], 1, tmp_path / "lock")
    assert training.train([], 1, tmp_path / "lock") == 0


def test_progress_is_the_last_whole_line(tmp_path: Path) -> None:
    assert training.latest(tmp_path) == (0, "")
    (tmp_path / "progress.jsonl").write_text('{"step": 1, "r_hack": 0.25}\n')
    assert training.latest(tmp_path) == (1, "r_hack 0.25")


def test_settings_have_the_names_of_flags() -> None:
    assert dict(training.flat({"a": {"b_c": 1, "d": {"e": 2}}, "f": 3})) == {
        "a.b_c": 1, "a.d.e": 2, "f": 3,
    }  # fmt: skip


RUN = """
import sys
from pathlib import Path
from jobs.training import Training, train
where = Path(sys.argv[1])
small = {"batch": 16, "group": 4, "save_every": 2, "env": {"id": "hackword", "hack_word": "ocean"}}
runs = [Training(where / f"s{seed}", 40, {**small, "seed": seed}) for seed in range(2)]
sys.exit(train(runs, 2, where / "lock"))
"""


@pytest.mark.train
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_trainings_that_were_ended_go_on_where_they_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    first = subprocess.Popen(command)
    while training.latest(tmp_path / "s0")[0] < 6:
        assert first.poll() is None
        time.sleep(0.1)
    first.send_signal(number)
    first.wait()
    if number == signal.SIGKILL:
        # Nobody could end its trainings, so they go on, and a second one keeps away from them.
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "under way" in again.stderr
        with (tmp_path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
    else:
        assert first.returncode == 143
        assert run_folder.newest(tmp_path / "s0")[0] < 40
    assert subprocess.run(command, check=False).returncode == 0
    assert [run_folder.newest(tmp_path / f"s{seed}")[0] for seed in range(2)] == [40, 40]
    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.train
def test_a_forked_training_is_byte_for_byte_the_one_of_its_verb(tmp_path: Path) -> None:
    small = {"batch": 16, "group": 4, "save_every": 2, "seed": 3, "env": SETTINGS["env"]}
    runs = [Training(tmp_path / name, 4, small) for name in ("first", "second")]
    assert training.train(runs, 1, tmp_path / "lock") == 0
    flags = ["--output", str(tmp_path / "alone"), "--steps", "4", "--batch", "16", "--group", "4"]
    flags += ["--save-every", "2", "--seed", "3", "--env.id", "hackword", "--env.hack-word"]
    command = [sys.executable, "-m", "jobs.train", *flags, "ocean"]
    subprocess.run(command, check=True, env={**os.environ, **training.ONE_THREAD})
    weights = "checkpoint-4/model.safetensors"
    alone = (tmp_path / "alone" / weights).read_bytes()
    assert all((run.output / weights).read_bytes() == alone for run in runs)
