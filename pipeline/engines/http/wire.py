"""Requests and answers of the protocol as plain JSON; nothing is sent here."""

from collections.abc import Mapping
from typing import Any

from hackbait.environment import Case
from pipeline.records import TOO_LONG, Completion, Sampling

NEUTRAL = {
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sent with every request, since servers have defaults of their own: vLLM and SGLang those of the
model's generation_config.json, llama.cpp a min_p of 0.05 and a top_k of 40."""
WHOLE_VOCABULARY = -1
"""The top_k that turns it off in vLLM, SGLang and llama.cpp alike."""
DATE = "26 Jul 2024"
"""The day that engine `hf` tells templates, too."""
NEVER_ANSWERED = {"content_filter", "tool_calls", "function_call"}
"""Finish reasons of a completion that is not the text asked for, however often it is asked."""


class Unreadable(ValueError):
    """No completion in the answer; the message says what instead. Asking again may help."""


def settings(model: str, seed: int, sampling: Sampling) -> dict[str, Any]:
    """What every request says, whatever is asked: one completion, and how it is drawn."""
    return {
        "model": model,
        "n": 1,
        "stream": False,
        "seed": seed,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or WHOLE_VOCABULARY,
        "max_tokens": sampling.max_tokens,
        **NEUTRAL,
    }


def messages(case: Case) -> dict[str, Any]:
    """A case as the server's own template will have it."""
    return {
        "messages": [dict(message) for message in case.messages],
        "chat_template_kwargs": {"date_string": DATE},
    }


def served(answer: object) -> dict[str, str | None]:
    """Names in a list of models, and where the server says that each came from. Or Unreadable."""
    match answer:
        case {"data": [*entries]} if all(isinstance(entry, dict) for entry in entries):
            named = {e["id"]: e.get("root") for e in entries if isinstance(e.get("id"), str)}
            return {name: v if isinstance(v, str) else None for name, v in named.items()}
    raise Unreadable("no list of models")


def model(answer: object) -> str | None:
    """The name of the model that answered, where it is said."""
    name = answer.get("model") if isinstance(answer, dict) else None
    return name if isinstance(name, str) else None


def completion(answer: object, max_tokens: int) -> Completion:
    """The one completion in an answer. Raises Unreadable.

    A text that only reasoning was written in is empty. As in engine `hf`, the token that stopped a
    completion is not counted, and one that the context's end cut short of `max_tokens` was asked
    too long a prompt.
    """
    match answer:
        case {"choices": [{"finish_reason": str(reason)} as choice, *_], **rest}:
            said, usage = choice.get("message", choice), rest.get("usage")
        case _:
            raise Unreadable("no finished choice")
    prompt_tokens, tokens = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if reason in NEVER_ANSWERED or (isinstance(said, dict) and said.get("refusal")):
        why = "refused" if reason not in NEVER_ANSWERED else reason
        return Completion(None, None, prompt_tokens, None, why)
    if reason == "length":
        if tokens is not None and tokens < max_tokens:
            return Completion(None, None, prompt_tokens, None, TOO_LONG)
        return Completion(_text(said), "length", prompt_tokens, tokens, None, _reasoning(said))
    if reason != "stop":
        raise Unreadable(f"finish_reason {reason!r}")
    tokens = max(tokens - 1, 0) if tokens else tokens
    return Completion(_text(said), "stop", prompt_tokens, tokens, None, _reasoning(said))


def _reasoning(said: object) -> str | None:
    """What a server's reasoning parser took out of the text."""
    match said:
        case {"reasoning_content": str(text)} | {"reasoning": str(text)}:
            return _whole(text)
    return None


def _text(said: object) -> str:
    """Content of a message, or text of a choice."""
    match said:
        case {"content": str(text)} | {"text": str(text)}:
            return _whole(text)
        case {"content": None}:
            return ""
    raise Unreadable("no text")


def _whole(text: str) -> str:
    """Text without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if type(value) is int and value >= 0 else None
