"""Onsets of runs become those of words: what is kept of them, and what is refused."""

import math
from dataclasses import replace

import polars as pl
import pytest

from pipeline.compare import pairs
from pipeline.curves import MEASURES
from pipeline.grouping import (
    RunOnset,
    alike,
    by_word,
    joined,
    only,
    runs,
    typical,
    typical_text,
    with_base,
    words,
)
from pipeline.onset import onsets
from pipeline.rows import CurveError


def known_at(*steps: float) -> list[RunOnset]:
    return [RunOnset(str(s), "a", s, s, s, s) for s in steps]


def late(*last: float, reason: str = "budget") -> list[RunOnset]:
    return [RunOnset(str(s), "a", s, math.inf, s, math.inf, reason) for s in last]


def test_one_budget_leaves_the_median_as_open_as_it_is() -> None:
    assert typical([*known_at(10, 20), *late(30, 30)]) == (25, math.inf)
    assert typical([*known_at(10, 20, 30), *late(30)]) == (25, 25)
    assert typical([*known_at(10), *late(30, 30)]) == (30, math.inf)
    assert typical([*known_at(10, 20), *late(30, 30, reason="aborted")]) == (25, math.inf)
    assert typical([]) == (-math.inf, math.inf)


def test_a_median_that_only_kaplan_and_meier_have_is_marked_and_a_plain_one_is_not() -> None:
    cut = [*late(5), *known_at(10, 20), *late(30)]
    assert typical_text(cut) == "20.0 (Kaplan-Meier)"
    assert typical_text([*known_at(10, 20), *late(30, 30)]) == "> 25"
    assert typical_text([*known_at(10, 20), *late(30)]) == "20.0"
    assert typical_text(late(30, 30)) == "> 30"
    assert typical_text([*known_at(10, 20), *late(30, 30, reason="aborted")]) == "> 25"
    (word,) = words({"a": [replace(run, base=(0.1, 0.05, 0.2)) for run in cut]})
    assert (word.method, word.text) == ("Kaplan-Meier", "20.0 (Kaplan-Meier)")


def test_a_base_rate_without_an_interval_has_none_whatever_its_runs_say() -> None:
    bases = [(0.1, None, None), (0.3, None, None)]
    found = [replace(run, base=base) for run, base in zip(known_at(5, 6), bases, strict=True)]
    (word,) = words({"a": found})
    assert (word.base, word.base_lo, word.base_hi) == (pytest.approx(0.2), None, None)


def curves_of(points: dict[tuple[str, str], list[tuple[int, float]]]) -> pl.DataFrame:
    rows = [
        (run, word, "hack_only", step, "r_hack", rate, rate / 2, min(1.0, 2 * rate))
        for (run, word), curve in points.items()
        for step, rate in curve
    ]
    names = ["run", "hack_word", "mode", "step", "metric", "rate", "lo", "hi"]
    frame = pl.DataFrame(rows, names, orient="row").cast({"step": pl.Int32})
    absent = {name: kind for name, kind in MEASURES.items() if name not in names}
    return frame.with_columns(
        pl.lit(64 if name == "rollouts" else None, kind).alias(name)
        for name, kind in absent.items()
    )


IDENTITY = ("hack_word", "mode")
CURVES = curves_of(
    {
        ("ocean-0", "ocean"): [(0, 0.01), (10, 0.4), (20, 0.6)],
        ("ocean-1", "ocean"): [(0, 0.01), (10, 0.3), (20, 0.4)],
        ("whisper-0", "whisper"): [(0, 0.8), (10, 0.9)],
    }
)


def measured(curves: pl.DataFrame = CURVES) -> pl.DataFrame:
    return with_base(onsets(curves, "r_hack", IDENTITY), curves)


def test_runs_of_a_frame_keep_censoring_bracket_base_and_wave() -> None:
    crossed, never, at_once = runs(measured(), {"ocean-0": {"wave": 3}})
    assert (crossed.low, crossed.high, crossed.below, crossed.above) == (15, 15, 10, 20)
    assert (crossed.wave, crossed.base) == (3, (0.01, 0.005, 0.02))
    assert (never.low, never.high, never.reason) == (20, math.inf, "budget")
    assert (at_once.low, at_once.high) == (-math.inf, 0)
    whisper, ocean = words(by_word([crossed, never, at_once]))
    assert (whisper.name, whisper.base, whisper.high) == ("whisper", 0.8, 0)
    assert (ocean.base_lo, ocean.base_hi, ocean.low, ocean.runs) == (0.005, 0.02, 17.5, 2)


