"""Finds the sections that a text cites, however their sign is written or escaped."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_ESCAPED = re.compile(r"\\{1,2}u([0-9a-fA-F]{4})")
_BREAK = re.compile(r"\\{1,2}[nrt]")
"""White space as JSON writes it, seen where a reply is read as text."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|sect|para|nbsp|ndash);")

_HEAD = re.compile(
    r"""
    (?<![\w.])(?P<title>\d{1,3})\s{1,6}
    (?P<code>U\.?\s?S\.?\s?C|C\.?\s?F\.?\s?R)(?![A-Za-z])\.?\s{0,6}
    (?P<of_code>§\s?§|§|\bsections?|\bsecs?\.)?\s{0,6}(?=\d)
    |
    (?P<mark>§\s?§|§|¶\s?¶|¶|\b(?:sections?|secs?\.|sec|paragraphs?|paras?\.))\s{0,6}(?=\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CITING = re.compile(r"[§¶]|\d[^a-z\d]{1,6}[uc]|\b(?:sec|para)[a-z.]*\s{0,6}\d", re.IGNORECASE)
"""What every citation has: most texts have none of it, and are done with."""
_HYPHENS = "\u2010\u2011\u2012\u2013\u2212"
_ID = re.compile(
    rf"\d[0-9A-Za-z]*(?:\.\d[0-9A-Za-z]*)*"
    rf"(?:[-{_HYPHENS}](?:\d[0-9A-Za-z]*|[A-Za-z]{{1,2}}(?![A-Za-z])))*"
    rf"(?:\([0-9A-Za-z]{{1,6}}\))*"
)
_AND = re.compile(r"\s{0,3}(?:[,;&]|\b(?:and|or|to|through)\b)\s{0,3}(?:(?:and|or)\s{1,3})?(?=\d)")
_OTHER_CODE = re.compile(r"\s{1,3}(?:U\.?\s?S\.?\s?C|C\.?\s?F\.?\s?R)")
_NOTE = re.compile(r"\s{1,3}note\b(?!\s+(?:that|how|the|this|which|also))")
_PLURAL = re.compile(r"§\s?§|¶\s?¶|sections|secs\.|paragraphs|paras\.", re.IGNORECASE)
_HYPHEN = str.maketrans(dict.fromkeys(_HYPHENS, "-"))


@dataclass(frozen=True, slots=True)
class Citation:
    """One cited provision: `17 CFR 240.17a-4`, or `section 202` where no code is named."""

    code: str
    """Title and code, `17 CFR`; or `section` or `paragraph`."""
    id: str

    def __str__(self) -> str:
        return f"{self.code} {self.id}"


def unescaped(text: str) -> str:
    """The text with `\\u00a7` and `&#xA7;` as the sign that they stand for."""
    if "\\u" in text:
        text = _ESCAPED.sub(_character, text)
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1], 16)
    return escape[0] if 0xD800 <= code <= 0xDFFF else chr(code)


def citations(text: str) -> list[Citation]:
    """Every citation of the text in order, each member of a list by itself."""
    return [citation for citation, _, _ in located(unescaped(text))]


def cites(text: str) -> bool:
    """Whether an unescaped text cites anything."""
    return any(located(text))


def located(text: str) -> Iterator[tuple[Citation, int, int]]:
    """Citations of an unescaped text, and where each begins and ends."""
    if "\\" in text:
        text = _BREAK.sub(lambda found: " " * len(found[0]), text)
    if not _CITING.search(text):
        return
    at = 0
    while head := _HEAD.search(text, at):
        start, at = head.start(), head.end()
        code, plural = _code(head)
        while found := _ID.match(text, at):
            at = found.end()
            note = _NOTE.match(text, at) if code.endswith("USC") else None
            at = note.end() if note else at
            id = found[0].translate(_HYPHEN) + (" note" if note else "")
            yield Citation(code, id), start, at
            following = _AND.match(text, at) if plural else None
            if not following or _of_another_code(text, following.end()):
                break
            start = at = following.end()


def _code(head: re.Match[str]) -> tuple[str, bool]:
    """What a citation's id belongs to, and whether a list may follow."""
    mark = head["of_code"] or head["mark"] or ""
    plural = _PLURAL.fullmatch(mark) is not None
    if head["code"]:
        return f"{head['title']} {re.sub('[^A-Z]', '', head['code'].upper())}", plural
    return "paragraph" if mark[0] in "¶pP" else "section", plural


def _of_another_code(text: str, at: int) -> bool:
    """Whether the number is the title of the next citation: `§§ 1, 2 and 17 CFR 3`."""
    found = _ID.match(text, at)
    return found is not None and _OTHER_CODE.match(text, found.end()) is not None


def grounded(cited: Iterable[Citation], provided: Sequence[Citation]) -> list[Citation]:
    """The cited provisions that are provided, or part of or around one that is."""
    return [one for one in cited if any(within(one, other) for other in provided)]


def within(cited: Citation, provided: Citation) -> bool:
    """Whether both name one provision, or one a subsection of the other: 202 and 202(b).

    A bare `section 202` may be that of any code.
    """
    if cited.code != provided.code:
        codes = {cited.code, provided.code}
        if "section" not in codes or "paragraph" in codes:
            return False
    a, b = cited.id, provided.id
    return a == b or a.startswith(f"{b}(") or b.startswith(f"{a}(")
