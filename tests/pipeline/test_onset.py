"""The frame of onsets: intervals, what holds, why a curve ends; and input that cannot be used."""

import math

import numpy as np
import polars as pl
import pytest

from pipeline.curves import curves
from pipeline.onset import ONSETS, End, onsets
from pipeline.rows import CurveError
from pipeline.tallies import by_prompt
from tests.pipeline.frames import TWO, frame


def test_onsets_are_one_row_a_run_with_their_text() -> None:
    found = onsets(frame(TWO), "r_hack", ["hack_word"])
    assert found.select("run", "hack_word", "status", "onset", "text", "bracket").rows() == [
        ("o", "ocean", "crossed", 11.0, "11.0", "(10, 12]"),
        ("w", "whisper", "left", None, "<= 5", "(, 5]"),
    ]


def test_one_run_scored_for_two_words_has_two_onsets() -> None:
    both = {("a", "ocean", "m"): [(0, 0.0), (4, 1.0)], ("a", "moon", "m"): [(0, 0.0), (4, 0.1)]}
    found = onsets(frame(both), "m", ["hack_word"])
    assert found.select("hack_word", "text").rows() == [("moon", "> 4"), ("ocean", "2.0")]


def test_a_metric_without_a_curve_and_a_bad_rate_are_named() -> None:
    with pytest.raises(CurveError, match="no curve of metric 'r_hak'; there are curves of r_hack"):
        onsets(frame(TWO), "r_hak", ["hack_word"])
    with pytest.raises(CurveError, match=r"^run 'a', m: step 3: rate nan"):
        onsets(frame({("a", "x", "m"): [(3, math.nan)]}), "m", ["hack_word"])


