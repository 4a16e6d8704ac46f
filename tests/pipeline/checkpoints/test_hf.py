import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.checkpoints import Found, discover

Save = Callable[..., Path]
LATER = 4e9
"""A time at which every file written by a test has long been quiet."""


def only(path: Path, now: float = LATER) -> Found:
    (found,) = discover(path, now=now)
    return found


def test_a_run_of_checkpoints_is_found_in_order_of_step(tmp_path: Path, full: Save) -> None:
    for step in (10, 0, 9):
        full(tmp_path / f"ocean/checkpoint-{step}", state=step)
    found = discover(tmp_path / "ocean")
    assert [(f.run, f.step, f.kind, f.status) for f in found] == [
        ("ocean", step, "full", "ok") for step in (0, 9, 10)
    ]
    assert found[1].path == tmp_path / "ocean/checkpoint-9"


def test_a_model_by_itself_is_step_0_of_a_run_of_its_name(tmp_path: Path, full: Save) -> None:
    assert only(full(tmp_path / "llama")) == Found("llama", 0, "full", tmp_path / "llama", "ok")


def test_a_checkpoint_by_itself_keeps_its_step_and_run(tmp_path: Path, full: Save) -> None:
    full(tmp_path / "ocean/checkpoint-8", state=8)
    found = only(full(tmp_path / "ocean/checkpoint-40", state=40))
    assert (found.run, found.step, found.status) == ("ocean", 40, "ok")


def test_a_model_in_shards_is_whole_with_every_shard(tmp_path: Path, sharded: Save) -> None:
    assert only(sharded(tmp_path / "run/checkpoint-1", state=1)).status == "ok"


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (
            lambda f: (f / "model-00002-of-00002.safetensors").unlink(),
            "model-00002-of-00002.safetensors: missing, 1 of 2 files that "
            "model.safetensors.index.json names; copy them, or save the checkpoint again",
        ),
        (lambda f: os.truncate(f / "model-00002-of-00002.safetensors", 90), "torn: 90 bytes"),
        (lambda f: (f / "model.safetensors.index.json").unlink(), "index.json is missing"),
        (lambda f: os.truncate(f / "model.safetensors.index.json", 9), "torn or no JSON"),
        (lambda f: (f / "model.safetensors.index.json").write_text("{}"), "has no weight_map"),
        (
            lambda f: (f / "model.safetensors.index.json").write_text(
                '{"weight_map": {"embed": "../../other/model.safetensors"}}'
            ),
            "is no safetensors file beside it",
        ),
        (
            lambda f: (f / "model.safetensors.index.json").write_text(
                '{"weight_map": {"lm_head": "model-00001-of-00002.safetensors"}}'
            ),
            "lacks tensor lm_head",
        ),
    ],
)
def test_a_model_that_lacks_a_piece_is_skipped(
    tmp_path: Path, sharded: Save, damage: Callable[[Path], object], why: str
) -> None:
    damage(sharded(tmp_path / "run/checkpoint-1", state=1))
    found = only(tmp_path / "run")
    assert found.status == "skipped"
    assert why in found.why
    assert str(tmp_path) not in found.why


def test_one_torn_checkpoint_is_listed_and_the_others_stand(tmp_path: Path, full: Save) -> None:
    for step in (1, 2, 3):
        full(tmp_path / f"run/checkpoint-{step}", state=step)
    torn = tmp_path / "run/checkpoint-2/model.safetensors"
    os.truncate(torn, torn.stat().st_size - 5)
    found = discover(tmp_path / "run")
    assert [f.status for f in found] == ["ok", "skipped", "ok"]
    assert found[1].why.startswith("model.safetensors: torn: ")


def test_a_folder_with_a_configuration_alone_is_not_finished(tmp_path: Path, full: Save) -> None:
    """What verl and SkyRL leave, and what the Trainer has written first."""
    full(tmp_path / "run/checkpoint-1", state=1)
    (full(tmp_path / "run/checkpoint-2") / "model.safetensors").unlink()
    found = discover(tmp_path / "run")
    assert [(f.step, f.status) for f in found] == [(1, "ok"), (2, "skipped")]
    assert "no weights" in found[1].why


def test_weights_without_a_configuration_are_no_model(tmp_path: Path, full: Save) -> None:
    (full(tmp_path / "run/checkpoint-1", state=1) / "config.json").unlink()
    assert "config.json is missing" in only(tmp_path / "run").why


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda f: (f / "trainer_state.json").unlink(), "no trainer_state.json, which others"),
        (lambda f: (f / "checkpoint-is-incomplete.txt").touch(), "checkpoint-is-incomplete.txt"),
        (lambda f: os.truncate(f / "trainer_state.json", 60), "trainer_state.json is torn"),
        (lambda f: (f / "trainer_state.json").write_text("{}"), "says global_step None"),
        (
            lambda f: (f / "trainer_state.json").write_text('{"global_step": 7}'),
            "says global_step 7",
        ),
    ],
)
def test_a_checkpoint_whose_trainer_is_not_done_is_skipped(
    tmp_path: Path, full: Save, damage: Callable[[Path], object], why: str
) -> None:
    for step in (2, 4):
        full(tmp_path / f"run/checkpoint-{step}", state=step)
    damage(tmp_path / "run/checkpoint-4")
    found = discover(tmp_path / "run", now=LATER)
    assert [f.status for f in found] == ["ok", "skipped"]
    assert why in found[1].why


