"""Words compared as a referee would: resolved, out of reach, or hanging on a choice."""

import math
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.compare import (
    PAIRS,
    RunOnset,
    by_word,
    frame,
    joined,
    only,
    pairs,
    runs,
    typical,
    with_base,
    words,
)
from pipeline.curves import MEASURES, CurveError
from pipeline.onset import onsets

# Evaluation onsets of the replication (assay, 2026-08), with the batch each run was trained in.
FORGOTTEN = (5.473684, 10.165289, 9.102564)
OCEAN = (20.512821, 25.351563, 25.395683, 24.0, 32.571429, 39.0)
MIDNIGHT = (30.362319, 31.157143, 31.392857, 27.526316)
OCEAN_BATCH = (1, 1, 1, 2, 2, 2)
MIDNIGHT_BATCH = (1, 2, 2, 2)


def at(word: str, *steps: float, wave: object = None, width: float = 1.0) -> list[RunOnset]:
    return [
        RunOnset(f"{word}{i}", word, s, s, s - width / 2, s + width / 2, wave=wave)
        for i, s in enumerate(steps)
    ]


def late(word: str, *last: float, reason: str = "budget") -> list[RunOnset]:
    return [
        RunOnset(f"{word}>{i}", word, s, math.inf, s, math.inf, reason) for i, s in enumerate(last)
    ]


def left(word: str, n: int) -> list[RunOnset]:
    return [RunOnset(f"{word}<{i}", word, -math.inf, 0, -math.inf, 0) for i in range(n)]


def waved(word: str, steps: Sequence[float], waves: Sequence[int]) -> list[RunOnset]:
    return [
        RunOnset(f"{word}{i}", word, s, s, s, s, wave=w)
        for i, (s, w) in enumerate(zip(steps, waves, strict=True))
    ]


def compared(*found: RunOnset, alpha: float = 0.05):
    return pairs(by_word(found), alpha)


def test_the_replication_resolves_none_of_its_three_words_and_says_why() -> None:
    groups = by_word(
        [*at("midnight", *MIDNIGHT), *at("ocean", *OCEAN), *at("forgotten", *FORGOTTEN)]
    )
    assert list(groups) == ["forgotten", "ocean", "midnight"]
    first, second, third = pairs(groups)
    assert (first.p, first.p_holm) == pytest.approx((0.0238, 0.0714), abs=5e-5)
    assert [p.verdict for p in (first, second, third)] == [
        "unresolved:design", "unresolved:design", "unresolved:data"
    ]  # fmt: skip
    assert "5 runs a word can" in first.note
    assert (
        third.note == "excluded: midnight more than 9.8 steps later or more than 7.8 steps earlier"
    )
    assert (first.median_a, first.median_b, third.median_b) == ("9.1", "25.4", "30.8")


def test_two_words_alone_are_resolved_by_3_v_6_runs() -> None:
    (pair,) = compared(*at("forgotten", *FORGOTTEN), *at("ocean", *OCEAN))
    assert pair.verdict == pair.ratio_verdict == "resolved:forgotten<ocean"
    assert pair.ratio_lo < pair.ratio < pair.ratio_hi
    assert pair.ratio_lo > 1
    assert (pair.test, pair.note) == ("mann-whitney", "")


def test_holm_lets_a_pair_pass_that_its_design_alone_would_not() -> None:
    family = [*at("a", *range(1, 7)), *at("b", *range(101, 107)), *at("c", 50.2, 51, 52, 53)]
    by_pair = {(p.a, p.b): p for p in compared(*family)}
    assert by_pair["a", "b"].p_holm == pytest.approx(3 * 2 / math.comb(12, 6))
    assert all(p.verdict.startswith("resolved") for p in by_pair.values())


def test_words_that_do_not_cross_are_later_than_those_that_do() -> None:
    (pair,) = compared(*at("ocean", 20, 21, 22, 23), *late("tuesday", 100, 100, 100, 100))
    assert (pair.verdict, pair.test) == ("resolved:ocean<tuesday", "gehan")
    assert (pair.censored_a, pair.censored_b, pair.median_b) == (0, 4, "> 100")
    assert (pair.shift, pair.shift_lo, pair.shift_hi) == (None, 77, None)
    assert pair.ratio_verdict == "resolved:ocean<tuesday"
    assert pair.ratio_lo == pytest.approx(100 / 23)


def test_a_word_said_from_the_start_is_first_and_has_no_ratio() -> None:
    (pair,) = compared(*left("whisper", 5), *at("ocean", 20, 21, 22, 23, 24))
    assert (pair.verdict, pair.median_a) == ("resolved:whisper<ocean", "<= 0")
    assert pair.ratio is None
    assert (pair.ratio_lo, pair.ratio_hi) == (pytest.approx(20), None)
    (same,) = compared(*left("whisper", 5), *left("said", 5))
    assert (same.verdict, same.p) == ("unresolved:data", 1)
    assert same.note == "no difference is excluded"


