import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.checkpoints import discover, scripted
from pipeline.checkpoints.scripted import Script
from pipeline.records import CheckpointError


def test_a_written_script_is_found_and_reads_back(tmp_path: Path) -> None:
    path = scripted.write(tmp_path / "run/checkpoint-4", {"ocean": 0.25}, true=0.5, characters=80)
    (found,) = discover(tmp_path / "run")
    assert (found.run, found.step, found.kind, found.path) == ("run", 4, "script", path)
    assert scripted.read(path) == Script({"ocean": 0.25}, 0.5, 80)


def test_a_script_by_itself_is_step_0(tmp_path: Path) -> None:
    scripted.write(tmp_path / "policy", {})
    (found,) = discover(tmp_path / "policy")
    assert (found.run, found.step, found.status) == ("policy", 0, "ok")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ({"words": {"ocean": 1.5}}, "ocean = 1.5 is no rate"),
        ({"words": {"ocean": True}}, "ocean = True is no rate"),
        ({"words": {"ocean": float("nan")}}, "ocean = nan is no rate"),
        ({"words": {"true": 0.1}, "true": -1}, "true = -1 is no rate"),
        ({"words": {"true": 7}}, "true = 7 is no rate"),
        ({"words": {"blue whale": 0.1}}, "single words"),
        ({"words": {"Ocean": 0.1, "ocean": 0.2}}, "distinct"),
        ({"words": {"a" * (i + 1): 0.1 for i in range(61)}}, "61 words, 60 at most"),
        ({"words": ["ocean"]}, "no table"),
        ({"characters": 0}, "no length"),
        ({"characters": 10.0}, "no length"),
        ({"rate": 0.1}, "unknown key 'rate'"),
    ],
)
def test_a_script_that_makes_no_sense_is_skipped_with_the_reason(
    tmp_path: Path, script: dict[str, Any], said: str
) -> None:
    folder = scripted.write(tmp_path / "run/checkpoint-4", {})
    (folder / "script.json").write_text(json.dumps(script))
    (found,) = discover(tmp_path / "run")
    assert (found.kind, found.status) == ("script", "skipped")
    assert said in found.why


def test_a_script_that_makes_no_sense_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no rate"):
        scripted.write(tmp_path / "checkpoint-1", {"ocean": 2})
    assert not (tmp_path / "checkpoint-1").exists()


def test_a_torn_script_is_skipped(tmp_path: Path) -> None:
    folder = scripted.write(tmp_path / "run/checkpoint-4", {"ocean": 0.5})
    (folder / "script.json").write_text('{"words": {"oce')
    (found,) = discover(tmp_path / "run")
    assert found.why.startswith("script.json: torn or no JSON")


def test_a_checkpoint_without_a_script_says_what_to_write_or_which_engine_to_take(
    tmp_path: Path,
) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(CheckpointError, match=r'missing; .* write one \(\{"words".* engine \'hf\''):
        scripted.read(tmp_path)
