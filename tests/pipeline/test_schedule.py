"""Laws of the queue that inference actors take from."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import Checkpoint, EnvironmentSpec, Sampling, Shard, Work
from pipeline.schedule import Queue, weights


def work(step: int, start: int) -> Work:
    checkpoint = Checkpoint("run", step, f"/ckpt/{step}", "script", f"id{step}")
    spec = EnvironmentSpec("hackword", ())
    return Work(checkpoint, spec, Shard(start, start + 1), Sampling(), ())


works = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True).map(
    lambda pairs: [work(step, start) for step, start in pairs]
)


@given(works, st.lists(st.integers(0, 5), max_size=40))
def test_every_work_is_taken_once_whoever_asks(owed: list[Work], currents: list[int]) -> None:
    queue = Queue(owed)
    taken = []
    for current in [*currents, *([0] * len(owed))]:
        item = queue.take((f"/ckpt/{current}", None), busy=set())
        if item is not None:
            taken.append(item)
    assert len(queue) == 0
    assert sorted(map(repr, taken)) == sorted(map(repr, owed))


@given(works.filter(bool))
def test_a_worker_stays_on_its_checkpoint_until_it_is_done(owed: list[Work]) -> None:
    queue = Queue(owed)
    order = []
    current = None
    while (item := queue.take(current, busy=set())) is not None:
        current = weights(item)
        order.append(current)
    changes = sum(a != b for a, b in pairwise(order))
    assert changes == len(set(order)) - 1


def test_a_second_worker_takes_a_checkpoint_of_its_own_and_helps_when_none_is_left() -> None:
    queue = Queue([work(0, 0), work(0, 1), work(0, 2), work(1, 0)])
    first = queue.take(None, busy=set())
    assert first == work(0, 0)
    assert queue.take(None, busy={weights(first)}) == work(1, 0)
    assert queue.take(("/ckpt/1", None), busy={weights(first)}) == work(0, 1)


def test_dropping_a_checkpoint_returns_all_that_it_owed() -> None:
    queue = Queue([work(0, 0), work(1, 0), work(0, 1)])
    assert queue.drop(("/ckpt/0", None)) == [work(0, 0), work(0, 1)]
    assert queue.drop(("/ckpt/0", None)) == []
    assert len(queue) == 1
