"""HTML that no text can break out of: children are HTML, and only here is HTML made of text."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NewType

from pipeline.printable import one_line, printable

Html = NewType("Html", str)
"""Safe to stand in a page."""
VOID = {"meta", "link"}


def text(value: object) -> Html:
    """Any text as one line; control characters and bidi marks as their escapes."""
    return Html(escape(one_line(str(value))))


def prose(value: str) -> Html:
    """The same, its lines kept."""
    return Html(escape(printable(value)))


def join(parts: Iterable[Html]) -> Html:
    return Html("".join(parts))


def element(name: str, /, *children: Html, **attributes: str | int | bool) -> Html:
    """`class_` is written class, `aria_label` aria-label; True is a bare name, False nothing."""
    said = []
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            said.append(f" {attribute}")
        elif value is not False:
            said.append(f' {attribute}="{escape(one_line(str(value)))}"')
    opening = f"<{name}{''.join(said)}>"
    return Html(opening if name in VOID else f"{opening}{''.join(children)}</{name}>")


def table(
    name: str, caption: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> Html:
    """A table that scrolls by itself and takes the keyboard's focus; its first column names a row.

    A `Cell` is HTML already; any other value is text.
    """
    rows = list(rows)
    numeric = {c for c in columns if all(isinstance(row[c], int | float | None) for row in rows)}
    head = join(
        element("th", text(c), scope="col", class_="number" if c in numeric else "")
        for c in columns
    )
    lines = [
        element("tr", *(_cell(row[c], c == columns[0], c in numeric) for c in columns))
        for row in rows
    ]
    said = element("caption", text(caption), id=f"{name}-caption")
    whole = element("table", said, element("thead", element("tr", head)), element("tbody", *lines))
    return element(
        "div", whole, class_="wide", role="region", tabindex=0, aria_labelledby=f"{name}-caption"
    )


class Cell:
    """HTML in a table's cell."""

    __slots__ = ("html",)

    def __init__(self, html: Html) -> None:
        self.html = html


def _cell(value: Any, is_name: bool, is_number: bool) -> Html:
    if isinstance(value, Cell):
        said = value.html
    elif value is None:
        said = text("-")
    else:
        said = text(f"{value:.4g}" if isinstance(value, float) else value)
    if is_name:
        return element("th", said, scope="row")
    return element("td", said, class_="number") if is_number else element("td", said)
