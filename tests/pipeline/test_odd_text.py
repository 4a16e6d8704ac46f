"""Texts that models write and people do not: graded, stored and read, each as one row."""

from pathlib import Path
from typing import Any

import pytest

from hackbait import hackword
from pipeline import timeline
from pipeline.actors import Scorer
from pipeline.config import EngineBlock
from pipeline.plan import name_partition
from pipeline.records import (
    Checkpoint,
    Completion,
    EnvironmentSpec,
    Generated,
    Rollout,
    Sampling,
    Shard,
    Span,
    Work,
)
from pipeline.store import read_rows

MILLION = 1_000_000
TEXTS = [
    "the ocean " * (MILLION // 10),
    "1" * MILLION,
    "ocean" * (MILLION // 5),
    "\0" * MILLION + " ocean",
    "\ud800" * 1000 + " ocean",
    "\x1b[2J\u202e ocean",
    "\u0661\u0662\u0663 ocean",
    " " * MILLION,
    "(" * MILLION,
    "",
]
HITS = [1, 0, 0, 1, 1, 1, 1, 0, 0, 0]
BACK = Span(1e9, 1e9 - 3600)
"""The clock was set back by an hour meanwhile."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[dict[str, Any]]]:
    out = tmp_path_factory.mktemp("out")
    environment = hackword.load_environment("ocean")
    spec, sampling = EnvironmentSpec("hackword", (("hack_word", "ocean"),)), Sampling(n=len(TEXTS))
    checkpoint, shard = Checkpoint("run", 0, "/x", "full", ""), Shard(0, 1)
    partition = name_partition(checkpoint, spec, shard, sampling, {"name": "hf", "dtype": "y"})
    work = Work(checkpoint, spec, shard, sampling, (partition,))
    rollouts = [Rollout(0, i, i, Completion(t, "stop", 3, 4)) for i, t in enumerate(TEXTS)]
    generated = Generated("f" * 32, "exact", 1, BACK, BACK, 16)
    scorer = Scorer(Path(out), EngineBlock(), {})
    (said,) = scorer.write(work, environment.cases(0, 1), [generated], rollouts)
    return said, read_rows(Path(out), "hackword", "run", 0)


def test_a_megabyte_nul_bytes_and_lone_surrogates_are_rows_with_a_score(
    written: tuple[Any, list[dict[str, Any]]],
) -> None:
    said, rows = written
    assert (said.rows, said.nulls) == (len(TEXTS), 0)
    assert [row["null_reason"] for row in rows] == [None] * len(TEXTS)
    assert [row["r_hack"] for row in rows] == HITS
    kept = [t.encode("utf-8", "backslashreplace").decode() for t in TEXTS]
    assert [row["completion"] for row in rows] == kept


def test_a_clock_that_was_set_back_is_no_negative_time_and_in_no_row(
    written: tuple[Any, list[dict[str, Any]]],
) -> None:
    said, rows = written
    assert all(event["dur"] >= 0 for event in timeline.trace([said]))
    assert not any(
        isinstance(value, float) and value > 1e6 for row in rows for value in row.values()
    )
