"""Inference actors: each a process with one engine, replaced when it dies, raises or hangs."""

import logging
import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import ray

from pipeline import engines
from pipeline.actors import Inference
from pipeline.config import ClusterBlock, EngineBlock, JudgeBlock
from pipeline.placement import NO_JUDGE, count_workers, gpu_share, share_gpu
from pipeline.records import Checkpoint, Work
from pipeline.schedule import Weights

LOG = logging.getLogger(__name__)

QUEUED = 2
"""Generations an actor holds: one running, one waiting, so that it never idles."""
STARTS = 5
"""Processes in turn that may fail to start in one place; a lost node fails many places at once."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(slots=True, eq=False)
class Worker:
    """A place for an actor; the actor in it may change."""

    actor: Any
    up: bool = False
    """Whether its process runs; until then a cluster may have no room for it."""
    current: Checkpoint | None = None
    """What its engine holds once all that it was given is done."""
    running: int = 0
    failed: int = 0
    """Starts in turn that came to nothing."""
    moved: float = 0.0
    """When it last began or finished something, monotonic seconds."""


@dataclass(slots=True)
class Call:
    """Works that share a batch, one as a rule, at an actor."""

    works: list[Work]
    cases: list[Any]
    actor: Any
    worker: Worker
    rollouts: list[Any]
    number: int
    """Calls of an actor run in this order."""
    cut: bool = False
    """Whether it was ended for taking too long."""
    in_flight: bool = True
    """Whether its actor was at it when it ended, rather than at another call or dead already."""


class Workers:
    """All inference actors of a sweep, and the calls they are at, by the reference that ends."""

    def __init__(
        self, engine: EngineBlock, cluster: ClusterBlock, judge: JudgeBlock = NO_JUDGE
    ) -> None:
        """judge: whose engines have a part of the machine."""
        resources = ray.cluster_resources()
        self._gpus = gpu_share(engine, cluster, resources, judge)
        self._engine = share_gpu(engine, self._gpus)
        self._cluster = cluster
        self._numbers = count()
        self.starting: dict[Any, Worker] = {}
        self.calls: dict[Any, Call] = {}
        wanted = count_workers(engine, cluster, resources, judge)
        self.all = [self._start(Worker(None)) for _ in range(wanted)]

    @property
    def works(self) -> int:
        """Works under way."""
        return sum(len(call.works) for call in self.calls.values())

    def idle(self) -> Worker | None:
        """The one with least to do, unless it has enough."""
        up = (worker for worker in self.all if worker.up)
        least = min(up, key=lambda worker: worker.running, default=None)
        return least if least and least.running < QUEUED else None

    def busy(self, worker: Worker) -> set[Weights]:
        """The checkpoints that the others are on."""
        others = (w.current for w in self.all if w is not worker and w.running)
        return {(other.path, other.base) for other in others if other is not None}

    def generate(
        self, worker: Worker, works: list[Work], cases: list[Any], ahead: Checkpoint | None
    ) -> None:
        method = worker.actor.generate.options(num_returns=len(works) + 1)
        *rollouts, records = method.remote(works, ahead, *cases)
        if not worker.running:
            worker.moved = time.monotonic()
        worker.running += 1
        worker.current = works[-1].checkpoint
        number = next(self._numbers)
        self.calls[records] = Call(works, cases, worker.actor, worker, rollouts, number)

    def ended(self, ref: Any) -> Call:
        """Take out a call that came back or was lost."""
        call = self.calls.pop(ref)
        others = (other for other in self.calls.values() if other.actor is call.actor)
        first = all(call.number < other.number for other in others)
        alive = call.worker.actor is call.actor
        call.in_flight = call.cut or (first and alive)
        if alive:
            call.worker.running -= 1
            call.worker.moved = time.monotonic()
        return call

    def started(self, ref: Any) -> None:
        """Let a process that is up take work. Raises EngineError when too many never were."""
        worker = self.starting.pop(ref)
        try:
            ray.get(ref)
        except ray.exceptions.RayError as error:
            worker.failed += 1
            if worker.failed == STARTS:
                raise engines.EngineError(
                    f"{STARTS} inference processes in turn did not start: {reason(error)}"
                ) from None
            self._start(worker)
        else:
            worker.failed, worker.up = 0, True

    def replace(self, worker: Worker, actor: Any) -> None:
        """A new process for a worker whose actor that is; calls still in the old one will fail."""
        if worker.actor is actor:
            ray.kill(actor)
            self._start(worker)

    def cut_hung(self) -> None:
        """End the call of every engine that moves no more."""
        late = time.monotonic() - self._cluster.patience
        for worker in self.all:
            if worker.running and worker.moved < late:
                LOG.warning("an engine took more than %g s; it is replaced", self._cluster.patience)
                calls = (call for call in self.calls.values() if call.actor is worker.actor)
                min(calls, key=lambda call: call.number).cut = True
                self.replace(worker, worker.actor)

    def kill(self) -> None:
        for worker in self.all:
            ray.kill(worker.actor)

    def _start(self, worker: Worker) -> Worker:
        """A new process in a worker's place, which takes work as soon as it is up."""
        own = ray.remote(num_cpus=1, num_gpus=self._gpus, runtime_env={"env_vars": ENVIRONMENT})
        worker.actor, worker.current = own(Inference).remote(self._engine, self._cluster), None
        worker.running, worker.up = 0, False
        self.starting[worker.actor.ready.remote()] = worker
        return worker


def reason(error: Any) -> str:
    """One line: what an actor raised, or how Ray says that it ended."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines() or [""]
    return f"{type(cause).__name__}: {lines[0]}"
