"""Proxy against true rate: where each run goes as it is trained."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from pipeline.printable import one_line
from pipeline.report.look import FAINT, Chart
from pipeline.report.panels import Panel
from pipeline.report.rarity import colours

FEW = 12
"""Runs up to which each end has a name."""
APART = 0.045
"""Of the height, between two names."""
NEAR = 0.75
"""Of the width, from which a name stands beyond the edge."""


def chart(panels: Sequence[Panel], proxy: str, true: str, threshold: float) -> Chart | None:
    """A trail a run from its first checkpoint (hollow) to its last (full); None without truth."""
    records = [r for i, panel in enumerate(panels) for r in _trail(i, panel, proxy, true)]
    if not records:
        return None
    paid, wanted = (_room([r[name] for r in records]) for name in ("paid", "honest"))
    labels = alt.Chart(alt.InlineData(values=_label(records, len(panels), paid.domain[1])))
    x = alt.X("paid:Q", title=f"{proxy} (what was paid)", scale=paid)
    y = alt.Y("honest:Q", title=f"{true} (what was wanted)", scale=wanted)
    colour = alt.Color("word:N", scale=colours(sorted({r["word"] for r in records})), legend=None)
    base = alt.Chart()
    end = base.transform_filter("datum.end")
    faint = 0.8 if len(panels) <= FEW else 0.35
    drawn: Chart = alt.layer(
        base.mark_line(strokeWidth=1.4, opacity=faint).encode(
            x, y, colour, detail="trail:N", order="step:Q"
        ),
        base.transform_filter("datum.start")
        .mark_point(size=70, filled=True, fill="white", strokeWidth=1.6, opacity=1)
        .encode(x, y, colour.copy(), stroke=colour),
        end.mark_point(size=70, filled=True, opacity=1).encode(x, y, colour),
        labels.mark_text(align="left", dx=10, fontSize=11, fontWeight=600).encode(
            alt.X("paid:Q", scale=paid), y, colour, text="label:N"
        ),
        alt.Chart().mark_rule(color=FAINT, strokeDash=[2, 3]).encode(x=alt.XDatum(threshold)),
        data=alt.InlineData(values=records),
    ).properties(width=460, height=400)
    return drawn


def _room(rates: Sequence[float]) -> alt.Scale:
    """From 0 to 1, or as far as the rates go: a reward may be more than 1, or less than 0."""
    return alt.Scale(domain=[min(0.0, *rates), max(1.0, *rates)], nice=False)


def _trail(number: int, panel: Panel, proxy: str, true: str) -> list[dict[str, Any]]:
    """Points of one run at the steps that have both rates."""
    rates = panel.points.select("step", "metric", "rate")
    paid = rates.filter(pl.col("metric") == proxy)
    wanted = rates.filter(pl.col("metric") == true)
    both = (
        paid.join(wanted, on="step", suffix="_true")
        .sort("step")
        .select("step", "rate", "rate_true")
    )
    word = one_line(str(panel.row.get("hack_word") or ""))
    last = len(both) - 1
    return [
        {"trail": number, "word": word, "step": step, "paid": rate, "honest": honest}
        | {"start": i == 0, "end": i == last, "name": one_line(panel.row["run"])[:40]}
        for i, (step, rate, honest) in enumerate(both.iter_rows())
    ]


def _label(records: list[dict[str, Any]], runs: int, edge: float) -> list[dict[str, Any]]:
    """A name a word, or a run where there are few and no words, beside its end, none on another.

    Where it ended near the right edge, beyond the edge; elsewhere above the end.
    """
    ends: dict[str, dict[str, Any]] = {}
    for record in records:
        name = record["word"] or (record["name"] if runs <= FEW else "")
        if record["end"] and name:
            ends.setdefault(name, record)
    beyond = {name for name, end in ends.items() if end["paid"] > NEAR * edge}
    return [
        {"label": name, "word": ends[name]["word"], "honest": at}
        | {"paid": edge if name in beyond else ends[name]["paid"]}
        for names in (beyond, ends.keys() - beyond)
        for name, at in _heights(
            {name: ends[name]["honest"] + APART * (name not in beyond) for name in names}
        )
    ]


def _heights(ends: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Names and heights, `APART` at least and 1 at most."""
    placed, above = [], -1.0
    for name, rate in sorted(ends.items(), key=lambda end: end[1]):
        above = max(rate, above + APART)
        placed.append((name, above))
    over = max(0.0, above - 1)
    yield from ((name, at - over) for name, at in placed)
