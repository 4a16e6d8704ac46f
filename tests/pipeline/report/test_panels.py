"""The picture: every run has its panel, censoring is marked, and it renders."""

import struct
from typing import Any

import polars as pl
import pytest

from pipeline.curves import MEASURES
from pipeline.onset import onsets
from pipeline.report.panels import chart, picture

Rates = dict[int, float | None]


def frame(runs: dict[str, tuple[str, Rates]], seed: int = 0) -> pl.DataFrame:
    """Both metrics of runs given as name: (word, rate of r_hack at each step)."""
    rows = [
        {
            **{"run": run, "hack_word": word, "seed": seed, "step": step, "metric": metric},
            **{"rate": rate, "lo": rate and rate / 2, "hi": rate and min(1, rate + 0.1)},
            **{"rollouts": 64, "prompts": 16, "nulls": 0},
        }
        for run, (word, rates) in runs.items()
        for step, hack in rates.items()
        for metric, rate in (("r_hack", hack), ("r_true", None if hack is None else 1 - hack))
    ]
    identity = {"run": pl.String, "hack_word": pl.String, "seed": pl.Int64, "step": pl.Int32}
    return pl.DataFrame(rows, schema={**identity, **MEASURES})


FOUR = {
    "ocean-s0": ("ocean", {0: 0.0, 10: 0.25, 20: 0.75}),
    "rare": ("tuesday", {0: 0.0, 10: 0.125, 30: 0.25}),
    "whisper-s0": ("whisper", {0: 0.75, 20: 1.0}),
    "lost": ("moon", {0: None}),
}


def drawn(curves: pl.DataFrame, true: str | None = "r_true") -> dict[str, Any]:
    found = onsets(curves, "r_hack", ["hack_word", "seed"])
    spec: dict[str, Any] = chart(curves, found, "r_hack", true, 0.5).to_dict()
    return spec


def records(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["datasets"][spec["data"]["name"]]
    return found


def size(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_panels_stand_in_the_order_of_base_rate_with_their_onset_in_the_title() -> None:
    assert drawn(frame(FOUR))["facet"]["sort"] == [
        "whisper-s0, hack_word whisper\nonset <= 0",
        "ocean-s0, hack_word ocean\nonset 15.0",
        "rare, hack_word tuesday\nonset > 30",
        "lost, hack_word moon\nno rate",
    ]


def test_censored_runs_are_marked_where_they_end_or_begin() -> None:
    marks = [r for r in records(drawn(frame(FOUR))) if "mark" in r]
    assert [(m["mark"], m["at"], m["below"], m["above"]) for m in marks] == [
        ("reached before", 0.0, None, 0),
        ("onset", 15.0, 10, 20),
        ("not reached", 30, 30, None),
        ("no data", None, None, None),
    ]


def test_a_run_named_after_its_word_needs_no_second_naming() -> None:
    named = {"ocean-s0": FOUR["ocean-s0"], "whisper-s0": FOUR["whisper-s0"]}
    titles = [title.partition("\n")[0] for title in drawn(frame(named))["facet"]["sort"]]
    assert titles == ["whisper-s0", "ocean-s0"]


def test_one_run_under_two_seeds_of_cases_has_two_panels_that_say_so() -> None:
    run = {"ocean-s0": FOUR["ocean-s0"]}
    titles = drawn(pl.concat([frame(run), frame(run, 1)]))["facet"]["sort"]
    assert [t.partition("\n")[0] for t in titles] == ["ocean-s0, seed 0", "ocean-s0, seed 1"]


def test_a_run_that_falls_again_says_so() -> None:
    (title,) = drawn(frame({"a": ("x", {0: 0.0, 4: 1.0, 8: 0.25})}))["facet"]["sort"]
    assert title == "a\nonset 2.0, below again later"


def test_without_a_true_metric_only_the_proxy_is_drawn() -> None:
    metrics = {r.get("metric") for r in records(drawn(frame(FOUR), None))}
    assert metrics == {"r_hack", None}


@pytest.mark.parametrize("runs", [1, 30])
def test_any_number_of_runs_renders_on_a_page_of_bounded_width(runs: int) -> None:
    rates: Rates = {step: min(1.0, step / 60) for step in range(0, 61, 10)}
    curves = frame({f"word-s{i}": ("word", rates) for i in range(runs)})
    found = onsets(curves, "r_hack", ["hack_word", "seed"])
    width, height = size(picture(curves, found, "r_hack", "r_true", 0.5))
    assert 1_000 < width < 3_000
    assert height > 150 * -(-runs // 6)


def test_runs_of_every_status_and_a_single_checkpoint_render() -> None:
    curves = frame(FOUR | {"one": ("x", {0: 0.5})})
    found = onsets(curves, "r_hack", ["hack_word", "seed"])
    width, _ = size(picture(curves, found, "r_hack", None, 0.5))
    assert width > 1_000
