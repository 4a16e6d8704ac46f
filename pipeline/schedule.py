"""Which generation an idle inference actor takes next: pure, so that laws can be tested."""

from collections import deque
from collections.abc import Collection, Iterable

from pipeline.records import Work

Weights = tuple[str, str | None]
"""What an engine has loaded: path and base of a checkpoint."""


def weights(work: Work) -> Weights:
    return work.checkpoint.path, work.checkpoint.base


class Queue:
    """Works by checkpoint, in order. A worker stays on a checkpoint until its shards are done."""

    def __init__(self, works: Iterable[Work] = ()) -> None:
        self._owed: dict[Weights, deque[Work]] = {}
        for work in works:
            self.put(work)

    def __len__(self) -> int:
        return sum(len(works) for works in self._owed.values())

    def put(self, work: Work) -> None:
        self._owed.setdefault(weights(work), deque()).append(work)

    def take(self, current: Weights | None, busy: Collection[Weights]) -> Work | None:
        """Next work of `current`; else of a checkpoint nobody is on; else of the longest queue."""
        if not self._owed:
            return None
        if current is not None and current in self._owed:
            chosen = current
        else:
            free = (w for w in self._owed if w not in busy)
            chosen = next(free, max(self._owed, key=lambda w: len(self._owed[w])))
        works = self._owed[chosen]
        work = works.popleft()
        if not works:
            del self._owed[chosen]
        return work

    def drop(self, checkpoint: Weights) -> list[Work]:
        """Take out all that a checkpoint still owes."""
        return list(self._owed.pop(checkpoint, ()))
