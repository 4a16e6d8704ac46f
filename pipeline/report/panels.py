"""Curves: one panel a run, the same axes in all, the highest base rate first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from pipeline.headline import HEADLINE, headline
from pipeline.printable import one_line
from pipeline.report import look
from pipeline.report.look import FAINT, MARK, PROXY, TRUE

NAME_CHARACTERS = 200
MANY, FEW = 16, 24
"""Panels, and checkpoints of each on average, up to which dots do not hide the curve."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One run, ready to be drawn."""

    title: str
    """Two lines: the run and what sets it apart, and its onset."""
    row: Mapping[str, Any]
    """Of the headline."""
    points: pl.DataFrame
    """Rows of the curves of this run, of every metric, that have a rate; sorted by step."""
    records: tuple[Mapping[str, Any], ...]
    """What is drawn: points told apart by `metric`, and one onset `mark`."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes that all panels share."""

    names: tuple[str, ...]
    """The proxy, and the true metric where there is one."""
    threshold: float
    first: int
    last: int
    """Steps."""
    high: float
    """The largest rate."""
    panels: int
    dotted: bool
    """Whether evaluated checkpoints are few enough to be marked one by one."""


def picture(
    curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None, threshold: float
) -> bytes:
    """`chart` as PNG, rendered without a browser or network; fonts are built in."""
    return look.png(look.dressed(chart(curves, onsets, proxy, true, threshold)))


def chart(
    curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None, threshold: float
) -> alt.FacetChart:
    """Every run's proxy (with its interval) and true rate, threshold and onset, side by side.

    A dot marks the onset, a black line its interval, a grey column its bracket; an arrow at the
    threshold says that it was not reached by the last step (right), or at the first already (left).
    """
    drawn = panels(curves, onsets, proxy, true)
    return _chart(drawn, frame(drawn, proxy, true, threshold))


def panels(curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None) -> list[Panel]:
    """One a row of the headline, in its order."""
    table = headline(curves, onsets, proxy, true)
    fields = [name for name in table.columns if name not in HEADLINE]
    shown = [name for name in fields[1:] if _tells_apart(table, name)]
    found = []
    for row in table.iter_rows(named=True):
        title, points = _title(row, shown), _curve(curves, row, fields)
        records = tuple(_records(title, row, points, proxy, true))
        found.append(Panel(title, row, points, records))
    return found


def frame(drawn: Sequence[Panel], proxy: str, true: str | None, threshold: float) -> Frame:
    """The axes that fit every panel."""
    points = [r for panel in drawn for r in panel.records if "rate" in r]
    steps = [r["step"] for r in points] or [0]
    high = max((r["rate"] for r in points), default=1.0)
    names = (proxy, true) if true else (proxy,)
    dotted = len(drawn) <= MANY or len(points) <= FEW * len(names) * len(drawn)
    return Frame(names, threshold, min(steps), max(steps), high, len(drawn), dotted)


def singly(drawn: Sequence[Panel], shared: Frame) -> Iterator[dict[str, Any]]:
    """Each panel alone, as a specification; its name is left to what stands around it.

    One specification serves all: building it takes longer than drawing it.
    """
    width, height = (400, 230) if shared.panels <= MANY else (200, 110)
    layers = _layers(shared, legend=False, titled=shared.panels <= MANY)
    empty = alt.layer(*layers, data=alt.InlineData(values=[]))
    spec = look.dressed(empty.properties(width=width, height=height), padding=4)
    for panel in drawn:
        yield spec | {"data": {"values": list(panel.records)}}


def _tells_apart(table: pl.DataFrame, field: str) -> bool:
    """Whether rows differ in the field and the names of the runs do not say so already."""
    rows = table.select("run", field).rows()
    within = len(set(rows)) > len({run for run, _ in rows})
    return within or (
        len({value for _, value in rows}) > 1 and any(str(value) not in run for run, value in rows)
    )


def _title(row: Mapping[str, Any], shown: list[str]) -> str:
    """Two lines: the run and what sets it apart, and its onset."""
    said = [row["run"], *(f"{field} {row[field]}" for field in shown)]
    name = ", ".join(one_line(text)[:NAME_CHARACTERS] for text in said)
    if row["status"] == "no_data":
        return f"{name}\nno rate"
    doubt = {"uncrossed": ", below again later", "unconfirmed": ", not confirmed"}
    return f"{name}\nonset {row['text']}{doubt.get(row['status'], '')}"


def _curve(curves: pl.DataFrame, row: Mapping[str, Any], fields: list[str]) -> pl.DataFrame:
    same = [pl.col(name).eq_missing(pl.lit(row[name])) for name in fields]
    return curves.filter(*same, pl.col("rate").is_not_null()).sort("step")


def _records(
    panel: str, row: Mapping[str, Any], curve: pl.DataFrame, proxy: str, true: str | None
) -> Iterator[dict[str, Any]]:
    for metric in (proxy, *([true] if true else [])):
        points = curve.filter(pl.col("metric") == metric).select("step", "rate", "lo", "hi")
        for point in points.iter_rows(named=True):
            yield {"panel": panel, "metric": metric, **point}
    ends = {"below": row["below"], "above": row["above"]}
    interval = _interval(row) if row["above"] is not None else {}
    bound = row["below"] if row["above"] is None else row["above"]
    at = bound if row["onset"] is None else row["onset"]
    yield {"panel": panel, "mark": _mark(row), "at": at, **ends, **interval}


