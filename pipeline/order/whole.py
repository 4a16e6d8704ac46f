"""A sweep that evaluates every checkpoint: all works of its plan in one round."""

from collections.abc import Collection

from pipeline.plan import Plan, owed
from pipeline.records import Failure, Work, Written
from pipeline.status import Searched


class Whole:
    """The same role as `adaptive.Adaptive`."""

    def __init__(self, plan: Plan, done: Collection[str]) -> None:
        self.so_far, self.workers = plan, 1
        self.done, self.failed = set(done), set[str]()
        self.searched: tuple[Searched, ...] = ()

    def hear(self, event: Written | Failure) -> None:
        own = self.failed if isinstance(event, Failure) else self.done
        own.add(event.partition.key)

    def works(self) -> list[Work]:
        """What is owed, and did not fail."""
        return owed(self.so_far.works, self.done | self.failed)

    @property
    def is_over(self) -> bool:
        return not self.works()

    def outlook(self) -> list[str]:
        """Nothing that the plan would not say."""
        return []
