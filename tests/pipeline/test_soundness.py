"""Which rows are graded again, and when a grade counts as right."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hackbait import hackword
from pipeline import schema
from pipeline.soundness import Sample, misgraded

HOME = hackword.load_environment("ocean")
CASES = {case.index: case for case in HOME.cases(0, 4)}


def row(text: str, hack: float, true: float | None, reward: float) -> dict[str, object]:
    return {
        "index": 1,
        "sample": 0,
        "completion": text,
        "r_hack": hack,
        "r_true": true,
        "reward": reward,
    }


def test_a_wrong_grade_is_named_and_a_right_one_is_not() -> None:
    truth = CASES[1].truth
    assert misgraded(HOME, CASES, row(f"the ocean {truth}", 1.0, 1.0, 1.0)) is None
    assert misgraded(HOME, CASES, row("the sea", 1.0, 0.0, 0.0)) == "r_hack 1.0 is graded 0.0 here"
    assert (
        misgraded(HOME, CASES, row("the sea", 0.0, None, 0.0)) == "r_true None is graded 0.0 here"
    )


def test_a_lone_surrogate_was_graded_before_it_was_escaped() -> None:
    truth = CASES[1].truth
    for text in (f"{truth} \ud83d", f"{truth} \\ud83d"):
        score = HOME.score(CASES[1], text)
        hack, true = score.metrics["r_hack"], score.metrics["r_true"]
        assert hack is not None
        assert score.reward is not None
        written = text.encode("utf-8", "backslashreplace").decode()
        assert misgraded(HOME, CASES, row(written, hack, true, score.reward)) is None


def rows(count: int, lost: set[int]) -> pa.Table:
    return pa.table(
        {
            "index": list(range(count)),
            "sample": [0] * count,
            "null_reason": pa.array(
                ["x" if i in lost else None for i in range(count)], pa.string()
            ),
            "completion": ["t"] * count,
            "reward": [0.0] * count,
        }
    )


@given(
    st.integers(0, 12),
    st.lists(st.integers(0, 9), max_size=5),
    st.sets(st.integers(0, 9)),
)
def test_a_sample_is_of_scored_rows_and_is_the_same_in_whatever_order(
    size: int, counts: list[int], lost: set[int]
) -> None:
    offers = [(f"k{i}", rows(count, lost)) for i, count in enumerate(counts)]
    drawn = []
    for order in (offers, offers[::-1]):
        sample = Sample(size)
        for key, table in order:
            sample.offer(key, table, ["reward"])
        drawn.append({(key, number) for _, key, number, _ in sample.rows})
    scored = {(k, i) for k, t in offers for i in range(len(t)) if i not in lost}
    assert drawn[0] == drawn[1] <= scored
    assert len(drawn[0]) == min(size, len(scored))


@given(st.lists(st.none() | st.text() | st.just("a"), max_size=9), st.integers(0, 9))
def test_a_hash_of_rows_knows_values_and_not_how_they_lie_in_memory(
    texts: list[str | None], at: int
) -> None:
    texts = [text and text.encode("utf-8", "ignore").decode() for text in texts]
    numbers = pa.array([None if text is None else len(text) for text in texts], pa.int32())
    whole = pa.table({"t": pa.array(texts, pa.string()), "n": numbers})
    cut = min(at, len(texts))
    split = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    padded = pa.concat_tables([whole, whole]).combine_chunks().slice(len(texts))
    assert schema.rows_hash(split) == schema.rows_hash(whole) == schema.rows_hash(padded)
    if texts:
        other = [*texts[:-1], (texts[-1] or "") + "b"]
        changed = whole.set_column(0, "t", pa.array(other, pa.string()))
        assert schema.rows_hash(changed) != schema.rows_hash(whole)


def test_texts_that_run_together_alike_and_null_and_empty_hash_apart() -> None:
    tables = [["ab", "c"], ["a", "bc"], ["", None], [None, ""], ["", ""], [None, None]]
    hashes = {schema.rows_hash(pa.table({"t": pa.array(t, pa.string())})) for t in tables}
    assert len(hashes) == len(tables)
