"""Partitions appear whole, hold the golden schema, and every reader sees the same rows."""

import json
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from hackbait import hackword
from pipeline import contents, files, lease, schema, store
from pipeline.places import Where, where
from pipeline.plan import build, name_partition
from pipeline.records import (
    Checkpoint,
    Completion,
    EnvironmentSpec,
    Generated,
    Partition,
    Rollout,
    Sampling,
    Shard,
    Span,
)
from pipeline.rollout import score

GOLDEN = {
    "env_version": "string",
    "task": "string",
    "seed": "int64",
    "hack_word": "string",
    "mode": "string",
    "grader": "string",
    "grader_fingerprint": "string",
    "temperature": "double",
    "top_p": "double",
    "top_k": "int32",
    "max_tokens": "int32",
    "sweep_seed": "int64",
    "engine": "string",
    "dtype": "string",
    "determinism": "string",
    "fingerprint": "string",
    "index": "int32",
    "sample": "int32",
    "sampling_seed": "int64",
    "prompt_id": "int64",
    "prompt": "string",
    "truth": "string",
    "completion": "string",
    "reasoning": "string",
    "finish_reason": "string",
    "prompt_tokens": "int32",
    "completion_tokens": "int32",
    "null_reason": "string",
    "r_hack": "double",
    "r_true": "double",
    "reward": "double",
}
TEXTS = ["the ocean", "1045 \ud83d lone", "NUL \0 inside", None]


def partition(run: str = "a/../b \u6d77", step: int = 4) -> Partition:
    checkpoint = Checkpoint(run, step, "/nowhere", "full", "c" * 32)
    spec = EnvironmentSpec("hackword", (("hack_word", "ocean"),))
    return name_partition(checkpoint, spec, Shard(0, 2), Sampling(n=2), {"name": "x", "dtype": "y"})


def write(out: Where, where: Partition, at: Callable[[str], None] = files.no_boundary) -> int:
    environment = hackword.load_environment("ocean")
    cases = environment.cases(0, 2)
    rollouts = [
        Rollout(i // 2, i % 2, i, Completion(t, "stop", 3, 4, None if t else "engine_died"))
        for i, t in enumerate(TEXTS)
    ]
    rows = schema.table(
        environment,
        cases,
        rollouts,
        score(environment, cases, rollouts),
        sampling=Sampling(n=2),
        engine="x",
        dtype="y",
        generated=Generated("f" * 32, "exact", 1, Span(0, 1), Span(1, 2), 16),
    )
    return store.commit(out, where, rows, environment, {"versions": {"pyarrow": "26"}}, at)


def test_the_schema_is_the_golden_one(tmp_path: Path) -> None:
    write(tmp_path, partition())
    (path,) = store.partition_files(tmp_path)
    schema = pq.read_schema(path)
    assert {field.name: str(field.type) for field in schema} == GOLDEN


def test_a_partition_is_one_row_group_and_its_footer_tells_what_made_it(tmp_path: Path) -> None:
    where = partition()
    write(tmp_path, where)
    (path,) = store.partition_files(tmp_path)
    assert pq.ParquetFile(path).num_row_groups == 1
    footer = contents.read_footer(path)
    assert footer["identity"] == json.loads(where.identity)
    assert footer["metrics"] == {"r_hack": "binary", "r_true": "binary"}
    assert footer["versions"] == {"pyarrow": "26"}


def test_polars_duckdb_and_pandas_read_the_folder_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, partition())
    write(tmp_path, partition("plain", 10))
    folder = tmp_path / "rollouts" / "hackword"
    by_polars = pl.read_parquet(folder)
    by_duckdb = duckdb.sql(
        f"select * from read_parquet('{folder}/**/*.parquet', hive_partitioning=true)"
    ).pl()
    by_pandas = pd.read_parquet(folder)
    for rows in (by_polars, by_duckdb):
        assert sorted(rows["step"].to_list()) == [4] * 4 + [10] * 4
        assert set(rows["run"].to_list()) == {"a/../b \u6d77", "plain"}
        assert rows["r_hack"].null_count() == 2
    assert sorted(by_pandas["step"].astype(int)) == [4] * 4 + [10] * 4
    assert by_pandas["completion"].isna().sum() == 2


def test_odd_text_is_kept_or_escaped_but_never_an_error(tmp_path: Path) -> None:
    write(tmp_path, partition())
    rows = store.read_rows(tmp_path, "hackword", partition().run, 4)
    assert [row["completion"] for row in rows] == [
        "the ocean",
        "1045 \\ud83d lone",
        "NUL \0 inside",
        None,
    ]
    assert rows[3]["null_reason"] == "engine_died"
    assert rows[3]["r_hack"] is None


def test_no_run_name_escapes_the_output_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("..", "../../x", "/etc", "a\nb", "\u0000", "."):
        write(out, partition(name))
    written = {p.resolve() for p in tmp_path.rglob("*.parquet")}
    assert len(written) == 6
    assert all(out / "rollouts" / "hackword" in p.parents for p in written)


