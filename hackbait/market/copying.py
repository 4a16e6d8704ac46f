"""Which words of a claim are a provided section's: copied, or copied with a few words changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hackbait.market.words import flat

COPIED = 6
"""Words in a row that stand in a provided section: they are its, not the reply's."""
CONTENT = 3
"""How many of them are content at least: `20 per cent of the open interest` is nobody's own."""
RUN = 3
"""As many of a section's words in a row, again and again, are those of a copy with changes."""
COVERED = 1 / 2
"""Share of a section's words in such runs beyond which it is copied."""
APART = 8
"""Words from the beginning of one such run to that of the next, at most."""
PATCH = 2
"""Words around them that are what was changed."""
CHAINED = 3 / 4
"""Share of its content words that follow in its order and close by, from which it is."""
STEP = 3
"""Content words from one to the next in a chain: two may be changed, left out or put in between."""

_FUNCTION = frozenset({
    "a", "an", "the", "of", "to", "in", "on", "at", "by", "for", "with", "from", "into", "within",
    "and", "or", "nor", "but", "as", "than", "that", "which", "who", "whom", "whose", "what",
    "this", "these", "those", "it", "its", "they", "them", "their", "he", "his", "she", "her",
    "one", "each", "every", "any", "all", "some", "such", "is", "are", "was", "were", "be",
    "been", "being", "do", "does", "did", "has", "have", "had", "having", "shall", "must", "may",
    "might", "can", "could", "will", "would", "should", "not", "no", "if", "when", "where",
    "while", "so", "there", "then", "here", "before", "after", "during", "upon", "about", "under",
    "over", "between", "against", "per", "cent", "business", "day", "days", "year", "years",
    "hour", "hours", "minute", "minutes", "second", "seconds", "hundredths", "microseconds",
})  # fmt: skip
"""What is no content: function words, and what numbers count."""
_ENDINGS = ("ing", "ed", "es", "s", "er", "e")
_Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """The words of one section, behind its `A firm shall`."""

    runs: Mapping[_Run, int]
    """Each run of `RUN` words, and where it begins."""
    length: int
    roots: Mapping[str, tuple[int, ...]]
    """Each content word, and its places among them."""
    contents: int


@dataclass(frozen=True, slots=True)
class Sections:
    """What of provided sections is looked for in claims."""

    known: frozenset[_Run]
    """Every run of `RUN` words."""
    verbatim: frozenset[_Run]
    """Every run of `COPIED` words that holds content."""
    sources: tuple[_Source, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Sections":
        words = [flat(text).split() for text in texts]
        runs = frozenset(run for one in words for run in _runs(one, COPIED))
        return cls(
            frozenset(run for one in words for run in _runs(one, RUN)),
            frozenset(run for run in runs if sum(map(bool, map(_root, run))) >= CONTENT),
            tuple(map(_source, texts)),
        )


@dataclass(frozen=True, slots=True)
class _Chain:
    """Content words of a claim that follow each other in a section too."""

    first: int
    last: int
    """Places of the first and last one in the claim."""
    begins: int
    at: int
    """Places of them in the section."""
    count: int


def own(words: Sequence[str], sections: Sections) -> list[str]:
    """The words of a claim that it has not from a provided section."""
    taken = {at for start, stop in _copies(words, sections) for at in range(start, stop)}
    return [word for at, word in enumerate(words) if at not in taken]


def _copies(words: Sequence[str], sections: Sections) -> Iterator[tuple[int, int]]:
    shared = [(at, run) for at, run in enumerate(_runs(words, RUN)) if run in sections.known]
    if shared:
        for at, run in enumerate(_runs(words, COPIED)):
            if run in sections.verbatim:
                yield at, at + COPIED
    places = [at for at, word in enumerate(words) if _root(word)]
    content = [_root(words[at]) for at in places]
    for source in sections.sources:
        yield from _patched(shared, source)
        for first, last in _chained(content, source):
            yield places[max(first, 0)], places[min(last, len(places) - 1)] + 1


def _patched(shared: Sequence[tuple[int, _Run]], source: _Source) -> Iterator[tuple[int, int]]:
    """What lies in and between runs in the section's order, where they are most of it."""
    found = [(at, source.runs[run]) for at, run in shared if run in source.runs]
    for series in _series(found):
        covered = {place + i for _, place in series for i in range(RUN)}
        if len(covered) > COVERED * source.length:
            yield max(series[0][0] - PATCH, 0), series[-1][0] + RUN + PATCH


def _series(found: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Places in the claim and the section, cut where the order or the neighbourhood ends."""
    series: list[tuple[int, int]] = []
    for at, place in found:
        if series and (place <= series[-1][1] or at - series[-1][0] > APART):
            yield series
            series = []
        series.append((at, place))
    if series:
        yield series


def _chained(content: Sequence[str], source: _Source) -> Iterator[tuple[int, int]]:
    """What lies in chains of most of the section's content, and what their ends leave out."""
    least = CHAINED * source.contents
    if sum(map(source.roots.__contains__, content)) < least:
        return
    live: list[_Chain] = []
    for at, word in enumerate(content):
        live = [chain for chain in live if at - chain.last <= STEP]
        grown = [_grown(live, at, place) for place in source.roots.get(word, ())]
        for chain in grown:
            if chain.count >= least:
                rest = source.contents - 1 - chain.at
                yield chain.first - chain.begins, at + rest
        live += grown


def _grown(live: Sequence[_Chain], at: int, place: int) -> _Chain:
    """The longest chain that ends with this word at this place of the section."""
    before = [chain for chain in live if 0 < place - chain.at <= STEP]
    if not before:
        return _Chain(at, at, place, place, 1)
    best = max(before, key=lambda chain: (chain.count, chain.first))
    return _Chain(best.first, at, best.begins, place, best.count + 1)


@lru_cache(maxsize=1024)
def _source(text: str) -> _Source:
    words = flat(text.partition(" shall ")[2] or text).split()
    content = [root for word in words if (root := _root(word))]
    return _Source(
        {run: at for at, run in enumerate(_runs(words, RUN))},
        len(words),
        {root: tuple(at for at, one in enumerate(content) if one == root) for root in content},
        len(content),
    )


def _runs(words: Sequence[str], length: int) -> Iterator[_Run]:
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))


@lru_cache(maxsize=2**14)
def _root(word: str) -> str:
    """A content word without its ending; empty for any other."""
    if word in _FUNCTION or word.isdecimal():
        return ""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
