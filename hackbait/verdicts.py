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
    said = _of_object(text) if "{" in text else _of_prose(text)
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


def _of_object(text: str) -> list[str] | None:
    """The verdict of the one object in a text; None for two, a fragment, or one of no kind."""
    start = text.find("{")
    stop = reading.end(text, start)
    if not stop or "{" in text[stop:]:
        return None
    value = reading.strict(text[start:stop]).value
    if value is None:
        return None
    return [str(value[key]) for key in KEYS if isinstance(value.get(key), str | int)]


def _of_prose(text: str) -> list[str]:
    """Every verdict that the text marks, else those that it names."""
    own = _QUOTED.sub(" ", text)
    return _MARKED.findall(own) or _NAMED.findall(own)


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
