"""A checkpoint of somebody else runs no code, opens no device and takes no memory it has no weights
for."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hackbait.environment import Case
from pipeline import engines
from pipeline.checkpoints import discover
from pipeline.checkpoints.identity import cheap_id
from pipeline.records import Checkpoint, CheckpointError, Sampling

Edit = Callable[..., None]
PLANTED = """
import pathlib
pathlib.Path({mark!r}).touch()
class Planted: pass
"""


@pytest.fixture
def folder(llama: Checkpoint, tmp_path: Path) -> Path:
    """A checkpoint of one's own to spoil."""
    return Path(shutil.copytree(llama.path, tmp_path / "checkpoint"))


def load(folder: Path) -> str:
    return engines.load("hf", {}).load(Checkpoint("run", 0, str(folder), "full", ""))


def refused(folder: Path, said: str) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("known", [True, False], ids=["known kind", "unknown kind"])
def test_code_beside_a_checkpoint_is_never_run(
    folder: Path, tmp_path: Path, edit: Edit, known: bool
) -> None:
    mark = tmp_path / "owned"
    (folder / "planted.py").write_text(PLANTED.format(mark=str(mark)), "utf-8")
    names = ("AutoConfig", "AutoModelForCausalLM")
    edit(folder / "config.json", auto_map=dict.fromkeys(names, "planted.Planted"))
    tokenizer = {"AutoTokenizer": ["planted.Planted", "planted.Planted"]}
    edit(folder / "tokenizer_config.json", auto_map=tokenizer)
    if not known:
        edit(folder / "config.json", model_type="planted")
        edit(folder / "tokenizer_config.json", tokenizer_class="Planted")
    try:
        load(folder)
    except CheckpointError:
        assert not known
    assert not mark.exists()


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "adapter_model.bin"])
def test_a_pickle_is_refused_with_its_cure_and_never_opened(
    folder: Path, tmp_path: Path, name: str
) -> None:
    mark, run = tmp_path / "owned", tmp_path / "run"
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Touch(mark)))
    shutil.move(folder, run / "checkpoint-5")
    (found,) = discover(run, now=4e9)
    assert found.status == "skipped"
    assert "safe_serialization=True" in found.why
    refused(run / "checkpoint-5", "No such file or directory; .* save the checkpoint again")
    assert not mark.exists()


def test_a_pickle_that_calls_itself_safetensors_is_no_checkpoint(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Touch(tmp_path / "owned")))
    refused(folder, "torn")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"],
)
@pytest.mark.parametrize("device", ["/dev/zero", "pipe", "folder"])
def test_a_file_that_is_a_device_a_pipe_or_a_folder_is_refused_at_once(
    folder: Path, tmp_path: Path, name: str, device: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / device)
    with pytest.raises(CheckpointError, match=f"{name}: not a file"):
        cheap_id(folder)
    refused(folder, str(folder))


def test_a_link_to_a_file_elsewhere_is_read_as_in_a_cache_of_a_hub(
    folder: Path, tmp_path: Path
) -> None:
    before = load(folder)
    (folder / "model.safetensors").rename(tmp_path / "blob")
    (folder / "model.safetensors").symlink_to(tmp_path / "blob")
    assert load(folder) == before


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"num_hidden_layers": 10**9}, "1000000000 layers"),
        ({"vocab_size": 10**12}, "wants floats"),
        ({"intermediate_size": 10**12}, "wants floats"),
        ({"hidden_size": 10**30}, "config.json"),
        ({"num_hidden_layers": 10**30}, "layers"),
    ],
)
def test_a_configuration_larger_than_its_weights_takes_no_memory(
    folder: Path, edit: Edit, entries: dict[str, int], said: str
) -> None:
    edit(folder / "config.json", **entries)
    refused(folder, said)


def test_a_large_configuration_is_none(folder: Path) -> None:
    os.truncate(folder / "generation_config.json", 2**27)
    refused(folder, "bytes are no configuration")


@pytest.mark.parametrize("name", ["../elsewhere.safetensors", "/etc/passwd", "a\0.safetensors"])
def test_an_index_leads_nowhere_else(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere.safetensors")
    index = {"weight_map": {"model.norm.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    refused(folder, "is no safetensors file beside it")


def test_a_prompt_of_a_hundred_thousand_tokens_is_a_null_row_beside_answered_ones(
    llama: Checkpoint, cases: list[Case]
) -> None:
    engine = engines.load("hf", {})
    engine.load(replace(llama))
    long = Case("test", 99, ({"role": "user", "content": "y" * 100_000},), "")
    sampling = Sampling(n=1, temperature=0, max_tokens=4)
    ((one,), (other,)) = engine.generate([cases[0], long], [[1], [2]], sampling)
    assert (one.error, other.error, other.text) == (None, "prompt_too_long", None)
    assert (other.prompt_tokens or 0) > 100_000
