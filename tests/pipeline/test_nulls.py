"""Lost rollouts are counted by reason, and a rate that lost too many is not shown."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.curves import curves
from pipeline.nulls import refusals, refuse
from pipeline.onset import onsets
from pipeline.rule import onset


def rows(paid: int, unpaid: int, lost: dict[str, int], step: int = 0) -> pl.DataFrame:
    """Rollouts of one checkpoint, each of a prompt of its own."""
    values = [1.0] * paid + [0.0] * unpaid + [None] * sum(lost.values())
    reasons = [None] * (paid + unpaid) + [reason for reason, n in lost.items() for _ in range(n)]
    return pl.DataFrame(
        {
            "run": "a",
            "step": pl.Series([step] * len(values), dtype=pl.Int32),
            "fingerprint": "f",
            "prompt_id": range(len(values)),
            "r_hack": pl.Series(values, dtype=pl.Float64),
            "null_reason": pl.Series(reasons, dtype=pl.String),
        }
    )


def measured(*frames: pl.DataFrame) -> pl.DataFrame:
    return curves(pl.concat(frames).lazy(), {"r_hack": "binary"}, [])


def test_reasons_are_listed_with_their_numbers_the_commonest_first() -> None:
    (row,) = measured(rows(4, 4, {"quarantined": 1, "prompt_too_long": 3})).to_dicts()
    assert row["null_reasons"] == "prompt_too_long 3, quarantined 1"
    assert (row["nulls"], row["rate"]) == (4, 0.5)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 100))
def test_a_rate_is_refused_exactly_where_more_than_the_stated_share_is_lost(
    paid: int, unpaid: int, lost: int, percent: int
) -> None:
    if paid + unpaid + lost:
        found = refuse(measured(rows(paid, unpaid, {"quarantined": lost})), percent / 100)
        refused = 100 * lost > percent * (paid + unpaid + lost)
        assert found["refused"].null_count() == (not refused)
        assert (found["rate"].null_count() == 1) == (refused or paid + unpaid == 0)


def test_a_refused_checkpoint_is_no_point_of_the_curve_and_is_named() -> None:
    frames = [rows(1, 9, {}, 0), rows(2, 2, {"quarantined": 6}, 5), rows(9, 1, {}, 10)]
    kept = refuse(measured(*frames), 0.02)
    (found,) = onsets(kept, "r_hack", []).to_dicts()
    assert (found["below"], found["above"], found["evaluated"]) == (0, 10, 2)
    assert found["onset"] == onset([0, 10], [0.1, 0.9]).onset
    assert refusals(kept) == [
        "run 'a' step 5: r_hack: 60.0 % of 10 rollouts lost (quarantined 6)",
    ]
