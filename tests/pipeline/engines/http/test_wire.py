import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.http import wire
from pipeline.records import Completion, Sampling

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "model": JSON,
        "usage": JSON
        | st.fixed_dictionaries({}, optional={"prompt_tokens": JSON, "completion_tokens": JSON}),
        "choices": JSON
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "finish_reason": JSON | st.sampled_from(["stop", "length", "abort"]),
                    "text": JSON,
                    "message": JSON
                    | st.fixed_dictionaries({}, optional={"content": JSON, "refusal": JSON}),
                },
            ),
            max_size=2,
        ),
        "data": JSON | st.lists(st.fixed_dictionaries({}, optional={"id": JSON, "root": JSON})),
    },
)


def chat(finish: Any = "stop", tokens: Any = 4, **message: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 7, "completion_tokens": tokens}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


@given(JSON | LIKELY)
def test_an_answer_is_a_completion_or_unreadable_and_nothing_else(answer: object) -> None:
    for read in (wire.served, wire.model, lambda a: wire.completion(a, 16)):
        with suppress(wire.Unreadable):
            read(answer)


@given(st.text(st.characters()), st.sampled_from(["stop", "length"]))
def test_a_text_arrives_as_it_was_written(text: str, finish: str) -> None:
    answer = json.loads(json.dumps(chat(finish, 16, content=text)))
    assert wire.completion(answer, 16).text == text.encode("utf-8", "replace").decode()


def test_a_lone_half_of_a_surrogate_pair_cannot_get_into_a_row() -> None:
    assert wire.completion(chat(content="a\ud800b"), 16).text == "a?b"


@pytest.mark.parametrize(
    ("finish", "tokens", "expected"),
    [
        ("stop", 4, Completion("Hi", "stop", 7, 3)),
        ("stop", 0, Completion("Hi", "stop", 7, 0)),
        ("stop", None, Completion("Hi", "stop", 7, None)),
        ("length", 16, Completion("Hi", "length", 7, 16)),
        ("length", None, Completion("Hi", "length", 7, None)),
        ("length", 15, Completion(None, None, 7, None, "prompt_too_long")),
        ("tool_calls", 4, Completion(None, None, 7, None, "tool_calls")),
        ("content_filter", 4, Completion(None, None, 7, None, "content_filter")),
    ],
)
def test_the_stop_is_not_counted_and_a_cut_by_the_context_is_no_length(
    finish: str, tokens: int | None, expected: Completion
) -> None:
    assert wire.completion(chat(finish, tokens, content="Hi"), 16) == expected
    choice = {"text": "Hi", "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": tokens}
    assert wire.completion({"choices": [choice], "usage": usage}, 16) == expected


@pytest.mark.parametrize("finish", ["abort", "error", "", None, 7])
def test_a_completion_that_was_broken_off_is_unreadable(finish: object) -> None:
    with pytest.raises(wire.Unreadable, match="finish"):
        wire.completion(chat(finish, content="Hi"), 16)


def test_a_top_k_is_sent_as_it_is_and_none_as_minus_one() -> None:
    assert wire.settings("m", 1, Sampling(top_k=5))["top_k"] == 5
    assert wire.settings("m", 1, Sampling(top_k=0))["top_k"] == -1


def test_models_are_listed_with_where_they_came_from() -> None:
    entries = [{"id": "a", "root": "/w/a"}, {"id": "b", "root": None}, {"id": "c"}, {"object": 1}]
    assert wire.served({"data": entries}) == {"a": "/w/a", "b": None, "c": None}
    assert wire.served({"data": []}) == {}
    for wrong in ({}, [], {"data": [1]}, {"data": {"id": "a"}}, "<html>"):
        with pytest.raises(wire.Unreadable, match="no list of models"):
            wire.served(wrong)
