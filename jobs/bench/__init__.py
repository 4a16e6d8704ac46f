"""Measured claims, each with its limit: onset bench NAME ...

onset bench              # all that run on this machine
onset bench overhead
"""

import importlib
import pkgutil
import sys
from collections.abc import Sequence

from jobs import command, terminal


def names() -> list[str]:
    """Benches by file name."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def main(argv: Sequence[str]) -> int:
    """Run the named benches, or all; 1 when a limit is missed."""
    unknown = [name for name in argv if name not in names()]
    if unknown:
        print(f"error: bench {unknown[0]!r} is none of {', '.join(names())}", file=sys.stderr)
        return command.REFUSED
    rows = []
    for name in argv or names():
        rows += [
            {"bench": name, **row} for row in importlib.import_module(f"{__name__}.{name}").run()
        ]
    terminal.table(rows, ["bench", "name", "value", "unit", "limit", "ok"])
    return 0 if all(row["ok"] for row in rows) else 1
