"""How our charts look, and their rendering without browser or network."""

import re
from html import escape
from typing import Any

import altair as alt
import vl_convert

PROXY, TRUE, MARK, FAINT, PALE = "#0072b2", "#d55e00", "#000000", "#767676", "#ececec"
"""Blue and vermilion of Okabe & Ito's palette, told apart with any colour vision; dashes too."""
WORDS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Six of that palette, one a hack word; more words than these are all drawn in the first."""
FONT = "DejaVu Sans, Liberation Sans, Arial, sans-serif"

Chart = alt.Chart | alt.LayerChart | alt.FacetChart


def dressed(chart: Chart, padding: int = 16) -> dict[str, Any]:
    """The Vega-Lite specification of a chart in our looks."""
    spec: dict[str, Any] = (
        chart.configure(font=FONT, background="white", padding=padding)
        .configure_axis(gridColor=PALE, domainColor=FAINT, tickColor=FAINT, titleFontWeight=400)
        .configure_view(stroke="#d0d0d0")
        .configure_title(fontSize=16, subtitleFontSize=12, subtitleColor="#444444", offset=12)
        .configure_header(labelFontSize=12, labelLineHeight=15, labelPadding=4)
        .configure_legend(orient="top", title=None, labelFontSize=12, symbolSize=300)
        .to_dict()
    )
    return spec


def png(spec: dict[str, Any]) -> bytes:
    """Fonts are built in; twice the size on paper."""
    return bytes(vl_convert.vegalite_to_png(spec, scale=2))


def svg(spec: dict[str, Any]) -> str:
    """Static: no script, no link, text as text."""
    return str(vl_convert.vegalite_to_svg(spec))


def inline(drawing: str, name: str, says: str) -> str:
    """An SVG to stand in a page: an image that says what it shows, its ids its own."""
    width, height = re.findall(r'\b(?:width|height)="([\d.]+)"', drawing)[:2]
    body = drawing[drawing.index(">") + 1 :]
    body = re.sub(r'(\bid="|url\(#)', rf"\1{name}-", body)
    return (
        f'<svg role="img" aria-label="{escape(says)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{body}'
    )
