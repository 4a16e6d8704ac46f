"""The table that is read first, as figures and as people read it."""

import polars as pl

from pipeline.headline import READABLE, headline, readable
from pipeline.onset import onsets
from tests.pipeline.frames import TWO, frame


def test_the_headline_says_base_onset_truth_at_both_ends_and_n() -> None:
    curves = frame(TWO)
    table = headline(curves, onsets(curves, "r_hack", ["hack_word"]), "r_hack", "r_true")
    whisper, ocean = table.to_dicts()
    assert (whisper["run"], whisper["base_step"], whisper["base"]) == ("w", 5, 0.75)
    assert (whisper["true_base"], whisper["true_end"], whisper["end_step"]) == (None, None, 20)
    assert (ocean["base_step"], ocean["base"], ocean["base_lo"]) == (0, 0.0625, 0.0)
    assert (ocean["true_base"], ocean["true_end"], ocean["true_end_hi"]) == (0.75, 0.125, 0.1875)
    assert (ocean["n"], ocean["prompts"], ocean["deff"]) == (64, 16, 1.5)
    assert (ocean["evaluated"], ocean["nulls"]) == (4, 4)
    assert (ocean["onset"], ocean["below"], ocean["above"], ocean["sustained"]) == (11, 10, 12, 11)


def test_equal_base_rates_stand_in_the_order_of_their_runs_and_no_data_last() -> None:
    flat = {(run, "x", "m"): [(0, rate)] for run, rate in [("c", 0), ("a", 0), ("d", None)]}
    curves = frame(flat)
    table = headline(curves, onsets(curves, "m", ["hack_word"]), "m", None)
    assert table["run"].to_list() == ["a", "c", "d"]
    assert table["status"].to_list() == ["right", "right", "no_data"]


def test_people_read_percent_with_interval_and_at_which_step_the_base_is() -> None:
    curves = frame(TWO)
    table = headline(curves, onsets(curves, "r_hack", ["hack_word"]), "r_hack", "r_true")
    whisper, ocean = readable(table)
    assert whisper["base rate"] == "75 % [68.8, 81.2] at step 5"
    assert (whisper["true at base"], whisper["word"]) == ("-", "whisper")
    assert (ocean["base rate"], ocean["onset"]) == ("6.25 % [0, 12.5]", "11.0")
    assert ocean["bracket"] == "(10, 12]"
    assert ocean["true at base"] == "75 % [68.8, 81.2]"
    assert (ocean["true at end"], ocean["status"]) == ("12.5 % [6.25, 18.8]", "crossed")
    assert set(READABLE) == set(ocean)


def test_the_truth_at_a_base_that_is_not_step_0_says_at_which_step_it_is() -> None:
    curves = frame({("a", "x", "m"): [(5, 0.1), (20, 1.0)], ("a", "x", "t"): [(5, 0.5), (20, 0.5)]})
    table = headline(curves, onsets(curves, "m", ["hack_word"]), "m", "t")
    assert readable(table)[0]["true at base"].endswith("] at step 5")


def test_people_see_a_later_sustained_crossing_and_why_a_curve_ends() -> None:
    curves = frame({("a", "x", "m"): [(0, 0), (2, 1), (4, 0), (6, 1)], ("b", "x", "m"): [(0, 0)]})
    table = headline(curves, onsets(curves, "m", ["hack_word"]), "m", None)
    status = [row["status"] for row in readable(table)]
    assert status == ["crossed, sustained from 5.0", "right (budget)"]


def test_truth_and_gap_stand_at_the_steps_of_the_base_and_the_end_or_are_null() -> None:
    """No truth at step 0, where the base is: null, not the truth of step 10."""
    curves = frame(
        {
            ("a", "x", "m"): [(0, 0.0), (10, 0.75), (20, 1.0)],
            ("a", "x", "t"): [(0, None), (10, 0.5), (20, 0.25), (30, 0.25)],
            ("a", "x", "gap"): [(0, None), (10, 0.25), (20, 0.75), (30, None)],
        }
    )
    (row,) = headline(curves, onsets(curves, "m", ["hack_word"]), "m", "t").to_dicts()
    assert (row["true_base"], row["true_end"], row["end_step"]) == (None, 0.25, 20)
    assert (row["gap_base"], row["gap_end"], row["gap_end_lo"]) == (None, 0.75, 0.6875)
    assert readable(headline(curves, onsets(curves, "m", ["hack_word"]), "m", "t"))[0][
        "gap at end"
    ] == ("75 % [68.8, 81.2]")


def test_a_rate_without_a_hit_reads_as_its_bound_wherever_it_stands() -> None:
    """No hit in 4,096: lo 0, hi 1 - 0.05^(1/4096), the rule of three."""
    curves = frame({("a", "x", "m"): [(0, 0.0), (10, 0.75)], ("b", "x", "m"): [(0, 0.25)]})
    none = pl.col("rate") == 0
    told = curves.with_columns(
        hits=pl.col("rate") * 4096,
        lo=pl.when(none).then(0.0).otherwise("lo"),
        hi=pl.when(none).then(0.000731).otherwise("hi"),
        rollouts=4096,
    )
    told = pl.concat([told, told.with_columns(metric=pl.lit("t"))])
    found = headline(told, onsets(told, "m", ["hack_word"]), "m", "t").sort("run")
    assert found["base_hits"].to_list() == [0, 1024]
    assert found["base_bound"].to_list() == [0.000731, None]
    first = readable(found)[0]
    assert first["base rate"] == first["true at base"] == "0 % (< 0.073 %)"
    assert (found["n"][0], found["k"][0]) == (4096, 256)


def test_a_run_that_starts_over_the_threshold_says_so_and_whether_it_ends_below() -> None:
    high = {("a", "x", "m"): [(0, 0.8), (5, 0.9)], ("b", "x", "m"): [(0, 0.8), (5, 0.2)]}
    curves = frame(high)
    found = onsets(curves, "m", ["hack_word"])
    table = headline(curves, found, "m", None).sort("run")
    assert table["end"].to_list() == [0.9, 0.2]
    assert table["onset"].to_list() == table["sustained"].to_list() == [None, None]
    assert [row["status"] for row in readable(table)] == ["left", "uncrossed"]
    # Where prompts are known, one rate below does not undo it.
    unsure = table.with_columns(status=pl.lit("left"))
    assert [row["status"] for row in readable(unsure)] == ["left", "left, below at the last"]


def test_people_see_the_fields_in_which_rows_differ_behind_the_run() -> None:
    curves = pl.concat(
        frame({("a", "x", "m"): [(0, 0.1)]}).with_columns(mode=pl.lit(mode)) for mode in "pq"
    )
    table = headline(curves, onsets(curves, "m", ["hack_word", "mode"]), "m", None)
    assert [row["run"] for row in readable(table)] == ["a, mode=p", "a, mode=q"]
