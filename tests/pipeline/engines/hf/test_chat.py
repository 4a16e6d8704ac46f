import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.engines.hf import chat
from pipeline.records import Checkpoint, CheckpointError

ASKED = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def folder(llama: Checkpoint, tmp_path: Path) -> Path:
    """A checkpoint of one's own to spoil."""
    return Path(shutil.copytree(llama.path, tmp_path / "checkpoint"))


def test_a_prompt_has_one_bos_though_the_tokenizer_adds_one_too(folder: Path) -> None:
    read = chat.read([folder], None, None)
    (prompt,) = read.encode([ASKED])
    assert prompt == [2, 3, *read.tokenizer.convert_tokens_to_ids(["H", "i"]), 4]
    assert read.tokenizer("Hi")["input_ids"][0] == 2


def test_texts_lose_special_tokens_and_keep_their_spaces(folder: Path) -> None:
    read = chat.read([folder], None, None)
    ids = read.tokenizer("a , b .", add_special_tokens=False)["input_ids"]
    assert read.decode([[*ids, 1], [3, *ids]]) == ["a , b ."] * 2


@pytest.mark.parametrize(
    "date", ["{{ date_string }}", "{{ strftime_now('%d %b %Y') }}"], ids=["argument", "clock"]
)
def test_a_template_that_asks_for_today_hears_the_same_day_for_ever(
    folder: Path, date: str
) -> None:
    (folder / "chat_template.jinja").write_text(date, "utf-8")
    read = chat.read([folder], None, None)
    assert read.decode(read.encode([ASKED])) == ["26 Jul 2024"]


def test_padding_left_in_tokenizer_json_costs_no_second_tokenizer(folder: Path) -> None:
    first = chat.read([folder], None, None)
    path = folder / "tokenizer.json"
    first.tokenizer(["a", "bc"], padding=True)
    first.tokenizer.backend_tokenizer.save(str(path))
    assert json.loads(path.read_text("utf-8"))["padding"] is not None
    second = chat.read([folder], None, first)
    assert second.tokenizer is first.tokenizer
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}", "utf-8")
    third = chat.read([folder], None, second)
    assert third.tokenizer is not first.tokenizer
    assert third.encode([ASKED]) == [first.encode([ASKED])[0][2:4]]


def test_tokenizer_and_template_come_from_the_base_where_they_lack(
    folder: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    expected = chat.read([folder], None, None).encode([ASKED])
    assert chat.read([bare, folder], None, None).encode([ASKED]) == expected
    own = Path(shutil.copytree(folder, tmp_path / "own"))
    (own / "chat_template.jinja").unlink()
    assert chat.read([own, folder], None, None).encode([ASKED]) == expected


@pytest.mark.parametrize(
    ("generation", "configured", "stops"),
    [(5, None, [1, 5]), ([7, 5], None, [1, 5, 7]), (None, 9, [1])],
)
def test_the_tokenizers_stop_and_those_of_generation_count(
    folder: Path, edit: Callable[..., None], generation: Any, configured: Any, stops: list[int]
) -> None:
    edit(folder / "generation_config.json", eos_token_id=generation, temperature=0.1)
    assert chat.read([folder], configured, None).stops == stops


def test_the_models_stop_counts_where_nothing_else_names_one(
    folder: Path, edit: Callable[..., None]
) -> None:
    edit(folder / "tokenizer_config.json", eos_token=None)
    (folder / "generation_config.json").unlink()
    assert chat.read([folder], [9, 8], None).stops == [8, 9]
    with pytest.raises(CheckpointError, match="no eos token"):
        chat.read([folder], None, None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("chat_template.jinja", None, "no chat template; put the chat_template.jinja"),
        ("chat_template.jinja", "{% if %}", "chat template or tokenizer fails"),
        ("chat_template.jinja", "", "no chat template|empty prompt"),
        ("chat_template.jinja", "{{ raise_exception('never') }}", "never"),
        ("tokenizer.json", None, "no tokenizer, and no base"),
        ("tokenizer.json", "{", "tokenizer cannot be read"),
        ("tokenizer.json", '{"version": "1.0"}', "tokenizer cannot be read"),
        ("tokenizer_config.json", "[1]", "tokenizer cannot be read"),
    ],
)
def test_a_checkpoint_that_cannot_be_spoken_to_is_refused_in_one_line(
    folder: Path, name: str, content: str | None, message: str
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content, "utf-8")
    with pytest.raises(CheckpointError, match=message) as caught:
        chat.read([folder], None, None)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
