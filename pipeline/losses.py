"""What becomes of a generation whose engine was lost: asked again, halved, or its row condemned.

Pure, so that laws can be tested. One rollout may end any engine that meets it, and so may a
checkpoint; most losses are the world's, and no rollout's fault.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.records import Work
from pipeline.schedule import Weights, weights

ATTEMPTS = 3
"""Times that a generation, or one rollout alone, is tried."""
SUSPECTS = 2
"""Rollouts that end every engine before any of their checkpoint's was answered: its own fault."""
CONDEMNED = 8
"""Rollouts of one generation that may be condemned; beyond that it is given up."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done; all empty means that the generation is given up, and stays owed."""

    again: Sequence[Work] = ()
    """Parts to be asked, the first of them first."""
    condemned: bool = False
    """Whether the rollout is to be null from now on."""


class Losses:
    """Counts who was in flight when engines were lost."""

    def __init__(self) -> None:
        self._deaths: Counter[tuple[str, range]] = Counter()
        self._passing: Counter[str] = Counter()
        self._condemned: Counter[str] = Counter()
        self._suspects: Counter[Weights] = Counter()
        self._answered: set[Weights] = set()

    def answered(self, work: Work) -> None:
        """An engine came back with it: the checkpoint can be generated from."""
        self._answered.add(weights(work))

    def passed(self, work: Work) -> Verdict:
        """A reason that no rollout has a part in, as a hang or a busy server: again, or give up."""
        self._passing[name(work)] += 1
        return Verdict([work] if self._passing[name(work)] < ATTEMPTS else [])

    def died(self, work: Work) -> Verdict:
        """Its engine died, or raised, with this work alone in flight.

        A whole generation is tried three times, then a half at a time down to a single rollout,
        which is condemned after three deaths with it alone. Until a checkpoint has answered at
        all, single rollouts are tried apart, so that its own fault shows in few deaths.
        """
        rows = work.every_row if work.rows is None else work.rows
        key = name(work), rows
        self._deaths[key] += 1
        tried = ATTEMPTS if len(rows) in (1, len(work.every_row)) else 1
        if self._deaths[key] < tried:
            return Verdict([replace(work, rows=rows)])
        if len(rows) > 1:
            middle = len(rows) // 2 if weights(work) in self._answered else 1
            return Verdict([replace(work, rows=part) for part in (rows[:middle], rows[middle:])])
        return self._condemn(work)

    def _condemn(self, work: Work) -> Verdict:
        self._condemned[name(work)] += 1
        self._suspects[weights(work)] += 1
        sound = weights(work) in self._answered or self._suspects[weights(work)] < SUSPECTS
        return Verdict(condemned=sound and self._condemned[name(work)] <= CONDEMNED)


def alone(work: Work) -> Work:
    """The work, to share its batch with no other."""
    return replace(work, rows=work.every_row if work.rows is None else work.rows)


def name(work: Work) -> str:
    """Of the generation that a work is all or a part of."""
    return work.partitions[0].key
