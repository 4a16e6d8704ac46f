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
from pipeline.judging import Answers
from pipeline.places import Where
from pipeline.records import Generated, Work

LOG = logging.getLogger(__name__)

QUEUED = 4
"""Generations a score actor holds; beyond that, inference waits (backpressure)."""

About = tuple[
    Where, EngineBlock, Mapping[str, Any], Callable[[str], None], JudgeBlock, Answers | None
]
"""What a score actor is made with: output, engine, provenance, what hears its write boundaries, how
its judge is asked, and what answers where that is an engine of the sweep."""


@dataclass(slots=True)
class Writing:
    """One generation at a score actor."""

    work: Work
    cases: Any
    actor: Any


class Scorers:
    """All score actors of a sweep, and what they write, by the reference that ends."""

    def __init__(self, about: About, cluster: ClusterBlock) -> None:
        self._about = about
        self._patience = cluster.patience
        self.writing: dict[Any, Writing] = {}
        self._moved: dict[Any, float] = {}
        """When each busy actor last began or ended something, monotonic seconds."""
        self._actors = deque(self._actor() for _ in range(cluster.scorers))

    @property
    def room(self) -> int:
        """Generations that may be under way, here or before, until inference has to wait."""
        return QUEUED * len(self._actors) - len(self.writing)

    def write(
        self, work: Work, cases: Any, records: Sequence[Generated], parts: Sequence[Any]
    ) -> None:
        actor = self._next()
        self._begun(actor.finish.remote(work, cases, records, *parts), Writing(work, cases, actor))

    def resume(self, work: Work, cases: Any) -> None:
        """Write what an earlier launch kept; None comes of it where that is of no use."""
        actor = self._next()
        self._begun(actor.resume.remote(work, cases), Writing(work, cases, actor))

    def _next(self) -> Any:
        self._actors.rotate(-1)
        return self._actors[0]

    def _begun(self, ref: Any, writing: Writing) -> None:
        if writing.actor not in self._busy:
            self._moved[writing.actor] = time.monotonic()
        self.writing[ref] = writing

    def ended(self, ref: Any) -> Writing:
        """Take out what came back or was lost."""
        writing = self.writing.pop(ref)
        self._moved[writing.actor] = time.monotonic()
        return writing

    def replace(self, actor: Any) -> None:
        """Another in its place, unless that was done already."""
        if actor in self._actors:
            ray.kill(actor)
            self._actors.remove(actor)
            self._actors.append(self._actor())

    def cut_hung(self) -> bool:
        """End the grading that takes too long; whether there was any."""
        late = time.monotonic() - self._patience
        hung = [a for a in self._busy if self._moved[a] < late and a in self._actors]
        for actor in hung:
            LOG.warning("grading took more than %g s; it is ended", self._patience)
            self.replace(actor)
        return bool(hung)

    @property
    def _busy(self) -> set[Any]:
        return {writing.actor for writing in self.writing.values()}

    def kill(self) -> None:
        for actor in self._actors:
            ray.kill(actor)

    def _actor(self) -> Any:
        make: Callable[..., Any] = ray.remote(num_cpus=0)(Scorer).remote
        return make(*self._about)
