"""Which generation an idle inference actor takes next: pure, so that laws can be tested."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence

from pipeline.records import Checkpoint, Work

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

    def back(self, works: Sequence[Work]) -> None:
        """Works that were taken and are owed again, before the others of their checkpoint."""
        for work in reversed(works):
            self._owed.setdefault(weights(work), deque()).appendleft(work)

    def take(
        self, current: Checkpoint | None, busy: Collection[Weights], most: int = 1
    ) -> list[Work]:
        """The next works for a worker whose engine holds `current`; none when nothing is owed.

        `busy` are the checkpoints that other workers are on. `most` adapters on one base share a
        batch; full checkpoints come alone, and so do parts of a generation.
        """
        first = self._choose(current, busy)
        if first is None:
            return []
        taken = [self._pop(first)]
        if taken[0].checkpoint.kind == "adapter" and taken[0].rows is None:
            while len(taken) < most and (more := self._beside(taken[0], busy)) is not None:
                taken.append(self._pop(more))
        return taken

    def ahead(self, current: Checkpoint, busy: Collection[Weights]) -> Checkpoint | None:
        """The checkpoint that a worker on `current` is likely to want after it."""
        others = {w: works for w, works in self._owed.items() if w != (current.path, current.base)}
        chosen = self._first(others, current, busy)
        return None if chosen is None else others[chosen][0].checkpoint

    def drop(self, checkpoint: Weights) -> list[Work]:
        """Take out all that a checkpoint still owes."""
        return list(self._owed.pop(checkpoint, ()))

    def _choose(self, current: Checkpoint | None, busy: Collection[Weights]) -> Weights | None:
        """What `current` owes; else as `_first`; else help where most is owed."""
        if current is not None and (current.path, current.base) in self._owed:
            return current.path, current.base
        longest = max(self._owed, key=lambda w: len(self._owed[w]), default=None)
        return self._first(self._owed, current, busy) or longest

    def _first(
        self,
        owed: dict[Weights, deque[Work]],
        current: Checkpoint | None,
        busy: Collection[Weights],
    ) -> Weights | None:
        """A checkpoint nobody is on, one of the live architecture before any other."""
        free = [w for w in owed if w not in busy]
        fits = (w for w in free if current and self._architecture(w) == current.architecture)
        return next(fits, free[0] if free else None)

    def _architecture(self, checkpoint: Weights) -> str:
        return self._owed[checkpoint][0].checkpoint.architecture

    def _beside(self, first: Work, busy: Collection[Weights]) -> Weights | None:
        """An adapter that can share the first work's batch."""
        mates = (
            w
            for w, works in self._owed.items()
            if w not in busy
            and works[0].checkpoint.kind == "adapter"
            and works[0].checkpoint.base == first.checkpoint.base
            and works[0].sampling == first.sampling
            and works[0].rows is None
        )
        return next(mates, None)

    def _pop(self, checkpoint: Weights) -> Work:
        works = self._owed[checkpoint]
        work = works.popleft()
        if not works:
            del self._owed[checkpoint]
        return work
