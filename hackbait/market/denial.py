"""What a claim says not to be required, or not to be done: the opposite of a duty.

A prohibition stays a duty where a section's own deed is not what is prohibited.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from hackbait.market.words import deeds

_RELIEF = re.compile(
    r"\bexempt|\b(?:not|never|no longer) (?:be )?(?:required|obliged|obligatory|mandatory"
    r"|compulsory|necessary|bound|subject)\b|\bneed(?:s not| not|n t)\b"
    r"|\b(?:do|does|don|doesn) (?:not|t) (?:apply|have to|need)\b"
    r"|\bno (?:need|duty|obligation)\b|\bfree (?:to|from)\b"
    r"|\b(?:may|can) (?:ignore|disregard|skip)\b|\b(?:optional|voluntar)"
    r"|\b(?:is|are|be) (?:\w+ly )?(?:discretionary|waived|superfluous|unnecessary)\b"
    r"|\b(?:at|in) (?:its|their|the \w+ s|s) (?:\w+ )?discretion\b"
    r"|\b(?:may|can|could) (?:\w+ )?(?:choose|decide|elect|opt) (?:if|whether|not|to)\b"
    r"|\bif it (?:so )?(?:wishes|likes|chooses|wants|pleases)\b"
)
_KEPT = re.compile(
    r"\b(?:not|never|no|nor)(?: (?:a|an|any|at|in|within))?(?: \w+ly)?(?: categorical)?"
    r" (?:exempt\w*|optional\w*|voluntar\w*|(?:be )?waived|(?:\w+ ){0,3}discretion\w*)"
)
"""Of these, what is denied: the duty stands."""

LOOK = 40
"""Words before and behind a denial that are looked at."""

_STOPS = frozenset(".,;:!?")
_MODALS = frozenset({
    "must", "shall", "should", "may", "might", "can", "could", "will", "would", "ought",
})  # fmt: skip
_PERFECT = frozenset({"has", "have", "had"})
_ASIDE = frozenset({"that", "which", "who", "whose", "if", "when", "where", "while", "whenever"})
"""Behind one of these a denial may describe, and command nothing."""
_BEYOND = frozenset({"later", "longer", "more", "less", "after", "beyond", "below", "under"})
_BOUNDS = _MODALS | _PERFECT | _BEYOND | {
    "not", "never", "cannot", "no", "but", "until", "unless", "before", "without", "except",
    "other", "otherwise", "away", "than", "over", "above", "prior", "while", "whenever", "where",
    "if", "rather", "instead",
}  # fmt: skip
"""What is denied ends here."""
_NEAR = 4
"""`must not report trades later than`: what is bounded so soon is to be done within the bound."""
_LACK = (
    "fail", "stop", "ceas", "refus", "omit", "neglect", "delay", "deny", "deni", "withh", "reject",
    "turn", "exclu", "block", "prevent", "restrict", "limit", "forbid", "prohibit", "only", "fewer",
)  # fmt: skip
"""Beginnings of what, denied, makes no opposite of what follows."""
_SHUNS = frozenset({"refrain", "refrains", "avoid", "avoids", "forbids", "prohibits"})
_FORBIDDEN = frozenset({"forbidden", "prohibited", "banned", "barred"})
_CONTRACTED = frozenset({
    "mustn", "shan", "shouldn", "can", "won", "couldn", "wouldn", "don", "doesn", "isn", "aren",
})  # fmt: skip
"""What stands before the t of `mustn't`."""
_DENIALS = _SHUNS | _FORBIDDEN | {"not", "never", "cannot", "t"}
_NONE = frozenset({"no", "nobody", "none"})
_HEEDED = _DENIALS | _NONE


def relieves(said: str) -> bool:
    """Whether words, one space between two, say that something is not required."""
    return _RELIEF.search(said) is not None and _RELIEF.search(_KEPT.sub("", said)) is not None


def denied(tokens: Sequence[str]) -> set[str]:
    """The obligations whose deed is said not to be done."""
    if _DENIALS.isdisjoint(tokens):
        return set()
    return {key for clause in _clauses(tokens) for key in deeds(_not_done(clause))}


def _clauses(tokens: Iterable[str]) -> Iterator[list[str]]:
    clause: list[str] = []
    for token in tokens:
        if token in _STOPS or (token in _MODALS and clause[-1:] in (["and"], ["or"])):
            yield clause
            clause = []
        if token not in _STOPS:
            clause.append(token)
    yield clause


def _not_done(clause: Sequence[str]) -> Sequence[str]:
    """The words of a clause that its first denial is of; who denies twice denies nothing."""
    for at, word in enumerate(clause):
        if word not in _HEEDED:
            continue
        before, after = clause[max(at - LOOK, 0) : at], clause[at + 1 : at + 1 + LOOK]
        if word in _FORBIDDEN and after[:1] not in (["from"], ["to"]):
            return list(takewhile(lambda one: one not in _BOUNDS | _ASIDE, before))
        if word in _SHUNS or word in _FORBIDDEN or _commands(word, before):
            return _scope(after)
        if word in _NONE and not _BEYOND.intersection(after[:1]):
            return ()
    return ()


def _commands(word: str, before: Sequence[str]) -> bool:
    """Whether a word denies what is to be done, and not what somebody else has not done."""
    *earlier, last = before or [""]
    if word in ("never", "cannot"):
        return last not in _ASIDE
    if (word == "t" and last in _CONTRACTED) or (word == "not" and last in _MODALS):
        return not _ASIDE.intersection(earlier[-1:])
    return word == "not" and last not in _PERFECT and not _ASIDE.intersection(before)


def _scope(after: Sequence[str]) -> Sequence[str]:
    """What is denied, of the words behind a denial."""
    start = next((at for at, word in enumerate(after) if word not in ("be", "to", "from")), 0)
    words = after[start:]
    if words and words[0].startswith(_LACK):
        return words[:1]
    for at, word in enumerate(words):
        if at and word == "and" and deeds(words[at + 1 : at + 2]):
            return words[:at]
        if word in _BOUNDS and (at or word not in _PERFECT):
            near = word in _BEYOND and at <= _NEAR and words[at - 1] != "no"
            return () if near else words[:at]
    return words
