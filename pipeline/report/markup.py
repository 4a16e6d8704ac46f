"""HTML that no text can break out of: children are HTML, and only here is HTML made of text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NewType

from pipeline.printable import one_line, printable

Html = NewType("Html", str)
"""Safe to stand in a page."""
VOID = {"meta", "link"}
INTERVAL = re.compile(r"[\[(][^\[\]()A-Za-z]*[\])]|[\d.]+ %")
"""`[16.1, 18.4]`, `(16, 18]`, `(< 0.073 %)`, `75 %`."""


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
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    dense: bool = False,
) -> Html:
    """A table that scrolls by itself and takes the keyboard's focus; its first column names a row.

    A `Cell` is HTML already; any other value is text. dense: cells may take several lines, an
    interval one of its own.
    """
    rows = list(rows)
    numeric = {c for c in columns if all(isinstance(row[c], int | float | None) for row in rows)}

    def role(name: str) -> str | bool:
        """Said where the style sheet may take a table's looks away, and its meaning with them."""
        return name if dense else False

    head = join(
        element(
            "th",
            text(c),
            scope="col",
            class_="number" if c in numeric else "",
            role=role("columnheader"),
        )
        for c in columns
    )
    lines = [
        element(
            "tr",
            *(_cell(row[c], c == columns[0], c in numeric, dense and c) for c in columns),
            role=role("row"),
        )
        for row in rows
    ]
    said = element("caption", text(caption), id=f"{name}-caption")
    top = element("thead", element("tr", head, role=role("row")), role=role("rowgroup"))
    body = element("tbody", *lines, role=role("rowgroup"))
    whole = element("table", said, top, body, role=role("table"))
    kind = "wide dense" if dense else "wide"
    return element(
        "div", whole, class_=kind, role="region", tabindex=0, aria_labelledby=f"{name}-caption"
    )


class Cell:
    """HTML in a table's cell."""

    __slots__ = ("html",)

    def __init__(self, html: Html) -> None:
        self.html = html


def unbroken(said: str) -> Html:
    """Text on several lines, if need be, none of which ends within an interval."""
    parts, at = [], 0
    for found in INTERVAL.finditer(said):
        whole = element("span", text(found[0]), class_="whole")
        parts += [text(said[at : found.start()]), whole]
        at = found.end()
    return join([*parts, text(said[at:])])


def _cell(value: Any, is_name: bool, is_number: bool, label: str | bool) -> Html:
    """label: the column's name, which stands in the cell where a dense table is a list."""
    if isinstance(value, Cell):
        said = value.html
    elif value is None:
        said = text("-")
    elif isinstance(value, float):
        said = text(f"{value:.4g}")
    else:
        said = unbroken(str(value)) if label else text(value)
    if is_name:
        return element("th", said, scope="row", role="rowheader" if label else False)
    kind, role = "number" if is_number else False, "cell" if label else False
    return element("td", said, class_=kind, data_label=label, role=role)
