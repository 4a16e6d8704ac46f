"""Cuts a reply into claims: the pieces of text in which a citation and what is said of it meet."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hackbait.market.citations import Citation, cites, located, unescaped

_SENTENCE = re.compile(r"(?<=[a-z0-9)\"'][.!?])\s+(?![a-z])|\n+")
_CLAUSE = re.compile(r"(?<=;)\s+|,\s+(?=(?:and|but|while|whereas)\s)")


def units(text: str, value: Mapping[str, Any] | None) -> list[str]:
    """The claims of a reply's object; of its text, where no object could be read in it."""
    if value is None:
        return list(_sentences(unescaped(text)))
    return [unit for name, member in value.items() for unit in _member(name, member)]


def _member(name: str, value: Any) -> Iterator[str]:
    """Claims of a member; its name belongs to them where it cites something."""
    label = f"{name}: " if cites(unescaped(name)) else ""
    if isinstance(value, str):
        yield from _sentences(unescaped(label + value))
    elif isinstance(value, list):
        for item in value:
            yield from _member(name, item)
    elif isinstance(value, dict):
        said = unescaped(label + ". ".join(texts(value)))
        if len(_cited(said)) <= 1:
            yield said
        else:
            for inner, member in value.items():
                yield from _member(inner if cites(unescaped(inner)) else name, member)


def texts(value: Any) -> Iterator[str]:
    """Every text within, and the names of members that cite."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from [name] if cites(unescaped(name)) else []
            yield from texts(member)


def _sentences(text: str) -> Iterator[str]:
    """The text whole where it cites one provision; else by sentence, uncited ones with the last."""
    if len(_cited(text)) <= 1:
        yield text
        return
    held = ""
    for sentence in _SENTENCE.split(text):
        if _cited(sentence) and held:
            yield from _clauses(held)
            held = ""
        held = f"{held} {sentence}" if held else sentence
    yield from _clauses(held)


def _clauses(sentence: str) -> list[str]:
    """The clauses of a sentence where each cites; else the sentence whole."""
    clauses = _CLAUSE.split(sentence)
    return clauses if all(map(_cited, clauses)) else [sentence]


def _cited(text: str) -> set[Citation]:
    return {citation for citation, _, _ in located(text)}
