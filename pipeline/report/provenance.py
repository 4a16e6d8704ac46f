"""What was run: the facts of the partitions' footers, and the file that makes them again."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

SHOWN = 8
"""Values of one fact that are listed; the others are counted."""
OF_ONE = {"run", "step", "start", "stop", "checkpoint"}
"""Parts of an identity that say which partition it is, not what was asked."""
CREDENTIAL = re.compile(
    r"""(?P<address>://)[^\s/@"']+@ | (?P<name>["']?\b[\w-]*(?:password|secret|token|api_key|apikey)
    (?!_var|s\b)["']?\s*[=:]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s,}\]]+)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A user and password in an address, or the value of a field that is named as one."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a reader needs to make the rows again."""

    facts: tuple[tuple[str, str], ...]
    """Name and its values."""
    config: str | None
    """The sweep's resolved configuration; None where it is not there."""
    commands: tuple[str, ...]
    partitions: int
    """Of the output; `footers` of them were read."""
    footers: int


def facts(records: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """What footers say, each fact once with its distinct values."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        said = {
            "environment": record.get("env"),
            **{k: v for k, v in record.get("identity", {}).items() if k not in OF_ONE | {"env"}},
            "option": record.get("options", {}),
            "version of": record.get("versions", {}),
        }
        for name, value in _flat(said):
            found.setdefault(name, {})[str(value)] = None
    return tuple((name, _listed(list(values))) for name, values in found.items())


def determinism(rows: pl.LazyFrame) -> tuple[str, str]:
    """What equal seeds promise, as the rows say."""
    found = rows.select(pl.col("determinism").unique()).collect(engine="streaming")
    return "determinism", ", ".join(found["determinism"].sort())


def first_weights(curves: pl.DataFrame) -> tuple[str, str]:
    """Fingerprints of the weights at each run's first step; the others stand run by run."""
    firsts = curves.sort("step").group_by("run", maintain_order=True).first()
    found = firsts["fingerprint"].drop_nulls().unique().sort().to_list()
    return "first weights (SHA-256)", _listed(found)


def _flat(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name} ")
        else:
            yield f"{above}{name}", value


def _listed(values: list[str]) -> str:
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(values[:SHOWN]) + more


def without_credentials(text: str) -> str:
    """The text with what looks like a credential left out."""
    return CREDENTIAL.sub(
        lambda m: f"{m['address']}...@" if m["address"] else f"{m['name']}...", text
    )


def commands(out: str, verb: str | None, threshold: float) -> tuple[str, ...]:
    """Lines to paste that make the rows and this page again.

    verb: whose configuration the output holds; None where it holds none.
    """
    # A configuration is read from the disk alone: one of a remote output stands on the page.
    config = "config.toml" if "://" in out else shlex.quote(f"{out}/config.toml")
    rows = (f"onset {verb} @ {config} --output {shlex.quote(out)}",) if verb else ()
    return *rows, f"onset report {shlex.quote(out)} --threshold {threshold:g}"