def test_writing_a_partition_twice_leaves_one_file_and_nothing_staged(tmp_path: Path) -> None:
    first = write(tmp_path, partition())
    assert write(tmp_path, partition()) == first
    assert len(store.partition_files(tmp_path)) == 1
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_commit_that_cannot_be_placed_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "rollouts").write_text("a file where a folder should be")
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        write(tmp_path, partition())
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_full_disk_is_an_error_of_the_system_and_leaves_no_torn_file(tmp_path: Path) -> None:
    write(tmp_path, partition("before"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(tmp_path, partition("after"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.parent.parent.name for p in store.partition_files(tmp_path)] == ["run=before"]
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_second_sweep_on_one_output_is_refused_and_a_killed_one_leaves_it_free(
    tmp_path: Path,
) -> None:
    with (
        store.writing(tmp_path, "a = 1"),
        pytest.raises(store.StoreError, match="another sweep writes there now"),
        store.writing(tmp_path, "a = 2"),
    ):
        pass
    (tmp_path / "staging" / "torn.parquet").write_bytes(b"PAR1")
    with store.writing(tmp_path, "a = 3"):
        assert [p.name for p in (tmp_path / "staging").iterdir()] == ["lock"]
        (tmp_path / "staging" / "of_a_killed_score_actor.parquet").write_bytes(b"PAR1")
    assert [p.name for p in (tmp_path / "staging").iterdir()] == ["lock"]
    assert (tmp_path / "config.toml").read_text() == "a = 3"


def test_tags_of_runs_are_kept_when_others_are_swept_later(tmp_path: Path) -> None:
    assert store.run_tags(tmp_path) == {}
    store.tell_runs(tmp_path, {"a": {"word": "ocean", "seed": 0}, "b": {"seed": 1}})
    store.tell_runs(tmp_path, {"b": {"seed": 2}, "\udcff": {}})
    assert store.run_tags(tmp_path) == {
        "a": {"word": "ocean", "seed": 0},
        "b": {"seed": 2},
        "\udcff": {},
    }
    (tmp_path / "runs.json").write_bytes(b"\xff")
    with pytest.raises(store.StoreError, match=r"runs\.json is damaged; delete it"):
        store.tell_runs(tmp_path, {})


def test_done_and_foreign_come_from_the_files_alone(tmp_path: Path) -> None:
    here, other = partition(), partition("plain", 10)
    write(tmp_path, here)
    assert store.done(tmp_path, [here, other]) == {here.key}
    assert store.foreign(tmp_path, [here]) == {}
    spec = EnvironmentSpec("hackword", (("hack_word", "midnight"),))
    rival = name_partition(
        Checkpoint(here.run, here.step, "/x", "full", "c" * 32),
        spec,
        here.shard,
        Sampling(n=2),
        {"name": "x", "dtype": "y"},
    )
    (identity,) = store.foreign(tmp_path, [rival]).values()
    assert identity["grade"]["hack_word"] == "ocean"
    assert build(spec).grade["hack_word"] == "midnight"


def test_an_output_without_rows_or_with_an_unknown_step_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(store.StoreError, match="no partition"):
        store.about(tmp_path)
    write(tmp_path, partition())
    with pytest.raises(store.StoreError, match=r"its steps are \[4\]"):
        store.read_rows(tmp_path, "hackword", partition().run, 5)
    with pytest.raises(store.StoreError, match="none of hackword"):
        store.about(tmp_path, "market_structure")


def test_a_store_far_away_holds_what_a_folder_here_holds(bucket: str, tmp_path: Path) -> None:
    out = where(f"{bucket}/sweeps/a=1")
    names = [partition(), partition("plain", 10)]
    for one in names:
        assert write(out, one) == write(tmp_path, one)
    pairs = zip(store.partition_files(out), store.partition_files(tmp_path), strict=True)
    for far, here in pairs:
        assert str(far).removeprefix(str(out)) == str(here).removeprefix(str(tmp_path))
        assert files.read_bytes(far) == files.read_bytes(here)
        assert contents.read_footer(far) == contents.read_footer(here)
    assert store.done(out, names) == {p.key for p in names}
    assert store.foreign(out, names) == {}
    assert store.foreign(out, names[:1]) == dict.fromkeys(
        [store.partition_path(out, names[1])], json.loads(names[1].identity)
    )
    assert store.about(out) == store.about(tmp_path)
    assert store.about(out).environment == "hackword"
    rows = store.read_rows(out, "hackword", names[0].run, 4)
    assert rows == store.read_rows(tmp_path, "hackword", names[0].run, 4)
    with pytest.raises(store.StoreError, match=r"its steps are \[4\]"):
        store.read_rows(out, "hackword", partition().run, 5)
    with pytest.raises(store.StoreError, match="no partition"):
        store.about(where(f"{bucket}/empty"))


def test_a_listing_that_lags_hides_no_partition(store_server: Any, bucket: str) -> None:
    out = where(f"{bucket}/out")
    with store.writing(out, "a = 1"):
        write(out, partition())
    store_server.first(10**6, "hidden", "^GET .*list-type")
    assert store.partition_files(out) == []
    assert store.done(out, [partition(), partition("plain", 10)]) == {partition().key}


def test_a_second_sweep_on_a_store_is_refused_too(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "held", partial(lease.held, renewal=1.0))
    out = where(f"{bucket}/out")
    with (
        store.writing(out, "a = 1"),
        pytest.raises(store.StoreError, match="another sweep writes there now"),
        store.writing(out, "a = 2"),
    ):
        pass
    assert files.read_bytes(out / "config.toml") == b"a = 1"


@pytest.mark.parametrize("far", [False, True])
def test_a_commit_says_where_it_is_and_is_whole_or_not_there(
    far: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    out = where(request.getfixturevalue("bucket") + "/out") if far else tmp_path
    said: list[str] = []
    write(out, partition(), said.append)
    between = ["put"] if far else ["staged", "synced", "renamed"]
    assert said == ["begun", *between, "committed"]
    for name in said:

        def end(here: str, wanted: str = name) -> None:
            if here == wanted:
                raise InterruptedError(here)

        one = partition(name)
        with pytest.raises(InterruptedError):
            write(out, one, end)
        there = name in ("renamed", "put", "committed")
        assert store.done(out, [one]) == ({one.key} if there else set())
        write(out, one)
        assert store.done(out, [one]) == {one.key}
    assert far or list((tmp_path / "staging").iterdir()) == []