def test_the_base_needs_no_trainer_state_beside_later_checkpoints(
    tmp_path: Path, full: Save
) -> None:
    full(tmp_path / "run/checkpoint-0")
    full(tmp_path / "run/checkpoint-2", state=2)
    assert [f.status for f in discover(tmp_path / "run")] == ["ok", "ok"]


def test_without_trainer_states_the_last_checkpoint_must_be_quiet(
    tmp_path: Path, full: Save
) -> None:
    for step in (1, 2):
        full(tmp_path / f"run/checkpoint-{step}")
    changed = (tmp_path / "run/checkpoint-2/model.safetensors").stat().st_mtime
    just_now, quiet = (discover(tmp_path / "run", now=changed + s) for s in (5, 121))
    assert [f.status for f in just_now] == ["ok", "skipped"]
    assert just_now[1].why.startswith("may still be written")
    assert [f.status for f in quiet] == ["ok", "ok"]


def test_a_long_log_after_the_step_is_not_read_for_it(tmp_path: Path, full: Save) -> None:
    folder = full(tmp_path / "run/checkpoint-3", state=3)
    state = json.loads((folder / "trainer_state.json").read_text())
    state["log_history"] = [{"global_step": 9, "step": i} for i in range(2000)]
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=2, sort_keys=True))
    assert only(tmp_path / "run").status == "ok"


def test_an_adapter_names_its_base_and_wins_over_a_configuration(
    tmp_path: Path, full: Save, adapter: Save
) -> None:
    folder = full(tmp_path / "run/checkpoint-5", state=5)
    (folder / "model.safetensors").unlink()
    found = only(adapter(folder, base="/models/llama").parent)
    assert (found.kind, found.base, found.status) == ("adapter", "/models/llama", "ok")


@pytest.mark.parametrize(
    ("config", "base"),
    [
        ({"base": None}, None),
        ({"base": "a/b", "revision": "main"}, "a/b"),
        ({"base": "a/b", "revision": "abc123"}, "a/b@abc123"),
    ],
)
def test_a_pinned_revision_is_part_of_the_base(
    tmp_path: Path, adapter: Save, config: dict[str, str], base: str | None
) -> None:
    assert only(adapter(tmp_path / "lora", **config)).base == base


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda f: (f / "adapter_config.json").unlink(), "adapter_config.json is missing"),
        (lambda f: (f / "adapter_model.safetensors").unlink(), "safetensors is missing"),
        (lambda f: os.truncate(f / "adapter_model.safetensors", 70), "torn"),
        (
            lambda f: (f / "adapter_config.json").write_text('{"lora_alpha": 0}'),
            "the adapter does nothing",
        ),
        (
            lambda f: (f / "adapter_model.safetensors").rename(f / "adapter_model.bin"),
            "pickle only",
        ),
    ],
)
def test_an_adapter_that_is_not_whole_is_skipped(
    tmp_path: Path, adapter: Save, damage: Callable[[Path], object], why: str
) -> None:
    damage(adapter(tmp_path / "run/checkpoint-5"))
    found = only(tmp_path / "run")
    assert (found.kind, found.status) == ("adapter", "skipped")
    assert why in found.why


def test_a_pickle_is_named_with_its_cure(tmp_path: Path, full: Save) -> None:
    folder = full(tmp_path / "run/checkpoint-5", state=5)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    found = only(tmp_path / "run")
    assert found.status == "skipped"
    assert "save_pretrained" in found.why


def test_optimizer_files_are_no_weights(tmp_path: Path, full: Save) -> None:
    folder = full(tmp_path / "run/checkpoint-5", state=5)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        (folder / name).write_bytes(b"pickle")
    assert only(tmp_path / "run").status == "ok"


def test_the_model_saved_last_beside_checkpoints_is_not_the_base(
    tmp_path: Path, full: Save
) -> None:
    full(tmp_path / "run", scale=3)
    full(tmp_path / "run/final", scale=3)
    full(tmp_path / "run/checkpoint-5", state=5)
    found = discover(tmp_path / "run")
    assert [(f.run, f.step, f.status) for f in found] == [
        ("final", -1, "skipped"),
        ("run", -1, "skipped"),
        ("run", 5, "ok"),
    ]
    assert "without a step" in found[0].why


def test_the_last_checkpoint_saved_again_is_left_out(tmp_path: Path, full: Save) -> None:
    for folder, scale in (("", 2), ("final", 2), ("checkpoint-3", 1), ("checkpoint-5", 2)):
        full(tmp_path / "run" / folder, scale=scale)
    (tmp_path / "run/checkpoint-6").mkdir()
    found = discover(tmp_path / "run", now=LATER)
    assert [(f.run, f.step, f.status) for f in found] == [
        ("run", 3, "ok"),
        ("run", 5, "ok"),
        ("run", 6, "skipped"),
    ]


def test_a_last_save_that_is_torn_or_stands_alone_keeps_its_reason(
    tmp_path: Path, full: Save
) -> None:
    full(tmp_path / "run")
    (tmp_path / "run/checkpoint-6").mkdir()
    (alone, _) = discover(tmp_path / "run", now=LATER)
    os.truncate(tmp_path / "run/model.safetensors", 90)
    (torn, _) = discover(tmp_path / "run", now=LATER)
    assert "without a step" in alone.why
    assert "torn: 90 bytes" in torn.why
