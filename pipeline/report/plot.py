"""Curves in a terminal: one panel a run, in characters."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.report.panels import Frame, Panel, frame, panels


@dataclass(frozen=True, slots=True)
class Pen:
    """Characters that stand for what is drawn; a later one covers those before it."""

    threshold: str
    band: str
    true: str
    point: str
    onset: str
    right: str
    left: str
    edge: str
    corner: str
    floor: str


DRAWN = Pen("┄", "░", "○", "●", "◆", "▶", "◀", "┤", "└", "─")
TYPED = Pen("-", ":", "o", "*", "X", ">", "<", "|", "+", "-")
"""For terminals that have no other letters than ASCII's."""
WIDTH, HEIGHT = 64, 11


def pen(encoding: str) -> Pen:
    """The one that a terminal of this encoding can show."""
    try:
        "".join(getattr(DRAWN, name) for name in Pen.__slots__).encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return TYPED
    return DRAWN


def plots(
    curves: pl.DataFrame,
    onsets: pl.DataFrame,
    proxy: str,
    true: str | None,
    threshold: float,
    pen: Pen,
) -> str:
    """Every run's panel below what the characters mean."""
    drawn = panels(curves, onsets, proxy, true)
    shared = frame(drawn, proxy, true, threshold)
    return "\n\n".join([legend(shared, pen), *(plot(panel, shared, pen) for panel in drawn)])


def legend(shared: Frame, pen: Pen) -> str:
    """What the characters mean."""
    said = [(pen.point, shared.names[0]), (pen.band, "95 % interval")]
    said += [(pen.true, name) for name in shared.names[1:]]
    said += [(pen.threshold, f"threshold {shared.threshold:g}"), (pen.onset, "onset")]
    said += [(pen.right, "not reached"), (pen.left, "reached before")]
    return "  ".join(f"{mark} {what}" for mark, what in said)


def plot(panel: Panel, shared: Frame, pen: Pen) -> str:
    """One run: its name and onset, and its rates on the axes that all share."""
    top = max(1.0, shared.high)
    cells = [[" "] * WIDTH for _ in range(HEIGHT)]

    def row(rate: float) -> int:
        return round(min(max(rate / top, 0.0), 1.0) * (HEIGHT - 1))

    def column(step: float) -> int:
        return round((step - shared.first) / max(1, shared.last - shared.first) * (WIDTH - 1))

    level = row(shared.threshold)
    cells[level] = [pen.threshold] * WIDTH
    points = {name: _points(panel, name) for name in shared.names}
    for step, _, low, high in points[shared.names[0]]:
        if low is not None and high is not None:
            for y in range(row(low), row(high) + 1):
                cells[y][column(step)] = pen.band
    for name, mark in zip(reversed(shared.names), _marks(shared, pen), strict=True):
        for step, rate, _, _ in points[name]:
            cells[row(rate)][column(step)] = mark
    onset = panel.records[-1]
    if onset["at"] is not None:
        shapes = {"onset": pen.onset, "not reached": pen.right, "reached before": pen.left}
        cells[level][column(onset["at"])] = shapes[onset["mark"]]
    return "\n".join([*panel.title.split("\n"), *_framed(cells, shared, top, pen)])


def _marks(shared: Frame, pen: Pen) -> Sequence[str]:
    """Of the metrics, last to first, so that the proxy lies on top."""
    return (pen.true, pen.point)[-len(shared.names) :]


def _points(panel: Panel, metric: str) -> list[tuple[int, float, float | None, float | None]]:
    of_metric = [r for r in panel.records if r.get("metric") == metric]
    return [(r["step"], r["rate"], r["lo"], r["hi"]) for r in of_metric]


def _framed(cells: list[list[str]], shared: Frame, top: float, pen: Pen) -> list[str]:
    """Rows from the top, with the scale left of the first, the middle and the last."""
    named = {HEIGHT - 1: top, (HEIGHT - 1) // 2: top / 2, 0: 0.0}
    lines = []
    for y in reversed(range(HEIGHT)):
        scale = f"{named[y]:4.2g}" if y in named else ""
        lines.append(f"{scale:>5} {pen.edge}{''.join(cells[y])}".rstrip())
    first, last = str(shared.first), str(shared.last)
    lines.append(f"{'':5} {pen.corner}{pen.floor * WIDTH}")
    lines.append(f"{'':7}{first}{last:>{WIDTH - len(first)}}")
    return lines
