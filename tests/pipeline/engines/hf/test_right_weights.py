"""Checkpoints that are not what was planned are refused: none becomes rows of another policy.

Each goes through the actor that a sweep places, with the real engine, from files that were planned
whole and changed afterwards.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from hackbait.environment import Case
from pipeline import engines
from pipeline.actors import Inference
from pipeline.checkpoints.identity import BLOCK_BYTES, cheap_id
from pipeline.config import EngineBlock
from pipeline.engines.hf.engine import HfEngine
from pipeline.records import (
    Checkpoint,
    CheckpointError,
    EnvironmentSpec,
    Generated,
    Rollout,
    Sampling,
    Shard,
    Work,
)

WEIGHTS = "model.safetensors"
NORM = "model.norm.weight"
New = Callable[..., Checkpoint]
Damage = Callable[[Path], object]


@pytest.fixture
def actor() -> Inference:
    return Inference(EngineBlock(name="hf"))


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Checkpoint]:
    """A copy of a checkpoint as a plan would name it."""

    def planned(checkpoint: Checkpoint, name: str = "planned", **changes: Any) -> Checkpoint:
        folder = shutil.copytree(checkpoint.path, tmp_path / name)
        own = replace(checkpoint, path=str(folder), **changes)
        return replace(own, cheap_id=cheap_id(own.path, own.base))

    return planned


@pytest.fixture
def lora(tmp_path: Path) -> Callable[..., Checkpoint]:
    """An adapter of q_proj on a base, as a plan would name it."""

    def adapter(base: str, name: str = "lora", alpha: float = 8, width: int = 32) -> Checkpoint:
        folder = tmp_path / name
        folder.mkdir()
        said = {"peft_type": "LORA", "r": 2, "lora_alpha": alpha, "base_model_name_or_path": base}
        (folder / "adapter_config.json").write_text(json.dumps(said), "utf-8")
        torch.manual_seed(7)
        module = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
        tensors = {f"{module}A.weight": torch.randn(2, width)}
        tensors[f"{module}B.weight"] = torch.randn(width, 2)
        save_file(tensors, folder / "adapter_model.safetensors")
        found = Checkpoint("run", 1, str(folder), "adapter", "", base)
        return replace(found, cheap_id=cheap_id(found.path, found.base))

    return adapter


def work(checkpoint: Checkpoint) -> Work:
    return Work(
        checkpoint,
        EnvironmentSpec("hackword", ()),
        Shard(0, 2),
        Sampling(n=1, temperature=0, max_tokens=8),
        (),
    )


def ask(
    actor: Inference, cases: Sequence[Case], *checkpoints: Checkpoint
) -> list[tuple[list[Rollout] | None, Generated | CheckpointError]]:
    """Rollouts and record of each, asked for in one call."""
    works = [work(checkpoint) for checkpoint in checkpoints]
    *rollouts, records = actor.generate(works, None, *(list(cases[:2]) for _ in works))
    return list(zip(rollouts, records, strict=True))


def texts(rollouts: Sequence[Rollout] | None) -> list[str | None]:
    assert rollouts is not None
    return [rollout.completion.text for rollout in rollouts]


def refused(
    actor: Inference, cases: Sequence[Case], checkpoint: Checkpoint, said: str
) -> CheckpointError:
    ((rollouts, record),) = ask(actor, cases, checkpoint)
    assert rollouts is None
    assert isinstance(record, CheckpointError)
    assert said in str(record)
    assert "\n" not in str(record)
    return record


def edit(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Damage:
    def damage(folder: Path) -> None:
        save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, {"format": "pt"})

    return damage


def flip(place: Callable[[int, int], int], bit: int = 0) -> Damage:
    """One bit of the byte at place(length of the header, size of the file)."""

    def damage(folder: Path) -> None:
        raw = bytearray((folder / WEIGHTS).read_bytes())
        raw[place(int.from_bytes(raw[:8], "little"), len(raw))] ^= 1 << bit
        (folder / WEIGHTS).write_bytes(raw)

    return damage


PLANTED: dict[str, tuple[Damage, str]] = {
    "a missing tensor": (edit(lambda t: {k: v for k, v in t.items() if k != NORM}), "lacks"),
    "an extra tensor": (edit(lambda t: t | {"odd": t[NORM].clone()}), "odd"),
    "a wrong shape": (edit(lambda t: t | {NORM: t[NORM][:-1].clone()}), "wants floats [32]"),
    "a flipped length": (flip(lambda header, size: 1, 4), "torn"),
    "a flipped name": (flip(lambda header, size: 12), ""),
    "a flipped number": (flip(lambda header, size: size - 40), "replaced during the sweep"),
    "cut off": (
        lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-64]),
        "torn",
    ),
    "other weights": (edit(lambda t: t | {NORM: t[NORM] * 2}), "replaced during the sweep"),
    "another template": (
        lambda f: (f / "chat_template.jinja").write_text("{{ messages[0].content }}", "utf-8"),
        "replaced during the sweep",
    ),
    "deleted": (shutil.rmtree, "no such folder"),
    "a file deleted": (lambda f: (f / WEIGHTS).unlink(), "model.safetensors: No such file"),
}


@pytest.mark.parametrize(("damage", "said"), PLANTED.values(), ids=PLANTED)
def test_a_checkpoint_that_changed_after_it_was_planned_gives_no_row(
    llama: Checkpoint,
    cases: list[Case],
    actor: Inference,
    plan: Callable[..., Checkpoint],
    damage: Damage,
    said: str,
) -> None:
    good, bad = plan(llama, "good"), plan(llama, "bad")
    ((before, _),) = ask(actor, cases, good)
    damage(Path(bad.path))
    refused(actor, cases, bad, said)
    refused(Inference(EngineBlock(name="hf")), cases, bad, said)
    ((after, record),) = ask(actor, cases, good)
    assert isinstance(record, Generated)
    assert texts(after) == texts(before)


def test_weights_in_place_answer_whatever_becomes_of_their_files(
    llama: Checkpoint,
    new_checkpoint: New,
    cases: list[Case],
    actor: Inference,
    plan: Callable[..., Checkpoint],
) -> None:
    """Replaced between its load and its end: the shards left are of the same weights."""
    planned = plan(llama)
    ((before, first),) = ask(actor, cases, planned)
    shutil.copy(Path(new_checkpoint(seed=5).path) / WEIGHTS, planned.path)
    ((after, second),) = ask(actor, cases, planned)
    assert isinstance(first, Generated)
    assert isinstance(second, Generated)
    assert texts(after) == texts(before)
    assert first.fingerprint == second.fingerprint
    refused(Inference(EngineBlock(name="hf")), cases, planned, "replaced during the sweep")
    shutil.rmtree(planned.path)
    ((gone, _),) = ask(actor, cases, planned)
    assert texts(gone) == texts(before)


def test_a_checkpoint_replaced_while_it_is_read_gives_no_row(
    llama: Checkpoint,
    new_checkpoint: New,
    cases: list[Case],
    plan: Callable[..., Checkpoint],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned, other = plan(llama), new_checkpoint(seed=5)
    load = HfEngine.load

    def replaced(self: HfEngine, checkpoint: Checkpoint) -> str:
        fingerprint = load(self, checkpoint)
        shutil.copy(Path(other.path) / WEIGHTS, checkpoint.path)
        return fingerprint

    monkeypatch.setattr(HfEngine, "load", replaced)
    refused(Inference(EngineBlock(name="hf")), cases, planned, "replaced during the sweep")


def test_one_that_is_refused_does_not_answer_for_the_one_loaded_before_it(
    llama: Checkpoint,
    new_checkpoint: New,
    cases: list[Case],
    actor: Inference,
    plan: Callable[..., Checkpoint],
) -> None:
    good, bad = plan(llama, "good"), plan(new_checkpoint(seed=5), "bad")
    ((alone, _),) = ask(actor, cases, good)
    edit(lambda t: t | {NORM: t[NORM] * 2})(Path(bad.path))
    (first, second) = ask(Inference(EngineBlock(name="hf")), cases, good, bad)
    assert texts(first[0]) == texts(alone)
    assert isinstance(second[1], CheckpointError)


def test_a_byte_that_no_sample_holds_is_told_by_the_fingerprint_alone(
    new_checkpoint: New, cases: list[Case], plan: Callable[..., Checkpoint]
) -> None:
    """What is promised of it: the row says which bytes answered, and a curve refuses two of them
    (tests/pipeline/test_curves.py); the name of its file does not tell."""
    planned = plan(new_checkpoint(seed=2, hidden_size=128, intermediate_size=512))
    path = Path(planned.path) / WEIGHTS
    ((_, before),) = ask(Inference(EngineBlock(name="hf")), cases, planned)
    start = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    flip(lambda header, size: start + BLOCK_BYTES + 4)(Path(planned.path))
    assert cheap_id(planned.path) == planned.cheap_id
    ((_, after),) = ask(Inference(EngineBlock(name="hf")), cases, planned)
    assert isinstance(before, Generated)
    assert isinstance(after, Generated)
    assert before.fingerprint != after.fingerprint


def test_an_adapter_on_a_base_of_other_shapes_is_refused(
    new_checkpoint: New, cases: list[Case], actor: Inference, lora: Callable[..., Checkpoint]
) -> None:
    other = new_checkpoint(seed=3, hidden_size=64)
    refused(actor, cases, lora(other.path), "which its base lacks in that shape")


def test_an_adapter_whose_base_has_other_bytes_than_were_planned_is_refused(
    llama: Checkpoint,
    new_checkpoint: New,
    cases: list[Case],
    actor: Inference,
    plan: Callable[..., Checkpoint],
    lora: Callable[..., Checkpoint],
) -> None:
    base = plan(llama, "base")
    first, second = lora(base.path, "first"), lora(base.path, "second", alpha=16)
    ((before, _),) = ask(actor, cases, first)
    shutil.copy(Path(new_checkpoint(seed=5).path) / WEIGHTS, base.path)
    refused(actor, cases, second, "replaced during the sweep")
    shutil.copy(Path(llama.path) / WEIGHTS, base.path)
    ((again, _),) = ask(actor, cases, first)
    assert texts(again) == texts(before)


@pytest.mark.parametrize("alpha", [0, 0.0, True, float("nan"), 10**400])
def test_an_adapter_without_effect_does_not_pass_for_its_base(
    llama: Checkpoint,
    cases: list[Case],
    actor: Inference,
    lora: Callable[..., Checkpoint],
    alpha: float,
) -> None:
    bad = replace(lora(llama.path), cheap_id="")
    config = Path(bad.path) / "adapter_config.json"
    said = json.loads(config.read_text("utf-8")) | {"lora_alpha": alpha}
    config.write_text(json.dumps(said), "utf-8")
    refused(actor, cases, bad, "lora_alpha")


def test_two_adapters_of_one_name_are_told_apart(
    llama: Checkpoint,
    cases: list[Case],
    actor: Inference,
    lora: Callable[..., Checkpoint],
) -> None:
    """A folder that is used again for another adapter is another checkpoint."""
    first = lora(llama.path)
    ((_, before),) = ask(actor, cases, first)
    assert isinstance(before, Generated)
    ask(actor, cases, llama)
    file = Path(first.path) / "adapter_model.safetensors"
    save_file({name: -tensor for name, tensor in load_file(file).items()}, file)
    refused(actor, cases, first, "replaced during the sweep")
    planned = replace(first, cheap_id=cheap_id(first.path, first.base))
    ((_, after),) = ask(actor, cases, planned)
    assert isinstance(after, Generated)
    assert after.fingerprint != before.fingerprint


def test_a_base_that_is_deleted_is_one_line(
    llama: Checkpoint,
    cases: list[Case],
    actor: Inference,
    plan: Callable[..., Checkpoint],
    lora: Callable[..., Checkpoint],
) -> None:
    base = plan(llama, "base")
    first, second = lora(base.path, "first"), lora(base.path, "second", alpha=16)
    ask(actor, cases, first)
    (Path(base.path) / WEIGHTS).unlink()
    refused(actor, cases, second, "No such file")
    with pytest.raises(CheckpointError, match="No such file"):
        engines.load("hf", {}).load(second)
