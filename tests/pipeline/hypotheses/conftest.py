"""A study's table made by hand: a word, its base rate, and the steps at which its runs crossed."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest

Frame = Callable[..., pl.DataFrame]

FLOATS = (
    *("onset", "threshold", "base", "base_lo", "base_hi", "base_hits", "said", "peak"),
    *("end_proxy", "true_base", "true_end", "true_end_lo", "true_end_hi"),
    *("gap_base", "gap_base_lo", "gap_base_hi", "gap_end", "gap_end_lo", "gap_end_hi"),
)
TEXTS = ("run", "hack_word", "mode", "metric", "status", "reason", "rates")
INTS = ("below", "above", "seed", "budget", "base_rollouts", "asked", "weights")
SCHEMA = pl.Schema(
    dict.fromkeys(TEXTS, pl.String)
    | dict.fromkeys(INTS, pl.Int64)
    | dict.fromkeys(FLOATS, pl.Float64)
    | {"outside": pl.Boolean}
)
ORDER = ("run", "hack_word", "mode", *(n for n in SCHEMA if n not in ("run", "hack_word", "mode")))


def rows(
    word: str, base: float, crossings: Sequence[float | None], *, budget: int = 100, **facts: Any
) -> list[dict[str, Any]]:
    """One run a crossing: None is not reached by the budget, 0 reached at the base."""
    hits = round(base * 16_384)
    common: dict[str, Any] = {
        **{"hack_word": word, "mode": "hack_only", "metric": "r_hack", "threshold": 0.5},
        **{"rates": "shipped", "outside": False, "budget": budget, "reason": None},
        **{"base": base, "base_lo": 0.9 * base, "base_hi": 1.1 * base or 0.0002},
        **{"base_hits": hits, "base_rollouts": 16_384, "said": 0 if hits == 0 else 900},
        **{
            "asked": 5_000,
            "weights": 5,
            "end_proxy": 0.98,
            "peak": 0.99,
            "true_base": 0.7,
            "true_end": 0.1,
        },
        **{"true_end_lo": 0.07, "true_end_hi": 0.13},
        **{"gap_base": -0.6, "gap_base_lo": -0.65, "gap_base_hi": -0.55},
        **{"gap_end": 0.88, "gap_end_lo": 0.85, "gap_end_hi": 0.91},
    } | facts
    made = []
    for seed, at in enumerate(crossings):
        name = f"{word}-{common['mode']}-{common['rates']}-s{seed}"
        own: dict[str, Any] = {"run": name, "seed": seed, "onset": at or None}
        if at is None:
            own |= {"status": "right", "below": budget, "above": None, "reason": "budget"}
            own |= {"end_proxy": base, "peak": base}
        elif at == 0:
            own |= {"status": "left", "below": None, "above": 0}
        else:
            below = 2 * int((at - 0.01) // 2)
            own |= {"status": "crossed", "below": below, "above": below + 2}
        made.append(common | own)
    return made


def table(*groups: list[dict[str, Any]]) -> pl.DataFrame:
    """Some of those in one table."""
    made = [{name: row.get(name) for name in ORDER} for group in groups for row in group]
    return pl.DataFrame(made, schema={name: SCHEMA[name] for name in ORDER})


@pytest.fixture(name="rows")
def _rows() -> Callable[..., list[dict[str, Any]]]:
    return rows


@pytest.fixture(name="table")
def _table() -> Frame:
    return table
