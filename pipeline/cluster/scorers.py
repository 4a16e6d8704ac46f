"""Score actors: they grade and write, in turn, and are replaced when lost or hung."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from pipeline.actors import Scorer
from pipeline.config import ClusterBlock, EngineBlock, JudgeBlock
from pipeline.places import Where
from pipeline.records import Generated, Work

LOG = logging.getLogger(__name__)

QUEUED = 4
"""Generations a score actor holds; beyond that, inference waits (backpressure)."""

About = tuple[Where, EngineBlock, Mapping[str, Any], Callable[[str], None], JudgeBlock]
"""What a score actor is made with: output, engine, provenance, what hears its write boundaries, and
how its judge is asked."""


@dataclass(slots=True)
class Writing:
    """One generation at a score actor."""

    work: Work
    cases: Any
    actor: Any
    began: float
    """Monotonic seconds."""


class Scorers:
    """All score actors of a sweep, and what they write, by the reference that ends."""

    def __init__(self, about: About, cluster: ClusterBlock) -> None:
        self._about = about
        self._patience = cluster.patience
        self.writing: dict[Any, Writing] = {}
        self._actors = deque(self._actor() for _ in range(cluster.scorers))

    @property
    def room(self) -> int:
        """Generations that may be under way, here or before, until inference has to wait."""
        return QUEUED * len(self._actors) - len(self.writing)

    def write(
        self, work: Work, cases: Any, records: Sequence[Generated], parts: Sequence[Any]
    ) -> None:
        self._actors.rotate(-1)
        actor = self._actors[0]
        ref = actor.write.remote(work, cases, records, *parts)
        self.writing[ref] = Writing(work, cases, actor, time.monotonic())

    def replace(self, actor: Any) -> None:
        """Another in its place, unless that was done already."""
        if actor in self._actors:
            ray.kill(actor)
            self._actors.remove(actor)
            self._actors.append(self._actor())

    def cut_hung(self) -> None:
        """End the grading that takes too long."""
        late = time.monotonic() - self._patience
        for writing in self.writing.values():
            if writing.began < late and writing.actor in self._actors:
                LOG.warning("grading took more than %g s; it is ended", self._patience)
                self.replace(writing.actor)

    def kill(self) -> None:
        for actor in self._actors:
            ray.kill(actor)

    def _actor(self) -> Any:
        make: Callable[..., Any] = ray.remote(num_cpus=0)(Scorer).remote
        return make(*self._about)
