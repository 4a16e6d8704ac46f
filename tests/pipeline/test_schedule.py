"""Laws of the queue that inference actors take from."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import (
    Checkpoint,
    CheckpointKind,
    EnvironmentSpec,
    Sampling,
    Shard,
    Work,
)
from pipeline.schedule import Queue, Weights, weights

NOBODY: set[Weights] = set()


def work(step: int, start: int, kind: CheckpointKind = "script", shape: str = "") -> Work:
    at = Checkpoint("run", step, f"/ckpt/{step}", kind, f"id{step}", architecture=shape)
    return Work(at, EnvironmentSpec("hackword", ()), Shard(start, start + 1), Sampling(), ())


def take(queue: Queue, current: Work | None = None, busy: set[Weights] = NOBODY) -> Work | None:
    works = queue.take(current.checkpoint if current else None, busy)
    return works[0] if works else None


works = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True).map(
    lambda pairs: [work(step, start) for step, start in pairs]
)


@given(works, st.lists(st.integers(0, 5), max_size=40))
def test_every_work_is_taken_once_whoever_asks(owed: list[Work], currents: list[int]) -> None:
    queue = Queue(owed)
    asked = [take(queue, work(at, 0)) for at in [*currents, *([0] * len(owed))]]
    taken = [item for item in asked if item is not None]
    assert len(queue) == 0
    assert sorted(map(repr, taken)) == sorted(map(repr, owed))


@given(works.filter(bool))
def test_a_worker_stays_on_its_checkpoint_until_it_is_done(owed: list[Work]) -> None:
    queue = Queue(owed)
    order: list[Work] = []
    while (item := take(queue, order[-1] if order else None)) is not None:
        order.append(item)
    changes = sum(weights(a) != weights(b) for a, b in pairwise(order))
    assert changes == len({weights(item) for item in order}) - 1


@given(works.filter(bool))
def test_what_is_read_ahead_is_what_comes_next(owed: list[Work]) -> None:
    queue = Queue(owed)
    current = take(queue)
    assert current is not None
    expected = queue.ahead(current.checkpoint, busy=set())
    while (item := take(queue, current)) is not None:
        if weights(item) != weights(current):
            assert item.checkpoint == expected
            return
    assert expected is None


def test_a_second_worker_takes_a_checkpoint_of_its_own_and_helps_when_none_is_left() -> None:
    queue = Queue([work(0, 0), work(0, 1), work(0, 2), work(1, 0)])
    first = take(queue)
    assert first == work(0, 0)
    second = take(queue, busy={weights(first)})
    assert second == work(1, 0)
    assert take(queue, second, busy={weights(first)}) == work(0, 1)


def test_the_live_architecture_comes_before_any_other() -> None:
    queue = Queue([work(0, 0, shape="a"), work(1, 0, shape="b"), work(2, 0, shape="a")])
    first = take(queue)
    second = take(queue, first)
    assert second == work(2, 0, shape="a")
    assert take(queue, second) == work(1, 0, shape="b")


def test_adapters_on_one_base_share_a_batch_and_full_checkpoints_come_alone() -> None:
    queue = Queue([work(step, 0, kind="adapter") for step in range(5)])
    assert len(queue.take(None, set(), most=4)) == 4
    assert len(queue.take(None, set(), most=4)) == 1
    queue = Queue([work(step, 0, kind="full") for step in range(5)])
    assert len(queue.take(None, set(), most=4)) == 1


def test_dropping_a_checkpoint_returns_all_that_it_owed() -> None:
    queue = Queue([work(0, 0), work(1, 0), work(0, 1)])
    assert queue.drop(("/ckpt/0", None)) == [work(0, 0), work(0, 1)]
    assert queue.drop(("/ckpt/0", None)) == []
    assert len(queue) == 1
