"""A full sweep is one round: what is owed, less what failed in it."""

from pipeline.config import SweepConfig
from pipeline.order.whole import Whole
from pipeline.plan import plan
from pipeline.records import Failure


def test_everything_is_wanted_once(small: SweepConfig) -> None:
    wanted = plan(small)
    order = Whole(wanted, set())
    assert order.works() == list(wanted.works)
    assert order.so_far == wanted
    assert order.searched == ()
    order.hear(Failure(wanted.partitions[0], "torn"))
    assert {p.key for work in order.works() for p in work.partitions} == {
        p.key for p in wanted.partitions[1:]
    }
    assert Whole(wanted, {p.key for p in wanted.partitions}).is_over
