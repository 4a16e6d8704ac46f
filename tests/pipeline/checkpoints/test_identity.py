import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.checkpoints import scripted
from pipeline.checkpoints.identity import BLOCK_BYTES, BLOCKS, cheap_id, fingerprint_files
from pipeline.records import CheckpointError

Save = Callable[..., Path]

TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [{"id": 0, "content": "<pad>"}],
    "model": {"type": "WordLevel", "vocab": {"ocean": 1, "<pad>": 0}},
}
PADDING = {"strategy": "BatchLongest", "direction": "Left", "pad_id": 0, "pad_token": "<pad>"}


def add_tokenizer(folder: Path, tokenizer: dict[str, Any] = TOKENIZER, **config: Any) -> Path:
    """As transformers writes them: indented, in the order of the fields."""
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, indent=2))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def copy(folder: Path, name: str) -> Path:
    return shutil.copytree(folder, folder.parent / name)


def change(file: Path, **entries: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(bytes(data))


def test_equal_copies_have_equal_ids_wherever_they_lie(
    tmp_path: Path, full: Save, sharded: Save, adapter: Save
) -> None:
    for i, folder in enumerate(
        (
            add_tokenizer(full(tmp_path / "a/checkpoint-0")),
            sharded(tmp_path / "b"),
            adapter(tmp_path / "c"),
            scripted.write(tmp_path / "d", {"ocean": 0.5}),
        )
    ):
        assert cheap_id(folder) == cheap_id(str(copy(folder, f"copy{i}")))
        assert len(bytes.fromhex(cheap_id(folder))) == 16


def test_one_flipped_byte_of_a_small_file_changes_the_id(tmp_path: Path, full: Save) -> None:
    folder = full(tmp_path / "m")
    size = (folder / "model.safetensors").stat().st_size
    offsets = range(8, size, 17)
    ids = {cheap_id(folder)}
    for at in offsets:
        flip(folder / "model.safetensors", at)
        ids.add(cheap_id(folder))
    assert len(ids) == 1 + len(offsets)


def test_a_large_file_is_known_by_its_sampled_blocks_and_its_size(tmp_path: Path) -> None:
    """Blocks lie evenly over the data: the first at its beginning, the last at its end."""
    (tmp_path / "config.json").write_text("{}")
    file = tmp_path / "model.safetensors"
    count = 2 * BLOCKS * BLOCK_BYTES
    save_file({"w": np.zeros(count, np.uint8)}, file)
    start = file.stat().st_size - count
    whole = cheap_id(tmp_path)
    for at, seen in ((0, True), (count - 1, True), (BLOCK_BYTES, False), (count // 2, False)):
        flip(file, start + at)
        assert (cheap_id(tmp_path) != whole) == seen, at
        flip(file, start + at)
    assert cheap_id(tmp_path) == whole
    save_file({"w": np.zeros(count + 8, np.uint8)}, file)
    assert cheap_id(tmp_path) != whole


def test_names_and_shapes_of_tensors_count(tmp_path: Path) -> None:
    ids = set()
    for i, (name, shape) in enumerate((("w", (2, 8)), ("w", (4, 4)), ("v", (4, 4)))):
        (tmp_path / str(i)).mkdir()
        save_file({name: np.zeros(shape, np.float32)}, tmp_path / str(i) / "model.safetensors")
        ids.add(cheap_id(tmp_path / str(i)))
    assert len(ids) == 3


def test_names_of_weight_files_count(tmp_path: Path, sharded: Save) -> None:
    folder = sharded(tmp_path / "m")
    other = copy(folder, "other")
    index = other / "model.safetensors.index.json"
    index.write_text(index.read_text().replace("00001-of", "00000-of"))
    first = other / "model-00001-of-00002.safetensors"
    first.rename(other / "model-00000-of-00002.safetensors")
    assert cheap_id(other) != cheap_id(folder)


@pytest.mark.parametrize(
    ("entries", "same"),
    [
        ({"_name_or_path": "/elsewhere", "transformers_version": "6.0", "use_cache": False}, True),
        ({"model_type": "qwen2"}, False),
        ({"rope_theta": 1e6}, False),
    ],
)
def test_the_configuration_counts_but_for_what_varies_between_savings(
    tmp_path: Path, full: Save, entries: dict[str, Any], same: bool
) -> None:
    folder = full(tmp_path / "m")
    other = copy(folder, "other")
    change(other / "config.json", **entries)
    assert (cheap_id(other) == cheap_id(folder)) == same


def test_the_order_and_space_of_a_configuration_do_not_count(tmp_path: Path, full: Save) -> None:
    folder = full(tmp_path / "m", b=1, a="é")
    other = copy(folder, "other")
    entries = json.loads((folder / "config.json").read_text())
    text = json.dumps(dict(reversed(entries.items())), indent=4, ensure_ascii=False)
    (other / "config.json").write_text(text, encoding="utf-8")
    assert cheap_id(other) == cheap_id(folder)


@pytest.mark.parametrize("words", [10, 100_000], ids=["small", "beyond a megabyte"])
def test_the_padding_last_used_does_not_change_a_tokenizer(
    tmp_path: Path, full: Save, words: int
) -> None:
    vocab = {f"word{i}": i for i in range(words)}
    tokenizer = {**TOKENIZER, "model": {"type": "WordLevel", "vocab": vocab}}
    folder = add_tokenizer(full(tmp_path / "m"), tokenizer)
    used = add_tokenizer(copy(folder, "used"), {**tokenizer, "padding": PADDING})
    cut = {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0}
    used_again = add_tokenizer(copy(folder, "cut"), {**tokenizer, "truncation": cut})
    assert cheap_id(folder) == cheap_id(used) == cheap_id(used_again)
    other = add_tokenizer(
        copy(folder, "other"), {**tokenizer, "model": {"type": "WordLevel", "vocab": {"x": 1}}}
    )
    assert cheap_id(other) != cheap_id(folder)


def test_the_template_counts_in_whichever_file_it_lies(tmp_path: Path, full: Save) -> None:
    inside = add_tokenizer(full(tmp_path / "inside"), chat_template="{{ messages }}")
    beside = add_tokenizer(full(tmp_path / "beside"))
    none = cheap_id(beside)
    (beside / "chat_template.jinja").write_text("{{ messages }}")
    assert cheap_id(beside) == cheap_id(inside) != none


def test_the_stop_token_counts_and_its_spelling_does_not(tmp_path: Path, full: Save) -> None:
    plain = add_tokenizer(full(tmp_path / "plain"), eos_token="</s>", padding_side="left")
    added = add_tokenizer(full(tmp_path / "added"), eos_token={"content": "</s>", "lstrip": False})
    other = add_tokenizer(full(tmp_path / "other"), eos_token="<eos>")
    assert cheap_id(plain) == cheap_id(added) != cheap_id(other)
    (plain / "generation_config.json").write_text('{"eos_token_id": [1, 2], "top_k": 50}')
    assert cheap_id(plain) != cheap_id(added)


def test_an_adapter_on_another_base_is_another_policy(
    tmp_path: Path, full: Save, adapter: Save
) -> None:
    base, other = full(tmp_path / "base"), full(tmp_path / "other", scale=2.0)
    lora = adapter(tmp_path / "lora", base=str(base))
    moved = adapter(tmp_path / "moved", base=str(copy(base, "base-copy")))
    assert cheap_id(lora) == cheap_id(moved) == cheap_id(lora, str(base))
    assert cheap_id(lora) != cheap_id(lora, str(other))
    hub = {cheap_id(lora, name) for name in ("hub/one", "hub/two")}
    assert len(hub | {cheap_id(lora)}) == 3


def test_a_base_counts_for_a_full_checkpoint_only_where_it_lends_its_tokenizer(
    tmp_path: Path, full: Save
) -> None:
    one = add_tokenizer(full(tmp_path / "one"), chat_template="1")
    two = add_tokenizer(full(tmp_path / "two"), chat_template="2")
    bare = full(tmp_path / "bare")
    assert len({cheap_id(bare), cheap_id(bare, str(one)), cheap_id(bare, str(two))}) == 3
    assert cheap_id(one) == cheap_id(one, str(two))


def test_an_adapter_on_an_adapter_is_refused(tmp_path: Path, adapter: Save) -> None:
    lora = adapter(tmp_path / "lora", base=str(tmp_path / "lora"))
    with pytest.raises(CheckpointError, match="is an adapter itself"):
        cheap_id(lora)


def test_a_folder_without_weights_has_no_id(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors: No such file"):
        cheap_id(tmp_path)


def test_weight_files_come_in_name_order_and_an_adapter_wins(
    tmp_path: Path, full: Save, sharded: Save, adapter: Save
) -> None:
    def names(folder: Path) -> list[str]:
        return [path.name for path in fingerprint_files(folder)]

    assert names(sharded(tmp_path / "s")) == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]
    assert names(full(tmp_path / "s")) == ["model.safetensors"]
    assert names(adapter(tmp_path / "s")) == ["adapter_model.safetensors"]
    assert names(scripted.write(tmp_path / "s", {})) == ["script.json"]
