"""Tables and lines for people: one place that knows rich."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from pipeline.printable import json_printable, one_line

Item = TypeVar("Item")

WIDTH = 1000
"""Characters a table may take: a narrow terminal wraps a row, but no figure is cut."""


def line(text: str) -> None:
    """One line on stderr, printed as it is: text of models and files is never markup."""
    Console(stderr=True, soft_wrap=True).print(Text(one_line(text)))


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], title: str = "") -> None:
    """Rows on stdout, a column a name; numbers flush right. Never narrower than its content."""
    rows = list(rows)
    shown = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        shown.add_column(Text(one_line(name)), justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*(Text(cell(row.get(name))) for name in columns))
    Console(file=sys.stdout, width=WIDTH).print(shown)


def tracked(items: Sequence[Item], what: str) -> Iterable[Item]:
    """The items; on a terminal, a bar on stderr says how many are done."""
    console = Console(stderr=True)
    return track(items, what, console=console, disable=not console.is_terminal)


def cell(value: object) -> str:
    """A value as a reader wants it; None is a dash."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return one_line(str(value))


def as_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows on stdout as a JSON array."""
    print(json_printable(json.dumps(list(rows), ensure_ascii=False, indent=1, default=str)))