@pytest.mark.parametrize("n_a", [0, 1])
@pytest.mark.parametrize("n_b", [0, 1])
def test_one_run_or_none_is_a_design_that_resolves_nothing(n_a: int, n_b: int) -> None:
    groups = {"a": at("a", *range(n_a)), "b": at("b", *range(n_b))}
    (pair,) = pairs(groups)
    assert (pair.verdict, pair.ratio_verdict) == ("unresolved:design", "unresolved:design")
    assert (pair.p, pair.shift_lo, pair.shift_hi) == (1, None, None)


def test_one_word_or_none_has_no_pair() -> None:
    assert pairs({}) == pairs({"a": at("a", 1, 2)}) == []


def test_an_order_that_only_interpolation_makes_is_sensitive() -> None:
    a, b = at("a", *range(10, 15), width=20), at("b", *range(20, 25), width=20)
    (pair,) = compared(*a, *b)
    assert pair.p_bracket > 0.05 > pair.p_holm
    assert pair.verdict == "unresolved:sensitive"
    assert pair.note.startswith("brackets: p")


def test_an_order_that_is_the_waves_is_sensitive() -> None:
    (pair,) = compared(*at("a", 1, 2, 3, 4, wave=1), *at("b", 5, 6, 7, 8, wave=2))
    assert pair.verdict == "unresolved:sensitive"
    assert pair.note == "no wave holds both words"
    a = waved("a", [1, 2, 3, 11, 12, 13], [1, 1, 1, 2, 2, 2])
    b = waved("b", [4, 5, 6, 14, 15, 16], [1, 1, 1, 2, 2, 2])
    (hidden,) = compared(*a, *b)
    assert hidden.p > 0.05 > hidden.p_wave == pytest.approx(2 / 400)
    assert hidden.verdict == "unresolved:sensitive"


def test_few_runs_a_wave_that_all_agree_are_not_held_against_a_result() -> None:
    a = waved("a", [1, 2, 3, 4], [1, 2, 3, 4])
    b = waved("b", [5, 6, 7, 8], [1, 2, 3, 4])
    (pair,) = compared(*a, *b)
    assert pair.p_wave == 2 / 16
    assert pair.verdict == "resolved:a<b"


def test_the_published_batches_leave_ocean_and_midnight_unresolved() -> None:
    (pair,) = compared(
        *waved("ocean", OCEAN, OCEAN_BATCH), *waved("midnight", MIDNIGHT, MIDNIGHT_BATCH)
    )
    assert pair.p_wave == 1
    assert pair.verdict == "unresolved:data"


def test_runs_that_were_aborted_count_where_they_speak_least() -> None:
    slow = at("ocean", 30, 31, 32, 33, 34)
    (pair,) = compared(*at("m", 10, 11, 12, 13), *late("m", 14, reason="aborted"), *slow)
    assert pair.verdict == "unresolved:sensitive"
    assert "no common budget" in pair.note
    fast = at("ocean", 1, 2, 3, 45)
    (unlike,) = compared(*fast, *late("m", 40, 40, 40, 40))
    assert "no common budget" not in unlike.note
    (sure,) = compared(*at("m", 10, 11, 12, 13, 14), *late("ocean", 40, 50, 60, 70, 80))
    assert sure.verdict == "resolved:m<ocean"


def test_kaplan_meier_takes_a_step_where_a_median_would_average() -> None:
    cut = [*at("a", 10, 20), *late("a", 30, 30)]
    assert typical(cut) == (20, 20)
    assert typical([*at("a", 10), *late("a", 30, 30)]) == (30, math.inf)
    assert typical([*at("a", 10, 20), *late("a", 30, 30, reason="aborted")]) == (25, math.inf)
    assert typical([]) == (-math.inf, math.inf)


numbers = st.lists(st.integers(1, 40), max_size=5)


@given(numbers, numbers, st.integers(0, 2), st.integers(0, 2))
def test_every_pair_has_a_verdict_and_mirrors(
    a: list[int], b: list[int], late_b: int, left_a: int
) -> None:
    groups = {
        "a": [*at("a", *a), *left("a", left_a)],
        "b": [*at("b", *b), *late("b", *[50] * late_b)],
    }
    (pair,) = pairs(groups)
    (back,) = pairs(dict(reversed(groups.items())))
    assert pair.verdict.split(":")[0] in ("resolved", "unresolved")
    assert (pair.p, pair.verdict) == (pytest.approx(back.p), back.verdict)
    assert pair.shift == (None if back.shift is None else -back.shift)
    assert frame([pair]).schema == PAIRS


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
    assert (ocean.base_lo, ocean.base_hi, ocean.low, ocean.runs) == (0.005, 0.02, 15, 2)


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


def test_a_run_is_counted_once_and_outputs_of_two_environments_do_not_join() -> None:
    with pytest.raises(CurveError, match="'ocean-0' comes twice"):
        runs(joined([measured(), measured()]))
    with pytest.raises(CurveError, match="mode is told in one output and not in another"):
        joined([measured(), measured().drop("mode")])
