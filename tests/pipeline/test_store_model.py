"""The store against a model: any order of commits, kills at write boundaries and relaunches."""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hackbait import hackword
from pipeline import schema, store
from pipeline.plan import name_partition
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

ENVIRONMENT = hackword.load_environment("ocean")
SAMPLING = Sampling(n=1)
BEFORE, AFTER = ("begun", "staged", "synced"), ("renamed", "committed")
RUNS, STEPS, SHARDS = ("a", "b/../c"), (0, 5), (Shard(0, 2), Shard(2, 4))


def named(run: str, step: int, shard: Shard) -> Partition:
    spec = EnvironmentSpec("hackword", (("hack_word", "ocean"),))
    checkpoint = Checkpoint(run, step, "/x", "full", "c" * 32)
    return name_partition(checkpoint, spec, shard, SAMPLING, {"name": "x", "dtype": "y"})


PARTITIONS = [named(run, step, shard) for run in RUNS for step in STEPS for shard in SHARDS]
partitions = st.sampled_from(PARTITIONS)
texts = st.sampled_from(["the ocean", "", "NUL \0", "\ud83d", "x" * 100_000])


class Killed(BaseException):
    """The process ended here."""


def rows(partition: Partition, text: str) -> object:
    shard = partition.shard
    cases = ENVIRONMENT.cases(shard.start, shard.stop)
    rollouts = [Rollout(c.index, 0, c.index, Completion(text, "stop", 1, 1)) for c in cases]
    return schema.table(
        ENVIRONMENT,
        cases,
        rollouts,
        score(ENVIRONMENT, cases, rollouts),
        sampling=SAMPLING,
        engine="x",
        dtype="y",
        generated=Generated("f" * 32, "exact", 1, Span(0, 1), Span(1, 2), 2),
    )


class Store(RuleBasedStateMachine):
    """`held` is what a reader has to find: text by partition."""

    def __init__(self) -> None:
        super().__init__()
        self.out = Path(tempfile.mkdtemp())
        self.held: dict[str, str] = {}
        self.left = False
        """Whether a killed process left something in staging."""

    def teardown(self) -> None:
        shutil.rmtree(self.out)

    def commit(self, partition: Partition, text: str, killed_at: str = "") -> None:
        staging = self.out / "staging"
        remains: dict[Path, bytes] = {}

        def at(name: str) -> None:
            if name == killed_at:
                remains.update((p, p.read_bytes()) for p in staging.glob("*.*"))
                raise Killed

        with suppress(Killed):
            store.commit(self.out, partition, rows(partition, text), ENVIRONMENT, {}, at)
        for path, content in remains.items():  # a process that is killed cleans up nothing
            path.write_bytes(content)
        self.left |= bool(remains)
        if killed_at not in BEFORE:
            self.held[partition.key] = text

    @rule(partition=partitions, text=texts)
    def write(self, partition: Partition, text: str) -> None:
        self.commit(partition, text)

    @rule(partition=partitions, text=texts)
    def write_twice(self, partition: Partition, text: str) -> None:
        self.commit(partition, text)
        path = store.partition_path(self.out, partition)
        assert isinstance(path, Path)
        before = path.read_bytes()
        self.commit(partition, text)
        assert path.read_bytes() == before

    @rule(partition=partitions, text=texts, boundary=st.sampled_from(BEFORE + AFTER))
    def is_killed(self, partition: Partition, text: str, boundary: str) -> None:
        self.commit(partition, text, boundary)

    @rule()
    def relaunch(self) -> None:
        with store.writing(self.out, "a = 1"):
            assert [p.name for p in (self.out / "staging").iterdir()] == ["lock"]
            self.left = False

    @rule(partition=partitions)
    def a_file_is_deleted(self, partition: Partition) -> None:
        path = store.partition_path(self.out, partition)
        assert isinstance(path, Path)
        path.unlink(missing_ok=True)
        self.held.pop(partition.key, None)

    @invariant()
    def readers_find_what_is_held_and_no_more(self) -> None:
        assert store.done(self.out, PARTITIONS) == self.held.keys()
        assert {p.name for p in store.partition_files(self.out)} == {
            f"{key}.parquet" for key in self.held
        }
        assert store.foreign(self.out, PARTITIONS) == {}
        assert self.left or not list((self.out / "staging").glob("*.*"))

    @invariant()
    def rows_are_those_last_written(self) -> None:
        for run in RUNS:
            for step in STEPS:
                own = [p for p in PARTITIONS if (p.run, p.step) == (run, step)]
                texts = [t for p in own if (t := self.held.get(p.key)) is not None for _ in "12"]
                if not texts:
                    with pytest.raises(store.StoreError, match="no rows of run"):
                        store.read_rows(self.out, "hackword", run, step)
                    continue
                found = store.read_rows(self.out, "hackword", run, step)
                assert [row["completion"] for row in found] == [schema._utf8(t) for t in texts]


Store.TestCase.settings = settings(max_examples=20, stateful_step_count=10)
test_any_history_leaves_what_was_committed = Store.TestCase
