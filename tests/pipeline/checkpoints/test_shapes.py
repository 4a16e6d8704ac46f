from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.checkpoints import Found, discover

Save = Callable[..., Path]


def only(path: Path) -> Found:
    (found,) = discover(path)
    return found


@pytest.mark.parametrize(
    ("file", "step", "cure"),
    [
        ("global_step_20/actor/model_world_size_2_rank_0.pt", 20, "verl.model_merger"),
        ("checkpoints/step_7/trainer/__0_0.distcp", 7, "dcp_to_hf.py"),
        ("checkpoint-9/pytorch_model_fsdp_0/__0_0.distcp", 9, "merge-weights"),
        ("_actor/global_step5/mp_rank_00_model_states.pt", 5, "zero_to_fp32.py"),
        ("checkpoint-9/global_step9/mp_rank_00_model_states.pt", 9, "zero_to_fp32.py"),
        ("step_3/pytorch_model-00001-of-00002.bin", 3, "save_pretrained"),
        ("d12/model_000300.pt", 300, "save_pretrained"),
        ("weights/step_10/model.safetensors", 10, "link it as checkpoint-10"),
        ("weights/step_10.tmp/model.safetensors", 10, "link it as checkpoint-10"),
        ("global_step40_hf/model.safetensors", 40, "link it as checkpoint-40"),
        ("checkpoint-007/model.safetensors", 7, "link it as checkpoint-7"),
        ("tmp-checkpoint-12/model.safetensors", 12, "once it is finished"),
        ("exported/__0_0.distcp", -1, "DCP"),
    ],
)
def test_what_no_layout_reads_is_listed_with_its_step_and_cure(
    tmp_path: Path, file: str, step: int, cure: str
) -> None:
    path = tmp_path / "run" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    found = only(tmp_path / "run")
    assert (found.step, found.status) == (step, "skipped")
    assert cure in found.why


def test_a_model_in_an_unknown_step_folder_never_passes_for_the_base(
    tmp_path: Path, full: Save
) -> None:
    for step in (10, 20):
        full(tmp_path / f"run/weights/step_{step}")
    found = discover(tmp_path / "run")
    assert [(f.run, f.step, f.status) for f in found] == [
        ("weights", 10, "skipped"),
        ("weights", 20, "skipped"),
    ]
    assert only(tmp_path / "run/weights/step_20").status == "skipped"


def test_an_empty_checkpoint_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "run/checkpoint-3").mkdir(parents=True)
    assert "no weights" in only(tmp_path / "run").why


def test_a_link_that_leads_nowhere_is_listed(tmp_path: Path, full: Save) -> None:
    full(tmp_path / "run/checkpoint-1", state=1)
    (tmp_path / "run/checkpoint-2").symlink_to("gone")
    (tmp_path / "run/checkpoint-3").symlink_to("checkpoint-3")
    found = discover(tmp_path / "run")
    assert [f.status for f in found] == ["ok", "skipped", "skipped"]
    assert "leads nowhere" in found[1].why


def test_a_run_may_be_called_after_a_step(tmp_path: Path, full: Save) -> None:
    full(tmp_path / "iter3")
    full(tmp_path / "iter3/checkpoint-1", state=1)
    (tmp_path / "step_1/logs").mkdir(parents=True)
    found = only(tmp_path)
    assert (found.run, found.step, found.status) == ("iter3", 1, "ok")
