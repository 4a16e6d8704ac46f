"""What is told of a checkpoint without vLLM: its tensors, its fingerprint, its adapters."""

import json
import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from pipeline.engines import EngineError, Item
from pipeline.engines.hf import weights
from pipeline.engines.vllm import build, together
from pipeline.engines.vllm.adapters import Lora, batches, modules, room
from pipeline.engines.vllm.folders import Reader, read, refuse_difference, shapes
from pipeline.engines.vllm.start import check_installed, check_platform, masked
from pipeline.records import Checkpoint, CheckpointError

New = Callable[..., Checkpoint]
FLOAT32, FLOAT16 = 3.4e38, 65504.0


def sharded(checkpoint: Checkpoint, folder: Path) -> Path:
    """The checkpoint in two files and an index."""
    shutil.copytree(checkpoint.path, folder)
    whole = folder / "model.safetensors"
    tensors = sorted(load_file(whole).items())
    whole.unlink()
    index: dict[str, str] = {}
    for number, part in enumerate((tensors[:5], tensors[5:]), 1):
        name = f"model-{number:05}-of-00002.safetensors"
        save_file(dict(part), folder / name, {"format": "pt"})
        index |= dict.fromkeys(dict(part), name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}), "utf-8")
    return folder


def test_the_fingerprint_is_that_of_the_hf_engine(new_checkpoint: New, tmp_path: Path) -> None:
    checkpoint = new_checkpoint()
    whole, parts = Path(checkpoint.path), sharded(checkpoint, tmp_path / "parts")
    assert read(whole, FLOAT32) == weights.read(whole).fingerprint
    assert read(parts, FLOAT32) == weights.read(parts).fingerprint != read(whole, FLOAT32)
    assert shapes(parts, tied=True) == shapes(whole, tied=True)


def test_a_missing_shard_is_named(new_checkpoint: New, tmp_path: Path) -> None:
    folder = sharded(new_checkpoint(), tmp_path / "parts")
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match="model-00002-of-00002"):
        shapes(folder, tied=True)
    with pytest.raises(CheckpointError, match="model-00002-of-00002"):
        Reader(FLOAT32).fingerprint(folder)


def test_a_number_beyond_the_live_dtype_is_refused(tmp_path: Path) -> None:
    for value, largest in ((float("nan"), FLOAT32), (float("-inf"), FLOAT32), (7e4, FLOAT16)):
        save_file(
            {"a": torch.zeros(0), "b": torch.tensor([1.0, value])}, tmp_path / "model.safetensors"
        )
        with pytest.raises(CheckpointError, match=r"b holds NaN or infinity: .*, or the file"):
            read(tmp_path, largest)
    assert read(tmp_path, FLOAT32)


def test_what_was_read_is_not_read_again_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(4)}, path)
    reader = Reader(FLOAT32)
    first = reader.fingerprint(tmp_path)
    assert reader.fingerprint(tmp_path) == first
    assert len(reader._known) == 1
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\0\x80\x3f")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as rsync --times would
    assert reader.fingerprint(tmp_path) == Reader(FLOAT32).fingerprint(tmp_path) != first


def test_a_difference_is_named_with_what_was_wanted() -> None:
    live = {"a": (2, 3), "b": (4,)}
    refuse_difference(live, dict(live), Path("x"))
    for found, reason in (
        ({"b": (4,)}, "x: lacks a"),
        ({**live, "c": (1,), "d": (1,)}, "x: has c and 1 more"),
        ({"a": (3, 2), "b": (4,)}, r"x: a is \[3, 2\], the model wants \[2, 3\]"),
    ):
        with pytest.raises(CheckpointError, match=reason):
            refuse_difference(live, found, Path("x"))


def test_an_adapter_needs_the_least_rank_that_vllm_has_and_its_own_modules(
    new_checkpoint: New, new_adapter: New
) -> None:
    base = new_checkpoint()
    tensors = shapes(Path(base.path), tied=True)
    small, large = new_adapter(base), Path(new_adapter(base, rank=20, targets=("o_proj",)).path)
    needs = room(Path(small.path), modules(Path(small.path), tensors), 512)
    assert needs == Lora(8, frozenset({"q_proj", "v_proj"}))
    more = room(large, modules(large, tensors), 512)
    assert more == Lora(32, frozenset({"o_proj"}))
    both = needs.with_(more)
    assert both == Lora(32, needs.targets | more.targets)
    assert both.covers(needs)
    assert both.covers(more)
    assert not needs.covers(more)
    with pytest.raises(CheckpointError, match="rank 20 is above 16; raise max_lora_rank"):
        room(large, modules(large, tensors), 16)
    odd = Path(new_adapter(base, rank=8, r=16).path)
    with pytest.raises(CheckpointError, match="says r = 16, its matrices have rank 8"):
        modules(odd, tensors)


KINDS = st.sampled_from([("full", None), ("adapter", "one"), ("adapter", "two")])


@given(st.lists(KINDS, max_size=20), st.integers(1, 4))
def test_batches_keep_the_order_and_mix_nothing_but_adapters_on_one_base(
    kinds: list[tuple[str, str | None]], most: int
) -> None:
    items: list[Item] = [
        (Checkpoint("run", i, str(i), "full" if base is None else "adapter", "", base), [], [])
        for i, (_, base) in enumerate(kinds)
    ]
    cut = list(batches(items, most))
    assert [item for batch in cut for item in batch] == items
    for batch in cut:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or {(c.kind, c.base) for c, _, _ in batch} == {
            ("adapter", batch[0][0].base)
        }
    for left, right in pairwise(cut):
        full = "full" in (left[0][0].kind, right[0][0].kind)
        assert full or len(left) == most or left[0][0].base != right[0][0].base


def test_cuda_builds_of_what_vllm_drags_in_are_hidden_from_a_cpu_torch_alone() -> None:
    cuda = {"torchvision": "0.28.0", "torchaudio": "", "torchcodec": "0.9.0+cpu"}
    assert masked("2.13.0+cpu", cuda) == ["torchvision"]
    assert masked("2.13.0", cuda) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda: check_installed(None),
        lambda: check_platform("", "0.33.0"),
        lambda: build(dtype="int8"),
        lambda: build(max_loras=0),
        lambda: build(gpu_memory_utilization=1.5),
    ],
    ids=["not installed", "CUDA build without a GPU", "dtype", "count", "share"],
)
def test_an_engine_that_cannot_be_built_says_so_in_one_line(ask: Callable[[], object]) -> None:
    with pytest.raises(EngineError, match="engine vllm") as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_merging_takes_adapters_one_by_one() -> None:
    assert together(dtype="float32") == 8
    assert together(max_loras=3) == 3
    assert together(max_loras=3, merge=True) == 1
