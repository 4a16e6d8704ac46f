"""The sections on words: who comes first and how surely, and whether base rates order them."""

from collections.abc import Mapping

from pipeline.association import number_of_words
from pipeline.comparison import Comparison, of_association, of_pair, of_word
from pipeline.report.markup import Html, element, join, table, text
from pipeline.verdicts import RESOLVED

NAMED = 6
"""Resolved pairs that stand at the head of the page."""
SHOWN = 60
"""Pairs that stand on the page."""
COLUMNS = ("a v b", "runs", "median", "later by", "times later", "p, Holm", "verdict", "why")
NOTE = (
    "Each two words, runs against runs: exact two-sided permutation test, p adjusted by Holm over "
    "all pairs. Later by, times later: b against a, in steps and as a ratio, with intervals of at "
    "least 95 %; dots where so few runs, or runs cut short, leave an end open. resolved:a<b: a is "
    "earlier. unresolved:design: so few runs could not tell. unresolved:data: they could have and "
    "did not. unresolved:sensitive: brackets, waves or where runs were cut change the answer."
)


def verdicts(found: Mapping[str, Comparison] | str) -> list[str]:
    """A line for each set of words that are compared: what is resolved of it."""
    if isinstance(found, str):
        return []
    return [f"{name or 'words'}: {_verdict(one)}" for name, one in found.items()]


def _verdict(found: Comparison) -> str:
    resolved = [pair.verdict for pair in found.pairs if pair.verdict.startswith(RESOLVED)]
    ordered = ", ".join(said.removeprefix(RESOLVED) for said in resolved[:NAMED])
    named = f" ({ordered}{', ...' if len(resolved) > NAMED else ''})" if resolved else ""
    one = found.association
    return (
        f"{len(resolved)} of {len(found.pairs)} pairs resolved{named}; base rate against onset "
        f"over {number_of_words(one.words)} {one.verdict}, p {one.p:.2g}"
    )


def section(found: Mapping[str, Comparison] | str) -> Html:
    """Verdicts of every two words, then the words with their base rates; or why there are none."""
    if isinstance(found, str):
        return element("p", text(f"Absent: {found}"), class_="absent")
    parts = [
        join([*([element("h3", text(name))] if name else []), _compared(number, one)])
        for number, (name, one) in enumerate(found.items())
    ]
    return join([*parts, element("p", text(NOTE), class_="note")])


def _compared(number: int, found: Comparison) -> Html:
    rows = [of_pair(pair) | {"a v b": f"{pair.a} v {pair.b}"} for pair in found.pairs]
    kept = [c for c in COLUMNS if c != "why" or any(row[c] for row in rows)]
    parts = [table(f"pairs-{number}", "Every two words.", kept, rows[:SHOWN], dense=True)]
    if len(rows) > SHOWN:
        more = f"{len(rows) - SHOWN:,} pairs more: onset compare lists them all."
        parts.append(element("p", text(more), class_="note"))
    if found.words:
        words = [of_word(word) for word in found.words]
        parts.append(table(f"words-{number}", "The words.", list(words[0]), words))
    said = of_association(found)
    return join([*parts, element("p", text(f"{said[0].upper()}{said[1:]}."))])
