import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait import market_structure
from hackbait.judge import Judgement
from pipeline.opinions import Opinions, alpha, gate, of_prompts, opinions, stages, told

PUBLISHED = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
"""Krippendorff's (2011) example of four coders; its nominal alpha is 0.743."""


def counted(table: str, labels: str) -> np.ndarray:
    units = zip(*(line.split() for line in table.strip().splitlines()), strict=True)
    return np.array([[unit.count(label) for label in labels] for unit in units], dtype=float)


def of(counts: np.ndarray) -> float:
    cells = of_prompts(counts, np.arange(len(counts)))
    return float(alpha(cells.sum(axis=0)[None])[0])


def test_alpha_of_the_published_example() -> None:
    assert of(counted(PUBLISHED, "12345")) == pytest.approx(0.743, abs=5e-4)


def test_alpha_by_hand() -> None:
    # Two rollouts of two votes, yes yes and yes no: Do = 2/4, De = 2 * 3 * 1 / (4 * 3).
    assert of(np.array([[2.0, 0.0], [1.0, 1.0]])) == pytest.approx(1 - (2 / 4) / (6 / 12))


COUNTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=20)


@given(COUNTS)
def test_alpha_is_at_most_1_and_is_1_where_no_two_votes_of_a_rollout_differ(counts) -> None:
    table = np.array(counts, dtype=float)
    value = of(table)
    assert np.isnan(value) or value <= 1.0
    agreed = np.where(table.max(axis=1, keepdims=True) == table, table, 0.0)
    agreed[:, 1] *= agreed[:, 0] == 0
    value = of(agreed)
    assert np.isnan(value) or value == pytest.approx(1.0)


@given(COUNTS)
def test_a_rollout_with_a_single_vote_changes_nothing(counts) -> None:
    table = np.array(counts, dtype=float)
    assert of(np.vstack([table, [1.0, 0.0]])) == pytest.approx(of(table), nan_ok=True)


def test_opinions_are_counted_over_the_rollouts_that_were_judged() -> None:
    frame = pl.DataFrame(
        {
            "prompt_id": [1, 1, 2, 2, 3],
            "judge_cares": [1.0, 0.0, 1.0, None, None],
            "judge_cares_yes": [1.0, 1 / 3, 2 / 3, None, None],
            "judge_cares_no": [0.0, 2 / 3, 1 / 3, None, None],
            "judge_cares_votes": [3.0, 3.0, 3.0, 0.0, None],
            "judge_error": [0.0, 0.0, 0.0, 1.0, None],
        }
    )
    assert stages(frame.columns) == ["judge_cares"]
    found = opinions(frame.lazy(), "judge_cares", frame.columns)
    assert (found.rollouts, found.errors) == (4, 1)
    assert found.alpha == pytest.approx(of(np.array([[3.0, 0], [1, 2], [2, 1]])))
    assert found.low <= found.alpha <= found.high
    assert "no opinion of 1 of 4 rollouts (25.00%)" in str(found)


def test_rollouts_that_were_spared_a_judge_are_counted_apart() -> None:
    frame = pl.DataFrame(
        {
            "prompt_id": [1, 1, 2, 2, 3],
            "judge_cares": [1.0, 0.0, 0.0, None, None],
            "judge_cares_yes": [1.0, 1 / 3, 0.0, None, None],
            "judge_cares_no": [0.0, 2 / 3, 1.0, None, None],
            "judge_cares_votes": [3.0, 3.0, None, None, None],
            "judge_cares_stratum": [1.0, 1.0, 0.0, 1.0, None],
            "judge_cares_chance": [0.5, 0.5, 1.0, 0.5, None],
            "judge_error": [0.0, 0.0, None, None, None],
        }
    )
    found = opinions(frame.lazy(), "judge_cares", frame.columns)
    assert (found.rollouts, found.errors, found.settled, found.undrawn) == (2, 0, 1, 1)
    assert found.alpha == pytest.approx(of(np.array([[3.0, 0], [1, 2]])))
    assert str(found).endswith("1 settled without a call; 1 not drawn")
    agreed = Opinions(4, 0, 1.0, float("nan"), float("nan"))
    assert str(agreed).startswith("alpha of votes 1; ")
    nobody = opinions(frame.lazy().filter(pl.col("prompt_id") == 3), "judge_cares", frame.columns)
    assert (nobody.rollouts, nobody.settled) == (0, 0)
    assert "none differ" in str(nobody)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.lists(st.integers(0, 3), min_size=1)),
        min_size=1,
        max_size=12,
    )
)
def test_alpha_of_a_gate_is_that_of_all_votes_on_all_provisions(rollouts) -> None:
    rows, counts = [], []
    for prompt, valid, confirming in rollouts:
        yes = [min(count, valid) for count in confirming]
        counts += [[float(y), float(valid - y)] for y in yes]
        metrics = market_structure._agreement(Judgement(frozenset(), False, valid, tuple(yes)))
        votes = dict(
            zip(("judge_confirming", "judge_denying", "judge_apart"), metrics, strict=True)
        )
        rows.append({"prompt_id": prompt, "judge_gated": 1.0, "judge_error": 0.0, **votes})
    rows.append({"prompt_id": 9, "judge_gated": 0.0, "judge_error": 0.0})
    schema = dict.fromkeys(("judge_confirming", "judge_denying", "judge_apart"), pl.Float64)
    frame = pl.DataFrame(rows, schema_overrides=schema)
    found = gate(frame.lazy())
    assert (found.rollouts, found.errors) == (len(rollouts), 0)
    assert found.alpha == pytest.approx(of(np.array(counts)), nan_ok=True)
    (line,) = told_of(frame)
    assert line.startswith("judge: alpha of votes")


def told_of(frame: pl.DataFrame) -> list[str]:
    return told(frame.lazy(), frame.columns)
