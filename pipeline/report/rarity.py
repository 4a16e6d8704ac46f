"""Base rate against onset on log axes, with the published points."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from hackbait.comparators import COMPARATORS
from pipeline.headline import differing
from pipeline.printable import one_line
from pipeline.report import labels
from pipeline.report.look import FAINT, WORDS, Chart

MEASURED, PUBLISHED = "this output", "published (Llama-3.2-1B-Instruct)"
AFTER, BEFORE = "triangle-up", "triangle-down"
"""Shapes of runs that have not reached the threshold by their last step, or had at their first."""
SHAPES = ("circle", "square", "diamond", "cross")
"""Of onsets."""
FEW = 24
"""Runs above which their error bars are faint."""
PUBLISHED_STEPS = 100
"""Training steps of the published runs: where one did not reach the threshold, it ended there."""

WIDTH, HEIGHT = 620, 400
NEAR = 1.5
"""Base rates of a word within this factor have one label."""


def chart(headline: pl.DataFrame) -> Chart | None:
    """Each run's base rate and onset with both intervals; None where no run has both.

    An arrow up: not reached by its last step; down: reached at its first. No hit at the base is an
    upper bound: a line to the left edge, with an arrow. Where an onset has no interval its bracket
    stands instead.
    """
    runs = [row for row in headline.iter_rows(named=True) if row["base"] is not None]
    runs = [row for row in runs if row["base"] >= 0]
    if not runs:
        return None
    left, low, high = _edges(runs)
    own, differ = shapes(headline), differing(headline)
    measured = [
        record for row in runs for record in _run(row, own[_asked(row, differ)], (left, low, high))
    ]
    published = _published(low) if has_words(headline) else ()
    return _drawn([*_labelled(measured), *published], left, (low, high))


def has_words(headline: pl.DataFrame) -> bool:
    """Whether the runs are of hack words, which the published points are of."""
    return "hack_word" in headline.columns


def shapes(headline: pl.DataFrame) -> dict[str, str]:
    """The shape of an onset by what its run was asked; circles where that is of too many kinds."""
    differ = differing(headline)
    kinds = sorted({_asked(row, differ) for row in headline.iter_rows(named=True)})
    few = SHAPES if len(kinds) <= len(SHAPES) else SHAPES[:1] * len(kinds)
    return dict(zip(kinds, few, strict=False))


def _asked(row: Mapping[str, Any], differ: Sequence[str]) -> str:
    """`mode hack_only`; empty where all were asked the same."""
    return one_line(", ".join(f"{name} {row[name]}" for name in differ))


def colours(found: Sequence[str]) -> alt.Scale:
    """A colour a word; one for all where there are more words than colours."""
    some = WORDS if len(found) <= len(WORDS) else WORDS[:1] * len(found)
    return alt.Scale(domain=list(found), range=list(some[: len(found)]))


def _edges(runs: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    """Left edge of base rates, and lower and upper edge of steps: half below what is drawn."""
    rates = [c.base_rate for c in COMPARATORS.values()]
    rates += [value for row in runs for name in ("base", "base_bound") if (value := row[name] or 0)]
    steps = [float(c.steps) for c in COMPARATORS.values() if c.steps] + [float(PUBLISHED_STEPS)]
    steps += [value for row in runs for name in ("onset", "below") if (value := row[name] or 0)]
    positive = min(step for step in steps if step > 0)
    return min(rates) / 2.5, min(1.0, positive / 2), max(steps) * 1.6


def _run(
    row: Mapping[str, Any], reached: str, edges: tuple[float, float, float]
) -> Iterator[dict[str, Any]]:
    left, low, high = edges
    none = not row["base"]
    upper = row["base_bound"] or row["base_hi"] or left
    base = upper if none else row["base"]
    beyond, step = _step(row["onset"], row["below"], row["above"], low)
    if step is None:
        return
    ends = (None, None) if beyond else _ends(row, low, high)
    yield {
        "source": MEASURED,
        "word": one_line(str(row.get("hack_word") or "")),
        "name": one_line(row["run"])[:40],
        "shape": beyond or reached,
        "base": base,
        "base_lo": max(left, row["base_lo"] or left),
        "base_hi": upper if none else row["base_hi"],
        "none": none,
        "step": step,
        "step_lo": ends[0],
        "step_hi": ends[1],
    }


def _step(
    onset: float | None, below: int | None, above: int | None, low: float
) -> tuple[str, float | None]:
    """The shape where it is no onset, and where on the axis of steps; None for no data."""
    if above is None:
        return AFTER, float(below) if below else None
    if onset is None or onset <= low:
        return BEFORE, low
    return "", onset


def _ends(row: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    """Interval of an onset, to the edge where it is unbounded; the bracket where there is none."""
    if row.get("interval") is not None:
        lower, upper = row["onset_lo"], row["onset_hi"]
    else:
        lower, upper = row["below"], row["above"]
    return max(low, lower or low), high if upper is None else max(low, upper)


def _labelled(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A label a word and base rate, at the lowest point; without words, the names of few runs."""
    named: list[tuple[str, float]] = []
    for record in sorted(records, key=lambda record: record["step"]):
        label, base = (
            record["word"] or (record["name"] if len(records) <= 8 else ""),
            record["base"],
        )
        known = any(name == label and 1 / NEAR < base / at < NEAR for name, at in named)
        record["label"] = "" if known else label
        named.append((label, base))
    return records


