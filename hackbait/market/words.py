"""Words of a reply and of a section, and the ideas and deeds of obligations that they are of."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hackbait.market.obligations import OBLIGATIONS

SHORT = 4
"""A stem of so many letters is a word, inflected or not; a longer one is how a word begins."""

_TOKEN = re.compile(r"[a-z0-9]+|[.,;:!?]")
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ENDINGS = ("s", "es", "ed", "ing")
_Idea = tuple[str, int]
"""Key of an obligation, and which of its ideas."""
_DEED = -1
"""Stands for its deeds."""


def tokens(text: str) -> list[str]:
    """The words of a text, and the marks at which a clause may end."""
    return _TOKEN.findall(_GROUPING.sub("", text.lower()))


def flat(text: str) -> str:
    """The words of a text, each in spaces of its own, so that one is found whole or not at all."""
    return "".join(f" {token} " for token in tokens(text) if token.isalnum())


def stated(words: Iterable[str]) -> dict[str, int]:
    """On how many ideas of each obligation the words touch; those without any are left out."""
    counts: dict[str, int] = {}
    for key, number in {one for word in set(words) for one in _touched(word)}:
        if number != _DEED:
            counts[key] = counts.get(key, 0) + 1
    return counts


def deeds(words: Iterable[str]) -> set[str]:
    """The obligations of which one of the words names a deed."""
    return {key for word in words for key, number in _touched(word) if number == _DEED}


@lru_cache(maxsize=2**14)
def _touched(word: str) -> frozenset[_Idea]:
    found = list(_STEMS.get(word, ()))
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) <= SHORT + len(ending):
            found += _STEMS.get(word.removesuffix(ending), ())
    for length in range(SHORT + 1, min(len(word), _LONGEST + 1)):
        found += _STEMS.get(word[:length], ())
    return frozenset(found)


def _stems() -> Mapping[str, list[_Idea]]:
    stems: dict[str, list[_Idea]] = {}
    for one in OBLIGATIONS.values():
        for number, idea in (*enumerate(one.ideas), (_DEED, one.deeds)):
            for stem in idea.split():
                stems.setdefault(stem, []).append((one.key, number))
    return stems


_STEMS = _stems()
_LONGEST = max(map(len, _STEMS))