def _interval(row: Mapping[str, Any]) -> dict[str, Any]:
    """To the ends of the curve where it has no bound."""
    if row["interval"] is None:
        return {}
    low, high = row["onset_lo"], row["onset_hi"]
    return {
        "onset_lo": row["base_step"] if low is None else low,
        "onset_hi": row["end_step"] if high is None else high,
    }


def _mark(row: Mapping[str, Any]) -> str:
    if row["above"] is None:
        return "no data" if row["below"] is None else "not reached"
    return "reached before" if row["below"] is None else "onset"


def _chart(drawn: Sequence[Panel], shared: Frame) -> alt.FacetChart:
    columns, width = _grid(len(drawn))
    title = alt.Title(
        f"{' and '.join(shared.names)} against training step",
        subtitle=[
            f"Band: 95 % interval of {shared.names[0]}. Dotted line: threshold "
            f"{shared.threshold:g}. Dot: onset, with its interval, in the grey column between two "
            "checkpoints.",
            "Arrow: reached before the first checkpoint (left) or not by the last (right)."
            + (" Highest base rate first." if len(drawn) > 1 else ""),
        ],
        anchor="start",
    )
    titles = [panel.title for panel in drawn]
    facet = alt.Facet(
        "panel:N",
        sort=titles,
        title=None,
        header=alt.Header(
            labelExpr=r"split(datum.label, '\n')", labelAnchor="start", labelLimit=width
        ),
    )
    records = [record for panel in drawn for record in panel.records]
    chart: alt.FacetChart = (
        alt.layer(*_layers(shared, legend=True), data=alt.InlineData(values=records))
        .properties(width=width, height=round(width * 0.6))
        .facet(facet, columns=columns, title=title)
    )
    return chart


def _layers(shared: Frame, *, legend: bool, titled: bool = True) -> list[alt.Chart]:
    room = alt.Scale(domain=[shared.first, max(shared.last, shared.first + 1)], nice=False)
    return [_bracket(), *_lines(shared, room, legend, titled), *_marks(shared.threshold)]


def _grid(panels: int) -> tuple[int, int]:
    """Columns, and width of a panel in pixels: the page stays under about 1,200 wide."""
    columns = min(panels, 2 if panels <= 4 else 4 if panels <= 16 else 6)
    return columns, {1: 640, 2: 480, 3: 320, 4: 240}.get(columns, 170)


def _bracket() -> alt.Chart:
    """The steps between which the onset lies, as a column behind the curves."""
    crossed: alt.Chart = alt.Chart().transform_filter("datum.mark == 'onset'")
    column: alt.Chart = crossed.mark_rect(color=FAINT, opacity=0.2)
    return column.encode(alt.X("below:Q"), alt.X2("above:Q"))


def _lines(shared: Frame, room: alt.Scale, legend: bool, titled: bool) -> list[alt.Chart]:
    """Interval band of the proxy, both rates, and a dot at every evaluated checkpoint."""
    names = list(shared.names)
    points = alt.Chart().transform_filter("isValid(datum.rate)")
    ticks = alt.Axis(tickCount=5 if titled else 3, format="d", labelFlush=False)
    rates = alt.Scale(domain=[0, 1]) if shared.high <= 1 else alt.Scale()
    title = {"step": "training step (updates)", "rate": "rate"} if titled else {}
    step = alt.X("step:Q", title=title.get("step"), axis=ticks, scale=room)
    grid = alt.Axis(tickCount=5 if titled else 2)
    rate = alt.Y("rate:Q", title=title.get("rate"), scale=rates, axis=grid)
    colours = alt.Scale(domain=names, range=[PROXY, TRUE][: len(names)])
    dashes = alt.Scale(domain=names, range=[[1, 0], [5, 3]][: len(names)])
    shown = alt.Undefined if legend else None
    colour = alt.Color("metric:N", scale=colours, legend=shown)
    dash = alt.StrokeDash("metric:N", scale=dashes, legend=shown)
    proxy = points.transform_filter(alt.datum.metric == names[0])
    band = proxy.transform_filter("isValid(datum.lo)").mark_area(color=PROXY, opacity=0.2)
    drawn = [
        band.encode(step, alt.Y("lo:Q", scale=rates), alt.Y2("hi:Q")),
        points.mark_line(strokeWidth=1.8).encode(step, rate, colour, dash),
    ]
    if shared.dotted:
        size = 14 if shared.panels <= MANY else 7
        drawn.append(proxy.mark_circle(size=size, opacity=1, color=PROXY).encode(step, rate))
    return drawn


def _marks(threshold: float) -> list[alt.Chart]:
    """The threshold, and on it the onset with its interval, or an arrow."""
    level = alt.YDatum(threshold)
    marks = alt.Chart().transform_filter("isValid(datum.at)")
    interval = marks.transform_filter("isValid(datum.onset_lo) && isValid(datum.onset_hi)")
    shapes = alt.Scale(
        domain=["onset", "not reached", "reached before"],
        range=["circle", "triangle-right", "triangle-left"],
    )
    return [
        marks.mark_rule(strokeDash=[2, 3], color=FAINT).encode(y=level),
        interval.mark_rule(strokeWidth=2, color=MARK).encode(
            x="onset_lo:Q", x2="onset_hi:Q", y=level
        ),
        *(
            interval.mark_tick(thickness=2, size=14, color=MARK).encode(x=f"{end}:Q", y=level)
            for end in ("onset_lo", "onset_hi")
        ),
        marks.mark_point(filled=True, opacity=1, color=MARK, stroke="white").encode(
            x=alt.X("at:Q"),
            y=level,
            shape=alt.Shape("mark:N", scale=shapes, legend=None),
            size=alt.condition("datum.mark == 'onset'", alt.value(60), alt.value(260)),
        ),
    ]
