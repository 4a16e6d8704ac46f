"""Curves in characters: every rate in its place, the onset marked, nothing that steers."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.curves import MEASURES
from pipeline.onset import onsets
from pipeline.report import plot
from pipeline.report.plot import HEIGHT, TYPED, WIDTH


def frame(runs: dict[str, dict[int, float | None]]) -> pl.DataFrame:
    rows = [
        {"run": run, "step": step, "metric": "rate", "rate": rate}
        for run, rates in runs.items()
        for step, rate in rates.items()
    ]
    return pl.DataFrame(rows, schema={"run": pl.String, "step": pl.Int32, **MEASURES})


def drawn(runs: dict[str, dict[int, float | None]], pen: plot.Pen = TYPED) -> list[str]:
    curves = frame(runs)
    found = onsets(curves, "rate", ())
    return plot.plots(curves, found, "rate", None, 0.5, pen).split("\n")


def test_rates_stand_at_their_height_and_the_onset_on_the_threshold() -> None:
    lines = drawn({"a": {0: 0.0, 10: 1.0}})
    assert (
        lines[0]
        == "* rate  : 95 % interval  - threshold 0.5  X onset  > not reached  < reached before"
    )
    assert lines[2:4] == ["a", "onset 5.0"]
    assert lines[4] == "    1 |" + " " * (WIDTH - 1) + "*"
    middle = "  0.5 |" + "-" * 32 + "X" + "-" * (WIDTH - 33)
    assert lines[4 + HEIGHT // 2] == middle
    assert lines[3 + HEIGHT] == "    0 |*"
    assert lines[-1] == "       0" + " " * (WIDTH - 3) + "10"


def test_what_was_not_reached_or_reached_before_is_an_arrow() -> None:
    assert drawn({"a": {0: 0.1, 10: 0.2}})[4 + HEIGHT // 2].endswith("->")
    assert drawn({"a": {0: 0.8, 10: 0.9}})[4 + HEIGHT // 2].startswith("  0.5 |<-")


def test_a_run_without_a_rate_is_an_empty_panel() -> None:
    assert drawn({"a": {0: None}, "b": {0: 0.1, 2: 0.9}})[-HEIGHT - 4 :][0] == "a"


def test_a_terminal_without_those_letters_gets_ascii() -> None:
    assert plot.pen("ascii") is TYPED
    assert plot.pen("utf-8") is plot.DRAWN
    assert plot.pen("no such encoding") is TYPED


rates = st.dictionaries(st.integers(0, 500), st.floats(0, 1) | st.none(), min_size=1, max_size=20)


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=9), rates, min_size=1, max_size=3
    )
)
def test_no_line_is_wider_and_none_steers(runs: dict[str, dict[int, float | None]]) -> None:
    lines = drawn(runs)
    assert len(lines) == 1 + len(runs) * (1 + 2 + HEIGHT + 2)
    assert all(line.isprintable() for line in lines)
    assert max(len(line) for line in lines[3:]) <= 7 + WIDTH + 200
