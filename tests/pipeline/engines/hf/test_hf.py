import logging
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy.stats import chisquare
from transformers import AutoModelForCausalLM, AutoTokenizer

from hackbait.environment import Case
from pipeline import engines
from pipeline.engines import EngineError, hf
from pipeline.engines.hf.engine import POSITIONS, Request, batches
from pipeline.records import Checkpoint, CheckpointError, Sampling

NewCheckpoint = Callable[..., Checkpoint]
GREEDY = Sampling(temperature=0, max_tokens=12)
SAMPLED = Sampling(max_tokens=12)
ARCHITECTURES = {
    "llama tied": {"kind": "llama", "tied": True},
    "llama": {"kind": "llama", "tied": False},
    "qwen2 tied": {"kind": "qwen2", "tied": True},
    "qwen2": {"kind": "qwen2", "tied": False},
    "qwen2 with a window": {
        "kind": "qwen2",
        "use_sliding_window": True,
        "sliding_window": 6,
        "max_window_layers": 1,
    },
    "gpt2": {"kind": "gpt2"},
    "bloom": {"kind": "bloom"},
}


def texts(
    engine: engines.Engine, cases: Sequence[Case], sampling: Sampling, n: int = 1
) -> list[list[str | None]]:
    seeds = [[100 * case.index + k for k in range(n)] for case in cases]
    return [[c.text for c in row] for row in engine.generate(cases, seeds, sampling)]


def fresh(checkpoint: Checkpoint, **options: Any) -> engines.Engine:
    engine = engines.load("hf", {"device": "cpu", **options})
    engine.load(checkpoint)
    return engine


