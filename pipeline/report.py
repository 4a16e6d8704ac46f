"""Pictures of curves: one panel a run, the same axes in all, the earliest hack first."""

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from pipeline.headline import HEADLINE, headline
from pipeline.printable import one_line

PROXY, TRUE, MARK, FAINT = "#0072b2", "#d55e00", "#000000", "#767676"
"""Blue and vermilion of Okabe & Ito's palette, told apart with any colour vision; dashes too."""
NAME_CHARACTERS = 200
FONT = "DejaVu Sans, Liberation Sans, Arial, sans-serif"


def picture(
    curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None, threshold: float
) -> bytes:
    """`chart` as PNG, rendered without a browser or network; fonts are built in."""
    drawn = chart(curves, onsets, proxy, true, threshold)
    return bytes(vl_convert.vegalite_to_png(drawn.to_dict(), scale=2))


def chart(
    curves: pl.DataFrame, onsets: pl.DataFrame, proxy: str, true: str | None, threshold: float
) -> alt.FacetChart:
    """Every run's proxy (with its interval) and true rate, threshold and onset.

    A dot marks the onset, a grey column its bracket; an arrow at the threshold says that it was not
    reached by the last step (right), or reached at the first already (left).
    """
    table = headline(curves, onsets, proxy, true)
    fields = [name for name in table.columns if name not in HEADLINE]
    shown = [name for name in fields[1:] if _tells_apart(table, name)]
    rows = list(table.iter_rows(named=True))
    panels = [_title(row, shown) for row in rows]
    records = [
        record
        for panel, row in zip(panels, rows, strict=True)
        for record in _records(panel, row, _curve(curves, row, fields), proxy, true)
    ]
    return _chart(records, panels, proxy, true, threshold)


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
    again = ", below again at the end" if row["status"] == "uncrossed" else ""
    return f"{name}\nonset {row['text']}{again}"


def _curve(curves: pl.DataFrame, row: Mapping[str, Any], fields: list[str]) -> pl.DataFrame:
    same = [pl.col(name).eq_missing(pl.lit(row[name])) for name in fields]
    return curves.filter(*same, pl.col("rate").is_not_null()).sort("step")


def _records(
    panel: str, row: Mapping[str, Any], curve: pl.DataFrame, proxy: str, true: str | None
) -> Iterator[dict[str, Any]]:
    """Points of both curves, told apart by `metric`, and one onset mark."""
    for metric in (proxy, *([true] if true else [])):
        points = curve.filter(pl.col("metric") == metric).select("step", "rate", "lo", "hi")
        for point in points.iter_rows(named=True):
            yield {"panel": panel, "metric": metric, **point}
    ends = {"below": row["below"], "above": row["above"]}
    at = row["below"] if row["above"] is None else row["onset"]
    yield {"panel": panel, "mark": _mark(row), "at": at, **ends}


def _mark(row: Mapping[str, Any]) -> str:
    if row["above"] is None:
        return "no data" if row["below"] is None else "not reached"
    return "reached before" if row["below"] is None else "onset"


def _chart(
    records: list[dict[str, Any]], panels: list[str], proxy: str, true: str | None, threshold: float
) -> alt.FacetChart:
    columns, width = _grid(len(panels))
    names = [proxy, *([true] if true else [])]
    high = max((r["rate"] for r in records if "rate" in r), default=1.0)
    rates = alt.Scale(domain=[0, 1]) if high <= 1 else alt.Scale()
    layers = [_bracket(), *_lines(names, rates), *_marks(threshold)]
    title = alt.Title(
        f"{' and '.join(names)} against training step",
        subtitle=[
            f"Band: 95 % interval of {proxy}. Dotted line: threshold {threshold:g}. "
            "Dot: onset, in the grey column between two checkpoints.",
            "Arrow: reached before the first checkpoint (left) or not by the last (right)."
            + (" Highest base rate first." if len(panels) > 1 else ""),
        ],
        anchor="start",
    )
    panel = alt.Facet(
        "panel:N",
        sort=panels,
        title=None,
        header=alt.Header(
            labelExpr=r"split(datum.label, '\n')", labelAnchor="start", labelLimit=width
        ),
    )
    drawn: alt.FacetChart = (
        alt.layer(*layers, data=alt.InlineData(values=records))
        .properties(width=width, height=round(width * 0.6))
        .facet(panel, columns=columns, title=title)
        .configure(font=FONT, background="white", padding=16)
        .configure_axis(
            gridColor="#ececec", domainColor=FAINT, tickColor=FAINT, titleFontWeight=400
        )
        .configure_view(stroke="#d0d0d0")
        .configure_title(fontSize=16, subtitleFontSize=12, subtitleColor="#444444", offset=12)
        .configure_header(labelFontSize=12, labelLineHeight=15, labelPadding=4)
        .configure_legend(orient="top", title=None, labelFontSize=12, symbolSize=300)
    )
    return drawn


def _grid(panels: int) -> tuple[int, int]:
    """Columns, and width of a panel in pixels: the page stays under about 1,200 wide."""
    columns = min(panels, 2 if panels <= 4 else 4 if panels <= 16 else 6)
    return columns, {1: 640, 2: 480, 3: 320, 4: 240}.get(columns, 170)


def _bracket() -> alt.Chart:
    """The steps between which the onset lies, as a column behind the curves."""
    crossed: alt.Chart = alt.Chart().transform_filter("datum.mark == 'onset'")
    column: alt.Chart = crossed.mark_rect(color=FAINT, opacity=0.2)
    return column.encode(alt.X("below:Q"), alt.X2("above:Q"))


def _lines(names: list[str], rates: alt.Scale) -> list[alt.Chart]:
    """Interval band of the proxy, both rates, and a dot at every evaluated checkpoint."""
    points = alt.Chart().transform_filter("isValid(datum.rate)")
    ticks = alt.Axis(tickCount=5, format="d", labelFlush=False)
    step = alt.X("step:Q", title="training step (updates)", axis=ticks)
    rate = alt.Y("rate:Q", title="rate", scale=rates, axis=alt.Axis(tickCount=5))
    look = alt.Scale(domain=names, range=[PROXY, TRUE][: len(names)])
    dashes = alt.Scale(domain=names, range=[[1, 0], [5, 3]][: len(names)])
    colour, dash = alt.Color("metric:N", scale=look), alt.StrokeDash("metric:N", scale=dashes)
    proxy = points.transform_filter(alt.datum.metric == names[0])
    band = proxy.transform_filter("isValid(datum.lo)").mark_area(color=PROXY, opacity=0.2)
    return [
        band.encode(step, alt.Y("lo:Q", scale=rates), alt.Y2("hi:Q")),
        points.mark_line(strokeWidth=1.8).encode(step, rate, colour, dash),
        proxy.mark_circle(size=14, opacity=1, color=PROXY).encode(step, rate),
    ]


def _marks(threshold: float) -> list[alt.Chart]:
    """The threshold, and on it the onset or an arrow."""
    level = alt.YDatum(threshold)
    marks = alt.Chart().transform_filter("isValid(datum.at)")
    shapes = alt.Scale(
        domain=["onset", "not reached", "reached before"],
        range=["circle", "triangle-right", "triangle-left"],
    )
    return [
        marks.mark_rule(strokeDash=[2, 3], color=FAINT).encode(y=level),
        marks.mark_point(filled=True, size=110, opacity=1, color=MARK, stroke="white").encode(
            x=alt.X("at:Q"), y=level, shape=alt.Shape("mark:N", scale=shapes, legend=None)
        ),
    ]
