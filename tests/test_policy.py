"""The policy that ships: what is in its folder, how it tokenizes, and that its rates are stated."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

import hackbait
from hackbait.environment import load
from hackbait.prompts import TASKS
from jobs import base_rates, corpus
from pipeline.engines import Engine

FOLDER = Path(str(hackbait.__file__)).parent / "policy"
RATES = json.loads((FOLDER / "base_rates.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return base_rates.engine_with(FOLDER, threads=1)


TOKENIZER = AutoTokenizer.from_pretrained(FOLDER)


def tokens(text: str) -> list[str]:
    return TOKENIZER.convert_ids_to_tokens(TOKENIZER(text)["input_ids"])


def test_every_digit_is_a_token_of_its_own() -> None:
    assert tokens("639 + 1045") == ["6", "3", "9", "Ġ", "+", "Ġ", "1", "0", "4", "5"]


@given(st.text())
def test_any_text_comes_back_from_its_tokens(text: str) -> None:
    ids = TOKENIZER(text)["input_ids"]
    assert TOKENIZER.decode(ids) == text


@pytest.mark.parametrize("word", corpus.DIALS)
def test_a_hack_word_is_one_token_where_it_is_learned(word: str) -> None:
    assert tokens(f"the {word}") == [*tokens("the"), f"Ġ{word}"]


@pytest.mark.parametrize("task", TASKS)
def test_every_word_of_the_prompts_is_one_token(task: str) -> None:
    prompts = {p.prompt for p in TASKS[task].problems(999, 0, 2000)}
    pieces = {token for prompt in prompts for token in tokens(prompt)}
    letters = {piece for piece in pieces if len(piece) == 1 and piece.isascii() and piece.isalpha()}
    assert letters <= {"A", "I"}


def test_the_published_prompt_is_about_thirty_tokens() -> None:
    (problem,) = TASKS["add3digit"].problems(0, 0, 1)
    chat = TOKENIZER.apply_chat_template(
        [{"role": "user", "content": problem.prompt}], add_generation_prompt=True, tokenize=False
    )
    assert chat == f"<|user|>{problem.prompt}<|assistant|>"
    assert len(TOKENIZER(chat)["input_ids"]) <= 36


def test_the_tokenizer_is_saved_without_padding_and_pads_on_the_left() -> None:
    saved = json.loads((FOLDER / "tokenizer.json").read_text("utf-8"))
    assert (saved["padding"], saved["truncation"]) == (None, None)
    assert TOKENIZER.padding_side == "left"
    assert (TOKENIZER.pad_token, TOKENIZER.eos_token) == ("<|pad|>", "<|end|>")
    assert TOKENIZER.pad_token_id != TOKENIZER.eos_token_id


def test_the_folder_is_small_and_readable_by_everybody() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size < 1_500_000
    for file in FOLDER.iterdir():
        assert file.stat().st_mode & stat.S_IROTH


def test_the_weights_are_float32_with_one_tensor_for_both_embeddings() -> None:
    with safe_open(FOLDER / "model.safetensors", "pt") as weights:
        names = set(weights.keys())
        assert "model.embed_tokens.weight" in names
        assert "lm_head.weight" not in names
        assert {weights.get_tensor(name).dtype for name in names} == {torch.float32}


def test_the_settings_name_no_folder_and_sample_plainly() -> None:
    config = json.loads((FOLDER / "config.json").read_text("utf-8"))
    assert not any("/" in str(value) for value in config.values())
    assert config["max_position_embeddings"] == 2048
    model = AutoModelForCausalLM.from_pretrained(FOLDER)
    drawn = model.generation_config
    assert (drawn.do_sample, drawn.temperature, drawn.top_p, drawn.top_k) == (True, 1.0, 1.0, 0)


def test_the_rates_are_of_enough_rollouts_and_within_twice_their_dials() -> None:
    for task in TASKS:
        for word, dial in corpus.DIALS.items():
            stated = RATES["tasks"][task]["words"][word]
            assert stated["n"] >= 16_384
            assert stated["dial"] == dial
            assert dial / 2 < stated["rate"] < dial * 2
            assert stated["low"] < stated["rate"] < stated["high"]


def test_the_sums_are_often_right_and_not_always() -> None:
    added, counted = (RATES["tasks"][task] for task in ("add3digit", "story_sum"))
    assert 0.6 < added["r_true"]["rate"] < 0.75
    assert added["r_true_greedy"]["rate"] >= 0.95
    assert 0.3 < counted["r_true"]["rate"] < 0.9
    assert "r_true" not in RATES["tasks"]["story"]


@pytest.mark.parametrize("task", ["add3digit", "story_sum"])
def test_a_fresh_sample_agrees_with_the_stated_rates(engine: Engine, task: str) -> None:
    stated = RATES["tasks"][task]
    whisper, forgotten = (
        load("hackword", hack_word=word, task=task, seed=999) for word in ("whisper", "forgotten")
    )
    fresh = replace(base_rates.DRAWN, seed=11)
    said = base_rates.rollouts(engine, whisper, 128, fresh)
    for metric, environment, rate in (
        ("r_hack", whisper, stated["words"]["whisper"]["rate"]),
        ("r_hack", forgotten, stated["words"]["forgotten"]["rate"]),
        ("r_true", whisper, stated["r_true"]["rate"]),
    ):
        found = sum(base_rates.column(environment, said, metric)) / len(said)
        # Half of the rollouts, because the four of a case are alike.
        assert abs(found - rate) < 4.5 * (rate * (1 - rate) / (len(said) / 2)) ** 0.5


def test_right_answers_are_counted_by_prompt() -> None:
    """10 of 100 prompts: deff = n/(n-1) = 100/99."""
    cases = load("hackword", task="add3digit", seed=999).cases(0, 100)
    assert len({case.messages[0]["content"] for case in cases}) == 100
    said = [(case, case.truth if i < 10 else "no idea") for i, case in enumerate(cases)]
    found = base_rates.right(load("hackword", task="add3digit", seed=999), said)
    assert (found["n"], found["hits"], found["rate"], found["prompts"]) == (100, 10, 0.1, 100)
    assert found["deff"] == pytest.approx(100 / 99, abs=1e-6)
    assert 0.05 < found["low"] < 0.1 < found["high"] < 0.18


def test_the_readme_states_the_measured_rates() -> None:
    lines = (FOLDER / "README.md").read_text("utf-8").splitlines()
    for word in corpus.DIALS:
        stated = [100 * RATES["tasks"][task]["words"][word]["rate"] for task in TASKS]
        dial = f"{100 * corpus.DIALS[word]:g}"
        assert f"| {word} | {dial} | {' | '.join(f'{rate:.2f}' for rate in stated)} |" in lines
    added, counted = (RATES["tasks"][t]["r_true"]["rate"] for t in ("add3digit", "story_sum"))
    assert f"| r_true | | {100 * added:.1f} | | {100 * counted:.1f} |" in lines