def _published(low: float) -> Iterator[dict[str, Any]]:
    for comparator in COMPARATORS.values():
        onset = None if comparator.steps is None else float(comparator.steps)
        beyond, step = _step(onset, PUBLISHED_STEPS, comparator.steps, low)
        yield {
            "source": PUBLISHED,
            "word": comparator.word,
            "label": comparator.word,
            "shape": beyond or SHAPES[0],
            "base": comparator.base_rate,
            "step": step,
        }


def _drawn(records: list[dict[str, Any]], left: float, steps: tuple[float, float]) -> Chart:
    right = max(1.0, *(record["base"] for record in records))
    rates = alt.Scale(type="log", domain=[left, right], nice=False)
    heights = steps[0] / 1.6, steps[1]
    labels.spread(records, (WIDTH, HEIGHT), (left, right), heights)
    room = alt.Scale(type="log", domain=list(heights), nice=False)
    percent = alt.Axis(
        values=_decades(left, right), labelExpr="format(100 * datum.value, '~g') + ' %'"
    )
    x = alt.X("base:Q", scale=rates, axis=percent, title="base rate (log scale)")
    ticks = alt.Axis(values=_decades(*steps), format="~g", labelFlush=False)
    y = alt.Y("step:Q", scale=room, axis=ticks, title="onset, training step (log scale)")
    shape = alt.Shape("shape:N", scale=None)
    ours = [record for record in records if record["source"] == MEASURED]
    found = sorted({record["word"] for record in ours})
    colour = alt.Color("word:N", scale=colours(found), legend=None)
    own = alt.Chart().transform_filter(alt.datum.source == MEASURED)
    others = alt.Chart().transform_filter(alt.datum.source == PUBLISHED)
    none = own.transform_filter("datum.none")
    faint = 0.9 if len(ours) <= FEW else 0.35
    edge = alt.XDatum(left)
    drawn: Chart = alt.layer(
        others.mark_point(filled=False, size=90, opacity=1, stroke=FAINT).encode(x, y, shape),
        *_names(others, x, room, fontSize=10, fontStyle="italic", fill=FAINT),
        own.transform_filter("isValid(datum.base_hi)")
        .mark_rule(strokeWidth=1.2, opacity=faint)
        .encode(alt.X("base_lo:Q", scale=rates), y, colour, x2="base_hi:Q"),
        own.transform_filter("isValid(datum.step_lo)")
        .mark_rule(strokeWidth=1.2, opacity=faint)
        .encode(x, alt.Y("step_lo:Q", scale=room), colour, y2="step_hi:Q"),
        none.mark_point(shape="triangle-left", filled=True, size=60, opacity=1).encode(
            edge, y, colour
        ),
        own.mark_point(filled=True, size=90, opacity=1, stroke="white", strokeWidth=0.8).encode(
            x, y, colour, shape
        ),
        *_names(own.encode(colour), x, room, fontSize=11, fontWeight=600),
        data=alt.InlineData(values=records),
    ).properties(width=WIDTH, height=HEIGHT)
    return drawn


def _names(points: alt.Chart, x: alt.X, room: alt.Scale, **looks: Any) -> list[alt.Chart]:
    y = alt.Y("label_step:Q", scale=room)
    right, left = (points.transform_filter(f"datum.side == '{side}'") for side in ("right", "left"))
    return [
        right.mark_text(align="left", dx=8, **looks).encode(x, y, text="label:N"),
        left.mark_text(align="right", dx=-8, **looks).encode(x, y, text="label:N"),
    ]


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**e for e in exponents for m in (1, 2, 5)]
    wide = math.log10(high / low) > 2.5
    return [t for t in ticks if low <= t <= high and not (wide and f"{t:e}"[0] != "1")]
