"""Each text of an output counts once, whatever it was graded for and whoever shares it."""

from typing import Any

import polars as pl
import pytest

from pipeline.rows import CurveError
from pipeline.sample import samples
from pipeline.screening import placed, screen

PLACE = {"run": "a", "step": 0, "task": "story", "max_tokens": 32}
IDENTITY = ("task", "hack_word", "grader", "max_tokens")
GRADE = ("hack_word", "grader")


def row(index: int, text: str | None, **other: Any) -> dict[str, Any]:
    usual = {**PLACE, "hack_word": "ocean", "grader": "current", "fingerprint": "f", "sample": 0}
    null = {"null_reason": None if text else "quarantined"}
    return {**usual, "index": index, "prompt_id": index, "completion": text, **null, **other}


def test_words_and_runs_that_share_a_sample_count_it_once_and_other_asks_stand_apart() -> None:
    rows = [row(i, f"x{i}", hack_word=w, run=r) for i in (1, 0) for w in "pq" for r in "ab"]
    rows += [
        row(0, "other", task="sums"),
        row(0, "later", step=3),
        row(0, None, fingerprint="g", run="c"),
    ]
    first, second, third = samples(pl.LazyFrame(rows), IDENTITY, GRADE)
    assert (first.place, first.runs, first.texts) == (PLACE, 2, ("x0", "x1"))
    assert (second.place["task"], second.texts) == ("sums", ("other",))
    assert (third.place["run"], third.texts, third.reasons) == ("c", (), ("quarantined",))
    (later,) = samples(pl.LazyFrame(rows), IDENTITY, GRADE, step=3)
    assert later.texts == ("later",)
    with pytest.raises(CurveError, match="no run has step 7; there are 0, 3"):
        samples(pl.LazyFrame(rows), IDENTITY, GRADE, step=7)
    assert first.holds_for == "task=story, max_tokens=32 and 2 prompts"
    table = placed([(one, screen(one, ["x0", "later"])) for one in (first, second)])
    assert table["task"].to_list() == ["story", "story", "sums", "sums"]


def test_a_grader_that_failed_under_one_word_loses_nothing_under_another() -> None:
    failed = {"hack_word": "p", "null_reason": "grader: boom"}
    (found,) = samples(pl.LazyFrame([row(0, "x", **failed), row(0, "x")]), IDENTITY, GRADE)
    assert (found.texts, found.reasons) == (("x",), ())


def test_two_weights_and_two_graders_are_refused() -> None:
    rows = pl.LazyFrame([row(0, "x"), row(1, "x", fingerprint="g")])
    with pytest.raises(CurveError, match="two different weights answered, fingerprints f and g"):
        samples(rows, IDENTITY, GRADE)
    rows = pl.LazyFrame([row(0, "x"), row(0, "x", grader="assay-0.1.0")])
    (found,) = samples(rows, IDENTITY, GRADE)
    with pytest.raises(CurveError, match="name one: --grader assay"):
        screen(found, ["ocean"])
    with pytest.raises(CurveError, match="'mine' is none of current, assay"):
        screen(found, ["ocean"], grader="mine")
    assert screen(found, ["x"], grader="assay-0.1.0").words["hits"].item() == 1