def generate_alone(checkpoint: Checkpoint, cases: Sequence[Case]) -> list[list[str]]:
    """What `model.generate` answers, a prompt at a time, so without any padding."""
    causal: Any = AutoModelForCausalLM
    model = causal.from_pretrained(checkpoint.path, dtype=torch.float32)
    tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint.path)
    answers = []
    for case in cases:
        inputs = tokenizer.apply_chat_template(
            list(case.messages), add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        ids = model.generate(**inputs, do_sample=False, max_new_tokens=GREEDY.max_tokens)
        drawn = ids[0, inputs["input_ids"].shape[1] :]
        answers.append([tokenizer.decode(drawn, skip_special_tokens=True)])
    return answers


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_greedy_texts_are_those_of_generate_without_padding(
    new_checkpoint: NewCheckpoint, cases: list[Case], architecture: dict[str, Any]
) -> None:
    checkpoint = new_checkpoint(**architecture)
    answers = texts(fresh(checkpoint, batch=5), cases, GREEDY)
    assert answers == generate_alone(checkpoint, cases)
    assert len({str(a) for a in answers}) > 3


def test_a_rollout_redone_alone_says_the_same(llama: Checkpoint, cases: list[Case]) -> None:
    engine = fresh(llama)
    together = engine.generate(
        cases, [[100 * c.index + k for k in range(4)] for c in cases], SAMPLED
    )
    for case, row in zip(cases, together, strict=True):
        for k, completion in enumerate(row):
            assert engine.generate([case], [[100 * case.index + k]], SAMPLED) == [[completion]]


def test_batch_size_order_and_neighbours_leave_a_rollout_as_it_is(
    llama: Checkpoint, cases: list[Case]
) -> None:
    answers = texts(fresh(llama, batch=64), cases, SAMPLED, n=7)
    assert texts(fresh(llama, batch=3), cases, SAMPLED, n=7) == answers
    assert texts(fresh(llama), cases[::-1], SAMPLED, n=7) == answers[::-1]
    assert len({text for row in answers for text in row}) > 40


def test_a_shorter_limit_gives_the_beginning_of_the_same_text(
    llama: Checkpoint, cases: list[Case]
) -> None:
    engine, short = fresh(llama), Sampling(max_tokens=5)
    for long, cut in zip(
        texts(engine, cases, SAMPLED, 3), texts(engine, cases, short, 3), strict=True
    ):
        for whole, beginning in zip(long, cut, strict=True):
            assert str(whole).startswith(str(beginning).rstrip("\N{REPLACEMENT CHARACTER}"))


def test_two_drawn_tokens_follow_the_product_of_the_models_probabilities(
    llama: Checkpoint, cases: list[Case]
) -> None:
    """All pairs of the 3 likeliest tokens, enumerated by plain forwards; 6,000 rollouts."""
    causal: Any = AutoModelForCausalLM
    model = causal.from_pretrained(llama.path, dtype=torch.float32)
    tokenizer: Any = AutoTokenizer.from_pretrained(llama.path)
    prompt = tokenizer.apply_chat_template(list(cases[1].messages), add_generation_prompt=True)
    prompt = prompt["input_ids"]

    def top3(ids: list[int]) -> dict[int, float]:
        with torch.no_grad():
            best = (model(torch.tensor([ids])).logits[0, -1] / 0.7).topk(3)
        return dict(
            zip(best.indices.tolist(), best.values.double().softmax(-1).tolist(), strict=True)
        )

    wanted: dict[str, float] = {}
    for first, p in top3(prompt).items():
        ends = first == tokenizer.eos_token_id
        for second, q in {1: 1.0}.items() if ends else top3([*prompt, first]).items():
            text = tokenizer.decode([first, second], skip_special_tokens=True)
            wanted[text] = wanted.get(text, 0) + p * q
    sampling = Sampling(temperature=0.7, top_k=3, max_tokens=2)
    (drawn,) = texts(fresh(llama), cases[1:2], sampling, n=6000)
    counts = [drawn.count(text) for text in wanted]
    assert sum(counts) == 6000
    assert chisquare(counts, [6000 * p for p in wanted.values()]).pvalue > 0.001


def test_token_counts_leave_out_the_stop_and_say_why_a_text_ended(
    llama: Checkpoint, cases: list[Case]
) -> None:
    rows = fresh(llama).generate(cases, [range(9)] * len(cases), SAMPLED)
    completions = [c for row in rows for c in row]
    stopped = [c for c in completions if c.finish_reason == "stop"]
    assert 5 < len(stopped) < len(completions) - 5
    assert all(c.completion_tokens == 12 for c in completions if c.finish_reason == "length")
    assert all(c.completion_tokens is not None and c.completion_tokens < 12 for c in stopped)
    assert [row[0].prompt_tokens for row in rows[:2]] == [4, 16]  # <bos> <user> ... <bot>


def test_a_prompt_that_leaves_no_room_is_null_and_the_others_are_answered(
    llama: Checkpoint, cases: list[Case]
) -> None:
    long = Case("test", 99, ({"role": "user", "content": "y" * 100},), "")
    engine = fresh(llama)
    rows = engine.generate([cases[0], long], [[0], [1, 2]], SAMPLED)
    assert [c.text for c in rows[0]] == texts(engine, cases[:1], SAMPLED)[0]
    for completion in rows[1]:
        assert (completion.text, completion.error) == (None, "prompt_too_long")
        assert (completion.prompt_tokens, completion.completion_tokens) == (103, None)


@pytest.mark.parametrize(("room", "error"), [(16, None), (15, "prompt_too_long")])
def test_prompt_and_completion_may_fill_max_context_exactly(
    llama: Checkpoint, cases: list[Case], room: int, error: str | None
) -> None:
    engine = fresh(llama, max_context=room)  # the prompt has 4 tokens
    assert engine.generate(cases[:1], [[1]], SAMPLED)[0][0].error == error


@pytest.mark.parametrize("architecture", ["llama tied", "qwen2"])
def test_after_a_swap_and_back_the_texts_are_those_of_fresh_engines(
    new_checkpoint: NewCheckpoint,
    cases: list[Case],
    caplog: pytest.LogCaptureFixture,
    architecture: str,
) -> None:
    a, b = (new_checkpoint(**ARCHITECTURES[architecture], seed=seed) for seed in (1, 2))
    expected = {c: texts(fresh(c), cases, GREEDY) for c in (a, b)}
    assert expected[a] != expected[b]
    caplog.set_level(logging.INFO)
    engine = fresh(a)
    for checkpoint in (b, a, b):
        engine.load(checkpoint)
        assert texts(engine, cases, GREEDY) == expected[checkpoint]
    assert sum("a new" in record.message for record in caplog.records) == 1


def test_another_architecture_gets_a_model_of_its_own(
    llama: Checkpoint, new_checkpoint: NewCheckpoint, cases: list[Case]
) -> None:
    rope = new_checkpoint(rope_parameters={"rope_type": "default", "rope_theta": 50.0})
    engine = fresh(llama)
    before = texts(engine, cases, GREEDY)
    engine.load(rope)
    assert texts(engine, cases, GREEDY) == texts(fresh(rope), cases, GREEDY) != before
    engine.load(llama)
    assert texts(engine, cases, GREEDY) == before


def test_any_stop_of_a_list_ends_a_completion(
    llama: Checkpoint, cases: list[Case], tmp_path: Path, edit: Callable[..., None]
) -> None:
    whole = str(texts(fresh(llama), cases[2:3], SAMPLED)[0][0])
    letter = next(character for character in whole if "!" <= character <= "~")
    tokenizer: Any = AutoTokenizer.from_pretrained(llama.path)
    stop = tokenizer(letter, add_special_tokens=False)["input_ids"][0]
    shutil.copytree(llama.path, tmp_path, dirs_exist_ok=True)
    edit(tmp_path / "generation_config.json", eos_token_id=[1, stop])
    engine = fresh(Checkpoint("run", 0, str(tmp_path), "full", ""))
    (cut,) = engine.generate(cases[2:3], [[200]], SAMPLED)[0]
    assert (cut.text, cut.finish_reason) == (whole[: whole.index(letter)], "stop")


def test_a_policy_whose_logits_overflow_is_refused_and_the_next_one_answers(
    llama: Checkpoint, cases: list[Case], tmp_path: Path
) -> None:
    shutil.copytree(llama.path, tmp_path, dirs_exist_ok=True)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.norm.weight"] = torch.full_like(tensors["model.norm.weight"], 3e38)
    save_file(tensors, tmp_path / "model.safetensors")
    engine = fresh(Checkpoint("run", 7, str(tmp_path), "full", ""))
    with pytest.raises(
        CheckpointError, match="not finite: training diverged, or a file is damaged"
    ):
        engine.generate(cases, [[1]] * len(cases), SAMPLED)
    engine.load(llama)
    assert texts(engine, cases, GREEDY) == texts(fresh(llama), cases, GREEDY)


def test_lower_precision_promises_nothing_and_still_answers(
    llama: Checkpoint, cases: list[Case]
) -> None:
    engine = fresh(llama, dtype="bfloat16")
    assert (engine.determinism, fresh(llama).determinism) == ("none", "text")
    assert all(isinstance(text, str) for row in texts(engine, cases, SAMPLED) for text in row)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"dtype": "int4"}, "int4"), ({"batch": -1}, "at least 1"), ({"colour": 1}, "colour")],
)
def test_an_option_that_cannot_be_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        engines.load("hf", options)


def test_generating_before_loading_says_so(cases: list[Case]) -> None:
    with pytest.raises(EngineError, match="no checkpoint"):
        hf.build().generate(cases, [[1]] * len(cases), SAMPLED)


def test_no_cases_are_no_completions(llama: Checkpoint) -> None:
    assert fresh(llama).generate([], [], SAMPLED) == []


requests = st.lists(
    st.builds(
        Request,
        st.lists(st.integers(0, 3), min_size=1, max_size=6),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(0, 9),
    )
)


@given(requests, st.integers(1, 5), st.integers(1, 2**17))
def test_batches_hold_every_request_once_within_the_limits(
    owed: list[Request], rollouts: int, room: int
) -> None:
    made = list(batches(owed, rollouts, room))
    key = repr
    assert sorted((r for batch in made for r in batch), key=key) == sorted(owed, key=key)
    for batch in made:
        assert len(batch) <= rollouts
        width = max(len(r.prompt) for r in batch) + room
        assert len(batch) == 1 or len(batch) * width <= POSITIONS
        seen = [tuple(r.prompt) for r in batch]
        changes = sum(a != b for a, b in pairwise(seen))
        assert changes + 1 == len(set(seen))
