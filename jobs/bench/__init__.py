"""Measured claims, each with its limit: onset bench NAME ...

onset bench              # all but those of an hour or more
onset bench overhead hf --json
"""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from jobs.bench import _machine


def names() -> list[str]:
    """Benches by file name."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def main(argv: Sequence[str]) -> int:
    """Run the named benches, or all that are not LONG; 1 when a limit is missed."""
    # Not above: `python -m jobs.bench.gpu` runs where only an engine is installed.
    from jobs import command, terminal

    if "--help" in argv or "-h" in argv:
        print(f"{__doc__}\nbenches: {', '.join(names())}")
        return 0
    asked = [word for word in argv if word != "--json"]
    unknown = [name for name in asked if name not in names()]
    if unknown:
        print(f"error: bench {unknown[0]!r} is none of {', '.join(names())}", file=sys.stderr)
        return command.REFUSED
    benches = {name: _load(name) for name in asked or names()}
    chosen = {n: b for n, b in benches.items() if asked or not getattr(b, "LONG", False)}
    terminal.line(_machine.describe())
    rows = [{"bench": name, **row} for name, bench in chosen.items() for row in bench.run()]
    if "--json" in argv:
        terminal.as_json(rows)
    else:
        terminal.table(rows, ["bench", "name", "value", "unit", "limit", "ok"])
    return 0 if all(row["ok"] for row in rows) else 1


def _load(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
