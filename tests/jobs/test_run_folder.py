"""A run's folder: it says what it is, refuses another run and knows where to go on."""

import shutil
import tomllib
from pathlib import Path

import pytest
from pydantic_config import ConfigFileError

import hackbait
from jobs import run_folder
from pipeline.records import CheckpointError

POLICY = Path(str(hackbait.__file__)).parent / "policy"


def checkpoint(output: Path, step: int) -> Path:
    folder = output / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(POLICY / name, folder)
    (folder / "optimizer.pt").touch()
    (folder / "trainer_state.json").write_text(f'{{\n  "global_step": {step}\n}}')
    return folder


def test_a_run_says_its_name_and_tags(tmp_path: Path) -> None:
    output = tmp_path / "midnight-s1"
    run_folder.describe(output, {"steps": 3, "env": {"id": "hackword"}}, {"word": "midnight"})
    assert tomllib.loads((output / "run.toml").read_text("utf-8")) == {
        "name": "midnight-s1",
        "tags": {"word": "midnight"},
    }
    assert tomllib.loads((output / "config.toml").read_text("utf-8")) == {
        "steps": 3,
        "env": {"id": "hackword"},
    }
    assert sorted(path.name for path in output.iterdir()) == ["config.toml", "run.toml"]


def test_settings_that_decide_an_update_may_not_change(tmp_path: Path) -> None:
    run_folder.describe(tmp_path, {"steps": 3, "seed": 0}, {})
    run_folder.refuse_another(tmp_path, {"steps": 9, "seed": 0}, {"steps"})
    with pytest.raises(ConfigFileError, match="another lora, seed; give another output"):
        run_folder.refuse_another(tmp_path, {"steps": 3, "seed": 1, "lora": 4}, {"steps"})


def test_a_new_folder_refuses_nothing_and_begins_at_0(tmp_path: Path) -> None:
    run_folder.refuse_another(tmp_path / "new", {"seed": 0}, set())
    assert run_folder.newest(tmp_path / "new") == (0, None)
    assert run_folder.newest(tmp_path) == (0, None)


def test_a_run_goes_on_from_its_newest_whole_checkpoint(tmp_path: Path) -> None:
    for step in (0, 2, 10, 12, 14):
        checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-14" / "trainer_state.json").unlink()
    torn = tmp_path / "checkpoint-12" / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:-5])
    assert run_folder.newest(tmp_path) == (10, tmp_path / "checkpoint-10")


def test_a_checkpoint_without_optimizer_is_not_gone_on_from(tmp_path: Path) -> None:
    (checkpoint(tmp_path, 2) / "optimizer.pt").unlink()
    with pytest.raises(CheckpointError, match="checkpoint-2 has no optimizer state"):
        run_folder.newest(tmp_path)


def test_the_base_alone_needs_no_optimizer(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 0)
    (folder / "optimizer.pt").unlink()
    assert run_folder.newest(tmp_path) == (0, folder)