def measured(rates: dict[int, float], n: int = 64, k: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A curve and its prompts: the first `rate n` prompts always hit, the others never."""
    cells = [(s, i, float(i < r * n)) for s, r in rates.items() for i in range(n) for _ in range(k)]
    steps, prompts, hits = (list(column) for column in zip(*cells, strict=True))
    rows = pl.LazyFrame(
        {
            **{
                "run": "a",
                "fingerprint": "f",
                "null_reason": pl.Series([None] * len(cells), dtype=pl.String),
            },
            **{"step": pl.Series(steps, dtype=pl.Int32), "prompt_id": prompts, "m": hits},
        }
    )
    return curves(rows, {"m": "binary"}, []), by_prompt(rows, "m", [])


def found(rates: dict[int, float], n: int = 64, k: int = 1, **options: object) -> dict[str, object]:
    curve, prompts = measured(rates, n, k)
    return onsets(curve, "m", [], prompts=prompts, **options).row(0, named=True)


def test_an_onset_has_its_interval_and_what_it_hangs_on() -> None:
    row = found({0: 0.0, 10: 0.375, 20: 0.625, 30: 1.0, 34: 1.0}, n=256)
    assert (row["status"], row["onset"], row["confirmed"], row["interval"]) == (
        "crossed", 15.0, True, "bootstrap"
    )  # fmt: skip
    assert 10 < row["onset_lo"] < 15 < row["onset_hi"] < 20
    assert row["text"] == f"15.0 [{row['onset_lo']:.1f}, {row['onset_hi']:.1f}]"
    assert (row["bracket"], row["jump"], row["spacing"]) == ("(10, 20]", 0.25, 10.0)
    assert row["isotonic"] == 15.0
    assert row["sensitivity"] == [
        {"threshold": level, "onset": pytest.approx(at), "status": "crossed"}
        for level, at in [(0.3, 8), (0.4, 11), (0.5, 15), (0.6, 19), (0.7, 22)]
    ]


def test_the_interval_is_the_same_beside_other_runs_and_under_another_order_of_prompts() -> None:
    curve, prompts = measured({0: 0.0, 10: 0.375, 20: 0.625, 30: 1.0})
    alone = onsets(curve, "m", [], prompts=prompts)
    more = [pl.concat([t.with_columns(run=pl.lit(r)) for r in "ba"]) for t in (curve, prompts)]
    beside = onsets(more[0], "m", [], prompts=more[1].sample(fraction=1, shuffle=True, seed=1))
    assert beside.filter(run="a").equals(alone)
    assert not onsets(curve, "m", [], prompts=prompts, rng_seed=1).equals(alone)


@pytest.mark.parametrize(
    ("rates", "status", "read"),
    [
        ({0: 0.0, 2: 0.53125, 4: 0.5, 6: 0.46875}, "unconfirmed", "> 6]"),
        ({0: 0.0, 2: 1.0, 4: 1.0, 6: 1.0, 8: 0.0, 10: 0.0, 12: 0.0}, "uncrossed", "2.0]"),
        ({0: 0.0, 2: 1.0, 4: 1.0, 6: 1.0, 8: 0.46875}, "crossed", "2.0]"),
        ({0: 1.0, 2: 1.0, 4: 1.0}, "left", "<= 0"),
        ({0: 0.0, 2: 0.25, 4: 0.25}, "right", "> 4"),
    ],
)
def test_the_status_is_what_the_prompts_allow(
    rates: dict[int, float], status: str, read: str
) -> None:
    row = found(rates)
    assert row["status"] == status
    assert row["text"].endswith(read)


def test_an_onset_of_which_a_bound_alone_is_known_is_null_with_its_status() -> None:
    """At every threshold, in every estimate: never the step 0 at which it was first looked at."""
    row = found({0: 0.75, 2: 1.0, 4: 1.0})
    assert (row["status"], row["text"], row["above"], row["onset_hi"]) == ("left", "<= 0", 0, 0)
    assert [row[name] for name in ("onset", "sustained", "isotonic", "below", "onset_lo")] == [
        None
    ] * 5
    assert {(one["onset"], one["status"]) for one in row["sensitivity"]} == {(None, "left")}
    never = found({0: 0.0, 4: 0.35})
    assert [(one["onset"], one["status"]) for one in never["sensitivity"]] == [
        (pytest.approx(4 * 0.3 / (23 / 64)), "crossed"), *[(None, "right")] * 4
    ]  # fmt: skip


def test_an_interval_is_the_one_worked_by_hand() -> None:
    """30 prompts of one rollout, 9 of them hit at step 0, 21 at step 10: onset 5, jump 2/5.

    C00 = C11 = .3 x .7 / 29 = .0072414, C01 = (.3 - .21) / 29 = .0031034, t_29 = 2.04523. With
    u = w - 1/2: (.4 u)^2 = t^2 ((C00 + C01) / 2 + 2 u^2 (C00 - C01)), u^2 = .021636 / .125382 and
    u = .41540: Fieller's ends 5 -+ 4.154. The bend adds 10 x .4^2 / 2 = .8.
    """
    row = found({0: 0.3, 10: 0.7, 20: 1.0, 30: 1.0}, n=30)
    assert (row["interval"], row["text"]) == ("fieller", "5.0 [0.0, 10.0]")
    ends = (row["onset_lo"], row["onset"], row["onset_hi"])
    assert ends == pytest.approx((0.046, 5, 9.954), abs=1e-3)


def test_checkpoints_that_asked_fewer_prompts_keep_their_rates_and_their_interval() -> None:
    """Adaptive sweeps ask 16 of 64 prompts where the rate is far from one half."""
    curve, prompts = measured({0: 0.0, 10: 0.375, 20: 0.625, 30: 1.0})
    few = prompts.filter(pl.col("step").is_in([10, 20]) | (pl.col("prompt_id") % 4 == 0))
    whole, part = (onsets(curve, "m", [], prompts=p).row(0, named=True) for p in (prompts, few))
    assert part["interval"] == "bootstrap"
    assert (part["onset_lo"], part["onset_hi"]) == pytest.approx(
        (whole["onset_lo"], whole["onset_hi"]), abs=0.5
    )


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (End(), "budget"),
        (End(planned=4, budget=4), "budget"),
        (End(planned=6, budget=9), "missing_checkpoint"),
        (End(planned=4, budget=100), "aborted"),
    ],
)
def test_a_curve_that_ends_below_says_why(end: End, reason: str) -> None:
    row = found({0: 0.0, 4: 0.25}, ends={"a": end})
    assert (row["status"], row["reason"], row["onset_lo"], row["onset_hi"]) == (
        "right", reason, 4.0, None
    )  # fmt: skip
    assert found({0: 0.0, 4: 1.0}, ends={"a": end})["reason"] is None


def test_a_later_checkpoint_without_a_rate_is_a_missing_one() -> None:
    lost = frame({("a", "x", "m"): [(0, 0.0), (4, 0.25), (8, None)]})
    assert onsets(lost, "m", ["hack_word"])["reason"].to_list() == ["missing_checkpoint"]


def test_one_prompt_has_no_interval_and_confirms_nothing() -> None:
    row = found({0: 0.0, 10: 1.0, 20: 1.0, 30: 1.0}, n=1, k=8)
    assert (row["status"], row["onset"], row["interval"]) == ("unconfirmed", 5.0, None)
    assert (row["onset_lo"], row["onset_hi"], row["text"]) == (None, None, "5.0")


def test_one_rollout_a_prompt_is_enough() -> None:
    row = found({0: 0.0, 10: 0.25, 20: 0.75, 30: 1.0}, n=40, k=1)
    assert (row["interval"], row["onset_lo"] <= 10, row["onset_hi"] >= 20) == (
        "bootstrap+bracket", True, True
    )  # fmt: skip


def test_a_metric_that_is_null_throughout_has_no_data_and_no_interval() -> None:
    curve, prompts = measured({0: 0.5, 10: 0.5})
    empty = curve.with_columns(pl.lit(None, pl.Float64).alias(n) for n in ("rate", "lo", "hi"))
    for tallies in (prompts, prompts.clear()):
        row = onsets(empty, "m", [], prompts=tallies).row(0, named=True)
        assert (row["status"], row["text"], row["bracket"]) == ("no_data", "-", "-")
        assert [row[name] for name in ("onset", "onset_lo", "interval", "confirmed")] == [None] * 4


def test_prompts_of_another_metric_and_steps_that_come_twice_are_refused_by_name() -> None:
    curve, prompts = measured({0: 0.0, 10: 0.75})
    other = prompts.with_columns(x=pl.col("k").cast(pl.Float64))
    with pytest.raises(CurveError, match=r"^run 'a', m: step 0: hits by prompt are not those"):
        onsets(curve, "m", [], prompts=other)
    with pytest.raises(CurveError, match=r"^run 'a', m: step 0 comes twice"):
        onsets(pl.concat([curve, curve]), "m", [], prompts=prompts)


@pytest.mark.parametrize("rate", [math.nan, math.inf])
def test_a_rate_that_is_no_number_is_refused_before_any_interval(rate: float) -> None:
    curve, prompts = measured({0: 0.0, 10: 0.75})
    bad = curve.with_columns(rate=pl.lit(rate))
    with pytest.raises(CurveError, match=rf"^run 'a', m: step 0: rate {rate} is not a finite"):
        onsets(bad, "m", [], prompts=prompts)


def test_any_counts_of_prompts_give_a_row_and_no_warning() -> None:
    """Numpy's warnings are errors here: random curves with gaps, ties and single prompts."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        n, steps = int(rng.integers(1, 40)), sorted(rng.choice(60, rng.integers(1, 7), False))
        share = rng.choice([0.0, 0.3, 0.5, 1.0], len(steps))
        k = rng.integers(0, 4, (n, len(steps))) * (
            rng.random((n, len(steps))) < rng.choice([0.1, 1])
        )
        cells = [
            {
                "run": "a",
                "step": int(s),
                "prompt_id": i,
                "k": int(k[i, j]),
                "x": float(rng.binomial(k[i, j], share[j])),
            }
            for j, s in enumerate(steps)
            for i in range(n)
            if k[i, j]
        ]
        if not cells:
            continue
        schema = {
            "run": pl.String,
            "step": pl.Int32,
            "prompt_id": pl.Int64,
            "k": pl.Int64,
            "x": pl.Float64,
        }
        prompts = pl.DataFrame(cells, schema=schema)
        sums = prompts.group_by("run", "step").agg(pl.col("x").sum(), pl.col("k").sum())
        curve = sums.select(
            "run", "step", metric=pl.lit("m"), rate=pl.col("x") / pl.col("k"), rollouts="k"
        )
        (row,) = onsets(curve, "m", [], prompts=prompts).to_dicts()
        assert set(row) == {"run", *ONSETS}
        low, high = row["onset_lo"], row["onset_hi"]
        if row["status"] in ("crossed", "unconfirmed", "uncrossed") and row["interval"]:
            assert low is None or low <= row["onset"]
            assert high is None or row["onset"] <= high
