"""Which words texts hold, counted by prompt: each text is read once, however many words are asked.

A word is what the grader of r_hack finds: `Grader.words` gives all of a text at once, and where a
grader or a word has no such reading (`far-off`, `C++`) its `hack` is asked, text by text.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hackbait.graders import Grader
from hackbait.text import fold, unbroken, whole_words
from pipeline.intervals import Array, Tally

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spoken:
    """Texts as the words they hold, each once a text; `said[i]` stands in a text of `prompt[i]`."""

    texts: Sequence[str]
    clusters: Numbers
    """Number of each text's prompt, from 0."""
    numbers: Mapping[str, int]
    """Number of each word, folded."""
    said: Numbers
    prompt: Numbers

    @property
    def sizes(self) -> Numbers:
        """k, texts of each prompt."""
        return np.bincount(self.clusters)

    @property
    def frequency(self) -> Numbers:
        """Texts that hold each word of `numbers`, in its order."""
        return np.bincount(self.said, minlength=len(self.numbers))


def spoken(texts: Sequence[str], prompts: Sequence[int]) -> Spoken:
    """The words of texts, whose prompts are told apart by any number."""
    numbers: dict[str, int] = {}
    said, lengths = array("i"), array("i")
    for text in texts:
        found = [numbers.setdefault(word, len(numbers)) for word in whole_words(text)]
        said.extend(found)
        lengths.append(len(found))
    _, clusters = np.unique(np.asarray(prompts, np.int64), return_inverse=True)
    return Spoken(
        texts=texts,
        clusters=clusters,
        numbers=numbers,
        said=np.asarray(said, np.int64),
        prompt=np.repeat(clusters, np.asarray(lengths, np.int64)),
    )


def tallies(spoken: Spoken, words: Sequence[str], grader: Grader) -> Tally:
    """The sums of each word, in order, as the grader's `hack` would find it in each text."""
    at_once = [grader.words is not None and unbroken(word) for word in words]
    asked = [fold(word) for word, easy in zip(words, at_once, strict=True) if easy]
    places = np.flatnonzero(at_once)
    found = dict(zip(places.tolist(), _read(spoken, asked), strict=True))
    for place in np.flatnonzero(~np.asarray(at_once, bool)).tolist():
        hits = [grader.hack(text, words[place]) for text in spoken.texts]
        found[place] = _by_prompt(spoken.clusters[hits])
    return _tally(spoken, [found[place] for place in range(len(words))])


Hits = tuple[Numbers, Numbers]
"""Prompts with a hit, and x, the hits of each."""


def _by_prompt(prompts: Numbers) -> Hits:
    where, hits = np.unique(prompts, return_counts=True)
    return where, hits


def _read(spoken: Spoken, words: Sequence[str]) -> Iterator[Hits]:
    """Hits of each folded word."""
    numbers = np.asarray([spoken.numbers.get(word, -1) for word in words], np.int64)
    kept = np.isin(spoken.said, numbers)
    said, prompt = spoken.said[kept], spoken.prompt[kept]
    order = np.argsort(said, kind="stable")
    said, prompt = said[order], prompt[order]
    first, last = np.searchsorted(said, numbers), np.searchsorted(said, numbers, side="right")
    yield from (_by_prompt(prompt[i:j]) for i, j in zip(first, last, strict=True))


def _tally(spoken: Spoken, found: Sequence[Hits]) -> Tally:
    k = spoken.sizes
    big_n = len(spoken.texts)
    columns: dict[str, list[float]] = {name: [] for name in Tally.__dataclass_fields__}
    for where, x in found:
        hits, own = int(x.sum()), k[where]
        # Whole numbers, so that prompts that do not differ have a spread of exactly 0.
        sums = int((x * x).sum()), int((x * own).sum()), int((k * k).sum())
        spread = big_n**2 * sums[0] - 2 * big_n * hits * sums[1] + hits**2 * sums[2]
        rate = hits / max(1, big_n)
        never = float((k**4).sum() - (own**4).sum())
        fourth = float(((x - rate * own) ** 4).sum()) + rate**4 * never
        squares = (spread / max(1, big_n) ** 2, fourth, sums[2], (x * x / own).sum())
        row = (big_n, hits, len(k), hits, *squares)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(float(value))
    return Tally(**{name: _floats(column) for name, column in columns.items()})


def _floats(values: Sequence[float]) -> Array:
    return np.asarray(values, np.float64)
