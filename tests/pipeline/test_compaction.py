"""Compaction moves partitions and changes no row, wherever it is ended."""

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hackbait import hackword
from pipeline import compaction, contents, manifest, schema, store
from pipeline.compaction import compact
from pipeline.config import SweepConfig
from pipeline.holdings import holdings, settled
from pipeline.places import Where, where
from pipeline.plan import name_partition, plan
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
    Written,
)
from pipeline.rollout import score
from pipeline.rows import scan

SweepHere = Callable[..., list[Written]]


class Killed(BaseException):
    """The process ends here."""


def table(out: Where, environment: str = "hackword") -> pl.DataFrame:
    """All rows by our own scan, in one order of columns and rows."""
    rows = scan(store.row_files(out, environment)).collect()
    return rows.select(sorted(rows.columns)).sort("run", "step", "index", "sample", "hack_word")


def end_at(boundary: str, number: int = 1) -> Callable[[str], None]:
    """Ends a compaction as it passes a boundary for the n-th time."""
    left = [number]

    def at(name: str) -> None:
        left[0] -= name == boundary
        if name == boundary and not left[0]:
            raise Killed

    return at


def boundaries(out: Path) -> list[str]:
    seen: list[str] = []
    compact(out, seen.append)
    return seen


def test_rows_of_every_run_and_step_are_unchanged_and_in_one_file(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    sweep_here(small)
    out = small.output
    before, wanted = table(out), plan(small).partitions
    rows = store.read_rows(out, "hackword", "b\n../é", 10)
    about, identity = store.about(out), store.foreign(out, wanted[:1])
    done = compact(out)
    assert (done.partitions, done.rows, done.files) == (8, 48, 1)
    assert store.partition_files(out) == []
    assert len(store.row_files(out)) == 1
    assert table(out).equals(before)
    assert store.read_rows(out, "hackword", "b\n../é", 10) == rows
    assert store.about(out) == about
    assert store.done(out, wanted) == {p.key for p in wanted}
    assert store.foreign(out, wanted) == {}
    assert store.foreign(out, wanted[:1]) == identity != {}


def test_footers_stay_with_the_rows(small: SweepConfig, sweep_here: SweepHere) -> None:
    sweep_here(small)
    before = {h.key: f for h, f in _footers(small.output)}
    compact(small.output)
    assert {h.key: f for h, f in _footers(small.output)} == before


def _footers(out: Path) -> list[tuple[store.Held, dict[str, object]]]:
    held = holdings(out).held
    return list(zip(held, contents.footers(held), strict=True))


def test_a_second_compaction_takes_in_what_came_since_and_merges_small_files(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    works = plan(small).works
    sweep_here(small, works[:3])
    compact(small.output)
    sweep_here(small, works[3:])
    whole = table(small.output)
    assert compact(small.output).partitions == len(plan(small).partitions) - 3
    assert table(small.output).equals(whole)
    assert len(compaction.compacted_files(small.output)) == 1
    assert compact(small.output).files == 0


def test_files_are_cut_at_a_size_and_full_ones_are_left_alone(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    works = plan(small).works
    sweep_here(small, works[:2])
    assert compact(small.output, file_bytes=1).files == 2
    sweep_here(small, works[2:4])
    whole = table(small.output)
    done = compact(small.output, file_bytes=1)
    assert (done.files, done.left_out) == (2, 2)
    assert table(small.output).equals(whole)


def test_a_partition_lies_in_one_row_group_of_many_partitions(
    small: SweepConfig, sweep_here: SweepHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GROUP_ROWS", 10)
    sweep_here(small)
    before = table(small.output)
    compact(small.output)
    (path,) = store.row_files(small.output)
    groups = pq.ParquetFile(path)
    sizes = [groups.metadata.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sum(sizes) == 48
    assert all(10 <= size < 10 + 8 for size in sizes[:-1])
    assert table(small.output).equals(before)


def test_a_compaction_ended_anywhere_leaves_every_row_once_and_the_next_one_clears(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    names = ["begun", "cleared", "file staged", "file renamed", "manifest synced"]
    names += ["manifest renamed", "deleted", "ended"]
    for name, work in zip(names, plan(small).works, strict=True):
        sweep_here(small, [work])
        whole = table(small.output)
        with pytest.raises(Killed):
            compact(small.output, end_at(name))
        assert table(small.output).equals(whole)
        assert len(whole) == len(whole.unique(["run", "step", "index", "sample"]))
    compact(small.output)
    assert len(compaction.compacted_files(small.output)) == 1
    assert store.partition_files(small.output) == []
    assert list((small.output / "staging/compaction").iterdir()) == [
        small.output / "staging/compaction/lock"
    ]


def test_every_boundary_is_named(small: SweepConfig, sweep_here: SweepHere) -> None:
    sweep_here(small, plan(small).works[:2])
    put = ["staged", "synced", "renamed"]
    files = [f"{what} {name}" for what in ("file", "manifest") for name in put]
    assert boundaries(small.output) == ["begun", "cleared", *files, "deleted", "deleted", "ended"]


def test_two_compactions_at_a_time_are_refused(small: SweepConfig, sweep_here: SweepHere) -> None:
    sweep_here(small, plan(small).works[:2])
    refused = []

    def at(name: str) -> None:
        if name == "cleared":
            with pytest.raises(store.StoreError, match="another compaction is at it"):
                compact(small.output)
            refused.append(name)

    compact(small.output, at)
    assert refused


def test_it_goes_on_while_a_sweep_writes_and_a_sweep_that_begins_clears_none_of_its_files(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    works = plan(small).works
    sweep_here(small, works[:2])

    def at(name: str) -> None:
        if name == "file staged":
            with store.writing(small.output, ""):
                sweep_here(small, works[1:4])

    compact(small.output, at)
    assert store.done(small.output, plan(small).partitions) == {
        p.key for work in works[:4] for p in work.partitions
    }
    rows = table(small.output)
    assert len(rows) == len(rows.unique(["run", "step", "index", "sample"]))


def test_a_reader_whose_files_are_compacted_away_looks_again(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    sweep_here(small)
    looked: list[int] = []

    def look() -> int:
        listed = holdings(small.output)
        if not looked:
            compact(small.output)
        looked.append(len(listed.files))
        return scan(listed.files).collect().height

    assert settled(look) == 48
    assert looked == [8, 1]
    with pytest.raises(FileNotFoundError):
        settled(lambda: (small.output / "nothing").read_bytes())


def test_a_partition_that_was_changed_by_hand_is_not_compacted(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    sweep_here(small, plan(small).works[:1])
    (path,) = store.partition_files(small.output)
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.slice(0, len(rows) - 1), path)
    with pytest.raises(store.StoreError, match="changed after their commit"):
        compact(small.output)
    assert store.partition_files(small.output) == [path]


def test_a_stale_file_that_holds_the_only_copy_of_rows_is_never_deleted(
    small: SweepConfig, sweep_here: SweepHere, caplog: pytest.LogCaptureFixture
) -> None:
    works = plan(small).works
    sweep_here(small, works[:1])
    compact(small.output)
    (lost,) = compaction.compacted_files(small.output)
    (small.output / "compacted/manifest.json").unlink()
    sweep_here(small, works[1:2])
    compact(small.output)
    assert lost.exists()
    assert "rows of it are nowhere else" in caplog.text


def test_an_output_on_an_object_store_is_compacted_as_a_local_one(
    small: SweepConfig, sweep_here: SweepHere, bucket: str
) -> None:
    sweep_here(small)
    remote = small.model_copy(update={"output": where(f"{bucket}/out")})
    works = plan(remote).works
    sweep_here(remote, works[:5])
    compact(remote.output)
    for boundary, work in zip(("file put", "manifest put", "deleted"), works[5:], strict=True):
        sweep_here(remote, [work])
        with pytest.raises(Killed):
            compact(remote.output, end_at(boundary))
    assert table(remote.output).equals(table(small.output))
    assert compact(remote.output).files == 0
    assert store.partition_files(remote.output) == []
    assert len(compaction.compacted_files(remote.output)) == 1


def test_a_damaged_manifest_is_one_line_and_nothing_is_concluded_from_it(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    sweep_here(small, plan(small).works[:1])
    (small.output / "compacted").mkdir()
    for text in ("", "{", "[]", '{"version": 2}', '{"version": 1, "files": [{"name": "../x"}]}'):
        (small.output / "compacted/manifest.json").write_text(text)
        with pytest.raises(store.StoreError, match=r"manifest.json: .*; put back") as refused:
            store.done(small.output, [])
        assert "\n" not in str(refused.value)


names = st.text(st.characters(categories=["L", "N"], include_characters="%._-"), min_size=3)
parts = st.builds(manifest.Part, names, st.text(), *[st.integers(0, 2**31)] * 4)
entries = st.builds(manifest.Compacted, names, names, st.integers(0, 2**40), st.tuples(parts))
manifests = st.builds(
    manifest.Manifest, st.lists(entries, unique_by=lambda f: f.parts[0].key).map(tuple)
)


@settings(max_examples=30)
@given(manifests)
def test_a_manifest_is_read_as_it_was_written(said: manifest.Manifest) -> None:
    assert manifest.parse(manifest.dump(said)) == said


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["files", "version"]), inner),
)


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_no_manifest_and_no_other_error(content: bytes) -> None:
    with suppress(manifest.Damaged):
        assert isinstance(manifest.parse(content), manifest.Manifest)


def partitions() -> list[Partition]:
    engine = {"name": "x", "dtype": "float32"}
    spec = EnvironmentSpec("hackword", (("hack_word", "ocean"),))
    return [
        name_partition(
            Checkpoint(run, step, "/x", "full", "c"), spec, Shard(i, i + 1), Sampling(n=2), engine
        )
        for run in ("a", "b\n")
        for step in (0, 1)
        for i in (0, 1)
    ]


POOL = partitions()
HOME = hackword.load_environment("ocean")


@lru_cache
def rows_of(number: int) -> Any:
    partition = POOL[number]
    cases = HOME.cases(partition.shard.start, partition.shard.stop)
    ends = [Completion(f"{number} {sample} ocean", "stop", 1, 2) for sample in (0, 1)]
    rollouts = [Rollout(cases[0].index, s, s, end) for s, end in enumerate(ends)]
    return schema.table(
        HOME,
        cases,
        rollouts,
        score(HOME, cases, rollouts),
        sampling=Sampling(n=2),
        engine="x",
        dtype="float32",
        generated=Generated("f", "exact", 1, Span(0, 1), Span(1, 2), 2),
    )


MEMORY = Path("/dev/shm")
"""Where nothing waits for a disk: thousands of files are synced."""
BOUNDARIES = ["begun", "cleared", "ended", "deleted"] + [
    f"{what} {name}" for what in ("file", "manifest") for name in ("staged", "synced", "renamed")
]


class Output(RuleBasedStateMachine):
    """Commits, compactions that end anywhere and resumes, against the set of what was committed."""

    @initialize()
    def empty(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.out = Path(self.folder.name)
        self.committed: set[int] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    def _commit(self, number: int) -> None:
        store.commit(self.out, POOL[number], rows_of(number), HOME, {})
        self.committed.add(number)

    @rule(number=st.integers(0, len(POOL) - 1))
    def commit(self, number: int) -> None:
        self._commit(number)

    @rule()
    def resume(self) -> None:
        done = store.done(self.out, POOL)
        for number, partition in enumerate(POOL[:3]):
            if partition.key not in done:
                assert number not in self.committed
                self._commit(number)

    @rule(file_bytes=st.sampled_from([1, 30_000, 2**28]))
    def compact(self, file_bytes: int) -> None:
        if self.committed:
            compact(self.out, file_bytes=file_bytes)
            assert store.partition_files(self.out) == []

    @rule(
        boundary=st.sampled_from(BOUNDARIES),
        number=st.integers(1, 2),
        file_bytes=st.sampled_from([1, 30_000, 2**28]),
    )
    def compact_and_end(self, boundary: str, number: int, file_bytes: int) -> None:
        if self.committed:
            with suppress(Killed):
                compact(self.out, end_at(boundary, number), file_bytes)

    @rule(number=st.integers(0, len(POOL) - 1), boundary=st.sampled_from(BOUNDARIES))
    def commit_while_compacting(self, number: int, boundary: str) -> None:
        if self.committed:
            compact(self.out, lambda name: self._commit(number) if name == boundary else None)

    @invariant()
    def the_table_is_the_model(self) -> None:
        keys = {POOL[number].key for number in self.committed}
        assert store.done(self.out, POOL) == keys
        found = holdings(self.out)
        assert {held.key: len(contents.read(held)) for held in found.held} == dict.fromkeys(keys, 2)
        wanted = sorted(f"{number} {s} ocean" for number in self.committed for s in (0, 1))
        if found.files:
            rows = scan(found.files).collect()
            assert sorted(rows["completion"]) == wanted
            place = {(POOL[int(c.split()[0])].run, POOL[int(c.split()[0])].step) for c in wanted}
            assert set(rows.select("run", "step").iter_rows()) == place


TestOutput = Output.TestCase
TestOutput.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)