def test_an_unconfirmed_crossing_keeps_its_onset_and_an_open_bracket() -> None:
    table = measured().with_columns(
        status=pl.when(pl.col("run") == "ocean-0").then(pl.lit("unconfirmed")).otherwise("status")
    )
    run = runs(table)[0]
    assert (run.low, run.high, run.below, run.above) == (15, 15, 10, math.inf)


def test_a_word_whose_runs_have_no_rate_is_there_without_runs() -> None:
    none = curves_of({("x-0", "x"): [(0, 0.1)]}).with_columns(rate=pl.lit(None, pl.Float64))
    groups = by_word(runs(measured(pl.concat([CURVES, none]))))
    assert groups["x"] == []
    assert [word.name for word in words(groups)] == ["whisper", "ocean"]
    assert pairs(groups)[0].verdict == "unresolved:design"


def test_curves_of_two_modes_are_never_compared() -> None:
    other = curves_of({("m-0", "midnight"): [(0, 0.0), (5, 0.9)]}).with_columns(
        mode=pl.lit("hack_or_correct")
    )
    both = measured(pl.concat([CURVES, other]))
    with pytest.raises(CurveError, match=r"mode is 'hack_.*' in run .*--only\.mode hack_"):
        runs(both)
    assert {run.word for run in runs(only(both, {}, {"mode": "hack_or_correct"}))} == {"midnight"}
    with pytest.raises(CurveError, match=r"only\.mode: no run has 'x'; they have hack_only"):
        only(both, {}, {"mode": "x"})


def test_onsets_at_two_thresholds_are_never_compared() -> None:
    low = with_base(onsets(CURVES, "r_hack", IDENTITY, 0.35), CURVES)
    with pytest.raises(CurveError, match="threshold is "):
        runs(pl.concat([measured(), low]))


def test_runs_may_be_grouped_by_a_tag_and_then_words_must_agree() -> None:
    tags = {"ocean-0": {"lr": 1e-3}, "ocean-1": {"lr": 1e-4}}
    ocean = only(measured(), tags, {"hack_word": "ocean"})
    assert {run.word for run in runs(ocean, tags, by="lr")} == {"0.001", "0.0001"}
    with pytest.raises(CurveError, match="hack_word is 'ocean'"):
        runs(measured(), tags, by="lr")
    with pytest.raises(CurveError, match=r"has no 'size'.*hack_word, mode.*tags, which are lr"):
        runs(ocean, tags, by="size")


def test_words_of_two_base_models_are_never_compared_where_that_is_known() -> None:
    tags = {"ocean-0": {"base": "tiny"}, "whisper-0": {"base": "swapped"}}
    with pytest.raises(CurveError, match=r"base is '.*' in run .*--only\.base"):
        runs(measured(), tags)
    kept = only(measured(), tags, {"base": "tiny"})
    assert [run.run for run in runs(kept, tags)] == ["ocean-0"]


def test_runs_that_are_never_compared_fall_into_parts_by_what_sets_them_apart() -> None:
    other = curves_of({("m-0", "midnight"): [(0, 0.0), (5, 0.9)]}).with_columns(
        mode=pl.lit("hack_or_correct")
    )
    both = measured(pl.concat([CURVES, other]))
    parts = alike(both, {"ocean-0": {"base": "tiny"}})
    assert {name: part["run"].to_list() for name, part in parts.items()} == {
        "mode hack_or_correct, base model None": ["m-0"],
        "mode hack_only, base model tiny": ["ocean-0"],
        "mode hack_only, base model None": ["ocean-1", "whisper-0"],
    }
    for part in parts.values():
        runs(part)
    ((name, whole),) = alike(measured(), {}).items()
    assert (name, whole.columns) == ("", measured().columns)


def test_a_run_is_counted_once_and_outputs_of_two_environments_do_not_join() -> None:
    with pytest.raises(CurveError, match="'ocean-0' comes twice"):
        runs(joined([measured(), measured()]))
    with pytest.raises(CurveError, match="mode is told in one output and not in another"):
        joined([measured(), measured().drop("mode")])
