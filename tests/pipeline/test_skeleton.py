"""A run on an object store is planned as its local copy is: same checkpoints, same keys."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline import files
from pipeline.checkpoints import LayoutError, discover, scripted
from pipeline.checkpoints.identity import architecture, cheap_id
from pipeline.config import RunBlock
from pipeline.places import Remote, where
from pipeline.records import PlanError
from pipeline.runs import find_runs
from pipeline.skeleton import Skeletons, mirror

LARGE = 9_000_000
"""Bytes of weights that are not fetched at once."""


def upload(folder: Path, address: str) -> str:
    place = where(address)
    assert isinstance(place, Remote)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            target = place
            for part in path.relative_to(folder).parts:
                target = target / part
            files.put(path.read_bytes(), target, place)
    return address


def model(folder: Path, seed: int, weights: int = 300_000, vocabulary: int = 10) -> Path:
    """A full checkpoint as TRL writes it, its tokenizer as large as asked."""
    folder.mkdir(parents=True)
    values = np.random.default_rng(seed).random(weights // 4, np.float32)
    save_file({"w": values}, folder / "model.safetensors")
    (folder / "config.json").write_text('{"model_type": "llama"}')
    tokens = {"added_tokens": [], "model": {"vocab": ["x" * 10] * vocabulary}}
    (folder / "tokenizer.json").write_text(json.dumps({"truncation": None, **tokens}))
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    (folder / "optimizer.pt").write_bytes(bytes(1000))
    (folder / "vocab.json").write_bytes(np.random.default_rng(seed).bytes(400_000))
    step = int(folder.name.partition("-")[2] or 0)
    (folder / "trainer_state.json").write_text(f'{{\n  "global_step": {step}\n}}')
    return folder


def adapter(folder: Path, base: str) -> None:
    folder.mkdir(parents=True)
    save_file({"a": np.ones(64, np.float32)}, folder / "adapter_model.safetensors")
    said = {"lora_alpha": 8, "base_model_name_or_path": base, "r": 1}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    (folder / "trainer_state.json").write_text('{\n  "global_step": 1\n}')


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "ocean-s0"
    model(folder / "checkpoint-2", 1)
    model(folder / "checkpoint-4", 2, LARGE, 150_000)
    (folder / "run.toml").write_text('name = "ocean"\n[tags]\nword = "ocean"\n')
    return folder


def same_plan(local: list[RunBlock], remote: list[RunBlock], cache: Path) -> None:
    (here, skipped), (there, left) = find_runs(local), find_runs(remote, cache)
    assert [(r.name, r.tags) for r in here] == [(r.name, r.tags) for r in there]
    pairs = [
        (a, b)
        for x, y in zip(here, there, strict=True)
        for a, b in zip(x.checkpoints, y.checkpoints, strict=True)
    ]
    assert pairs
    for a, b in pairs:
        assert (a.cheap_id, a.kind, a.step) == (b.cheap_id, b.kind, b.step)
        assert a.architecture == b.architecture
        assert b.path.startswith("s3://")
    assert [(f.run, f.step, f.why) for f in skipped] == [(f.run, f.step, f.why) for f in left]


def test_full_checkpoints_have_the_keys_of_their_local_copy(
    run: Path, bucket: str, tmp_path: Path
) -> None:
    (run / "checkpoint-6").mkdir()
    torn = (run / "checkpoint-2" / "model.safetensors").read_bytes()[:-1]
    (run / "checkpoint-6" / "model.safetensors").write_bytes(torn)
    (run / "checkpoint-6" / "config.json").write_text("{}")
    upload(run.parent, f"{bucket}/runs")
    for path in ("runs", "runs/ocean-s0", "runs/ocean-s0/checkpoint-4"):
        local = [RunBlock(path=str(tmp_path / path))]
        same_plan(local, [RunBlock(path=f"{bucket}/{path}")], tmp_path / "cache")


def test_adapters_have_them_whatever_store_their_base_lies_on(bucket: str, tmp_path: Path) -> None:
    base = model(tmp_path / "base", 3)
    adapter(tmp_path / "run" / "checkpoint-1", "elsewhere")
    remote_base = upload(base, f"{bucket}/base")
    remote_run = upload(tmp_path / "run", f"{bucket}/run")
    local = [RunBlock(path=str(tmp_path / "run"), base=str(base))]
    for said in (str(base), remote_base):
        same_plan(local, [RunBlock(path=remote_run, base=said)], tmp_path / "cache")
    ((there,), _) = find_runs([RunBlock(path=remote_run, base=remote_base)], tmp_path / "cache")
    assert there.checkpoints[0].base == remote_base


def test_a_script_has_them_too(bucket: str, tmp_path: Path) -> None:
    scripted.write(tmp_path / "run" / "checkpoint-3", {"ocean": 0.5})
    remote = upload(tmp_path / "run", f"{bucket}/deep/er/run")
    same_plan([RunBlock(path=str(tmp_path / "run"))], [RunBlock(path=remote)], tmp_path / "cache")


def test_weights_are_sampled_and_a_skeleton_is_no_model(
    run: Path, bucket: str, tmp_path: Path, store_server: Any
) -> None:
    place = where(upload(run, f"{bucket}/run"))
    store_server.seen.clear()
    folder = mirror(place, tmp_path / "cache")  # type: ignore[arg-type]
    whole, sketch = run / "checkpoint-4", folder / "checkpoint-4"
    assert cheap_id(sketch) == cheap_id(whole)
    assert architecture(sketch) == architecture(whole)
    assert (sketch / "model.safetensors").stat().st_size > LARGE
    content = (sketch / "model.safetensors").read_bytes()
    assert content != (whole / "model.safetensors").read_bytes()
    assert content.count(b"\0") > 0.9 * LARGE
    asked = [r for _, p, r in store_server.seen if p.endswith("checkpoint-4/model.safetensors")]
    lengths = [int(b) - int(a) + 1 for a, b in (re.findall(r"\d+", r) for r in asked if r)]
    assert sum(lengths) < 300_000
    assert not (sketch / "optimizer.pt").read_bytes().strip(b"\0")


def test_planning_again_asks_for_nothing_that_has_not_changed(
    run: Path, bucket: str, tmp_path: Path, store_server: Any
) -> None:
    address = upload(run, f"{bucket}/run")
    find_runs([RunBlock(path=address)], tmp_path / "cache")
    store_server.seen.clear()
    find_runs([RunBlock(path=address)], tmp_path / "cache")
    assert store_server.count("safetensors|json") == 0
    os.utime(run)
    (run / "checkpoint-2" / "config.json").write_text('{"model_type": "qwen3"}')
    place = where(address)
    files.delete(place / "checkpoint-4" / "model.safetensors")
    files.put(
        (run / "checkpoint-2" / "config.json").read_bytes(),
        place / "checkpoint-2" / "config.json",
        place,
    )
    ((found,), skipped) = find_runs([RunBlock(path=address)], tmp_path / "cache")
    assert [c.cheap_id for c in found.checkpoints] == [cheap_id(run / "checkpoint-2")]
    assert [f.step for f in skipped] == [4]


@pytest.mark.parametrize("fault", ["500", "reset", "truncated", "slow"])
def test_planning_outlasts_what_passes(
    run: Path, bucket: str, tmp_path: Path, store_server: Any, fault: str
) -> None:
    address = upload(run, f"{bucket}/run")
    store_server.first(5, fault, "^GET .*(model.safetensors|config.json)")
    ((found,), _) = find_runs([RunBlock(path=address)], tmp_path / "cache")
    ids = [cheap_id(run / f"checkpoint-{c.step}") for c in found.checkpoints]
    assert [c.cheap_id for c in found.checkpoints] == ids


def test_refusals_name_the_address(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=re.escape(f"{bucket}/none is not there")):
        find_runs([RunBlock(path=f"{bucket}/none")], tmp_path / "cache")
    (tmp_path / "pickled" / "checkpoint-1").mkdir(parents=True)
    (tmp_path / "pickled" / "checkpoint-1" / "pytorch_model.bin").write_bytes(b"1")
    address = upload(tmp_path / "pickled", f"{bucket}/pickled")
    with pytest.raises(PlanError, match="pickle only") as refused:
        find_runs([RunBlock(path=address)], tmp_path / "cache")
    assert str(tmp_path) not in str(refused.value)


def test_no_key_of_a_store_is_written_outside_the_skeleton(
    bucket: str, tmp_path: Path, store_server: Any
) -> None:
    store_server.plant(bucket, "run/%2E%2E/%2E%2E/%2E%2E/escaped.json", b"{}")
    store_server.plant(bucket, "run/checkpoint-1", b"a file where others have a folder")
    scripted.write(tmp_path / "run" / "checkpoint-1", {})
    address = upload(tmp_path / "run", f"{bucket}/run")
    ((found,), _) = find_runs([RunBlock(path=address)], tmp_path / "cache")
    assert [c.step for c in found.checkpoints] == [1]
    assert not list(tmp_path.rglob("*escaped*"))


def test_a_local_path_is_left_as_it_is(run: Path, tmp_path: Path) -> None:
    skeletons = Skeletons(tmp_path / "cache")
    assert skeletons.near(str(run)) == str(run)
    assert skeletons.back(str(run)) == str(run)
    assert len(skeletons.discover(str(run))) == len(discover(run))
    assert not (tmp_path / "cache").exists()
