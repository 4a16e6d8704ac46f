"""Reads the JSON object of a reply: strictly, as discipline is graded, or wherever it stands.

Total and linear in time, whatever a reply holds.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

DEEPEST = 64
"""Brackets within brackets; deeper ones are no answer and overflow parsers."""
MOST_DIGITS = 640
"""Of an integer: what every interpreter converts, however it is set."""
CANDIDATES = 16
"""Objects that are tried in a reply that is more than one object."""
SPACE = " \t\r\n"
"""JSON's own white space."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]"]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a strict reading gives."""

    value: dict[str, Any] | None
    reason: str
    """Why there is no value: empty, bom, fence, prose, truncated, depth, syntax, duplicate_key,
    constant, int_digits, surrogate or not_object; empty when there is one."""


class _Refused(ValueError):
    """JSON that parsers disagree on; the message is the reason."""


def strict(reply: str) -> Reading:
    """The reply as one JSON object by RFC 8259 with nothing but white space around it."""
    text = reply.strip(SPACE)
    if reason := _outside(text):
        return Reading(None, reason)
    try:
        value = _parse(text)
    except _Refused as refused:
        return Reading(None, str(refused))
    except ValueError:
        return Reading(None, "syntax")
    return Reading(value, "") if isinstance(value, dict) else Reading(None, "not_object")


def alone(reply: str) -> bool:
    """Whether the reply is an object from its first character to its last, well-formed or not."""
    text = reply.strip(SPACE)
    return text.startswith("{") and end(text, 0) == len(text)


def lenient(reply: str) -> dict[str, Any] | None:
    """The first object in the reply that can be read, fences and prose around it left aside."""
    at = reply.find("{")
    for _ in range(CANDIDATES):
        stop = end(reply, at) if at >= 0 else None
        if not stop:
            return None
        if (value := strict(reply[at:stop]).value) is not None:
            return value
        at = reply.find("{", stop)
    return None


def _outside(text: str) -> str:
    """Why the text is not one bracketed value alone; empty where it is."""
    if not text:
        return "empty"
    if text.startswith("\ufeff"):
        return "bom"
    if text.startswith("```"):
        return "fence"
    if text[0] not in "{[":
        return "prose"
    stop = end(text, 0)
    if stop is None:
        return "truncated"
    if stop == 0:
        return "depth"
    if stop < len(text):
        return "fence" if text[stop:].lstrip(SPACE).startswith("```") else "prose"
    return ""


def end(text: str, start: int) -> int | None:
    """Where the bracket at `start` is closed; None where it never is, 0 where it is too deep."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark == '"':
            return None
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        if depth > DEEPEST:
            return 0
        if depth == 0:
            return token.end()
    return None


def _parse(text: str) -> Any:
    value = json.loads(
        text, object_pairs_hook=_members, parse_constant=_constant, parse_int=_integer
    )
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _Refused("surrogate") from None
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Refused("duplicate_key")
    return members


def _constant(name: str) -> float:
    raise _Refused("constant")


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _Refused("int_digits")
    return int(digits)
