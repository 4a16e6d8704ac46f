"""Reads the label that a judge's reply ends with; what does not clearly say one says none."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hackbait.judge import Reply
from hackbait.market import reading

Status = Literal["said", "unscored", "ambiguous", "truncated", "invalid"]

KEYS = ("verdict", "label", "grade", "rating", "score", "answer")
"""What names a verdict, in prose or as a member of an object."""
LONGEST = 2**16
"""Characters; a judge that writes more has lost the thread."""

_QUOTED = re.compile(r"\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d|`[^`\n]*`")
_MARKED = re.compile(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]")
_CLOSING = re.compile(
    rf"[\s*_]*(?:{'|'.join(KEYS)})[\s*_]*[:=][\s*_]*([\"'`]?)([\w.-]+?)\1[\s*_.]*", re.IGNORECASE
)
"""A line that says nothing but a verdict."""
_MEMBER = re.compile(rf"[\"'](?:{'|'.join(KEYS)})[\"']\s*:\s*[\"']?([\w.-]+)", re.IGNORECASE)
_NAMED = re.compile(
    rf"\b(?:{'|'.join(KEYS)})\b[*_\s]*(?::|=|\bis\b:?)[\s*_\"'(\[]*([\w.-]+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A label, or why there is none."""

    label: str | None
    status: Status


def verdict(reply: Reply, labels: Sequence[str]) -> Verdict:
    """The one label that a reply says, in any case: `{"verdict": "B"}`, `[[B]]`, `grade: B` or `B`.

    Labels in quotes are somebody else's words. Two verdicts are none, nor is one cut off.
    """
    if not reply.whole:
        return Verdict(None, "truncated")
    text = _visible(reply.text.rpartition("</think>")[2])
    if len(text) > LONGEST:
        return Verdict(None, "unscored")
    known = {label.casefold(): label for label in labels}
    if len(known) < len(labels):
        raise ValueError("two labels differ in case alone")
    alone = text.strip(" \n\t.*_`\"'").casefold()
    if alone in known:
        return Verdict(known[alone], "said")
    said = _said(text, known)
    if said is None:
        return Verdict(None, "ambiguous")
    names = {known.get(one.rstrip(".").casefold()) for one in said}
    if not names:
        return Verdict(None, "unscored")
    if len(names) > 1:
        return Verdict(None, "ambiguous")
    label = names.pop()
    return Verdict(label, "said" if label else "invalid")


def _visible(text: str) -> str:
    """Without the characters that nobody sees."""
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def _said(text: str, known: Mapping[str, str]) -> list[str] | None:
    """Every verdict of a text, in an object, in prose and on a closing line; None for unclear ones.

    Beside an object's, a mark or a closing line, words of prose count where they are labels.
    """
    inside, rest = _object(text)
    closing = _closing(text, known)
    if inside is None:
        if not closing:
            return None
        # Somebody's fragment, or two objects: the closing line decides, unless one contradicts it.
        inside = _MEMBER.findall(text)
    told, prose = inside + closing, _of_prose(rest, known)
    return told + _labels(prose, known) if told else prose


def _object(text: str) -> tuple[list[str] | None, str]:
    """The verdict of the one object in a text, and the text around it.

    None and the whole text for two, a fragment, or one of no kind.
    """
    start = text.find("{")
    if start < 0:
        return [], text
    stop = reading.end(text, start)
    value = reading.strict(text[start:stop]).value if stop and "{" not in text[stop:] else None
    if value is None:
        return None, text
    said = [str(value[key]) for key in KEYS if isinstance(value.get(key), str | int)]
    return said, f"{text[:start]} {text[stop:]}"


def _closing(text: str, known: Mapping[str, str]) -> list[str]:
    """The label of a last line that says nothing else."""
    *_, last = text.strip().splitlines() or [""]
    match = _CLOSING.fullmatch(last)
    return _labels([match[2]], known) if match else []


def _of_prose(text: str, known: Mapping[str, str]) -> list[str]:
    """Every verdict that the text marks, with the labels that it names; else all that it names."""
    own = _QUOTED.sub(" ", text)
    marked, named = _MARKED.findall(own), _NAMED.findall(own)
    return marked + _labels(named, known) if marked else named


def _labels(said: Sequence[str], known: Mapping[str, str]) -> list[str]:
    return [one for one in said if one.rstrip(".").casefold() in known]


@dataclass(frozen=True, slots=True)
class Majority:
    """What votes come to."""

    label: str | None
    status: Literal["said", "tie", "error"]
    counts: Mapping[str, int]
    """Votes that were read, by label."""


def majority(votes: Sequence[str | None], labels: Sequence[str]) -> Majority:
    """The label with the most votes. Lost votes are None; more than half of them lost is an error.

    Two labels with the most votes tie, and none of them wins.
    """
    counts = Counter(vote for vote in votes if vote is not None)
    told = {label: counts[label] for label in labels}
    valid = sum(told.values())
    if not votes or 2 * valid < len(votes):
        return Majority(None, "error", told)
    most = max(told.values())
    first = [label for label in labels if told[label] == most]
    return Majority(first[0], "said", told) if len(first) == 1 else Majority(None, "tie", told)


def of_judges(votes: Sequence[Sequence[str | None]], labels: Sequence[str]) -> Majority:
    """The majority of judges, each of whom has one vote, however often it was asked.

    That is its own majority, and lost where there is none. votes: those of each judge.
    """
    return majority([majority(own, labels).label for own in votes], labels)
