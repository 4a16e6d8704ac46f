"""Ray: the actors placed on machines, and the loop that keeps them busy.

The driver hands on references: no completion ever passes through it.
"""

import logging
import math
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from hackbait.environment import canonical
from pipeline import engines
from pipeline.actors import Inference, Scorer, make_cases
from pipeline.config import ClusterBlock, EngineBlock
from pipeline.plan import build
from pipeline.records import (
    Checkpoint,
    CheckpointError,
    Failure,
    Generated,
    Shard,
    Work,
    Written,
)
from pipeline.schedule import Queue, weights

LOG = logging.getLogger(__name__)

QUEUED_PER_WORKER = 2
"""Generations an inference actor holds: one running, one waiting, so that it never idles."""
QUEUED_PER_SCORER = 4
"""Partitions a score actor holds; beyond that, generation waits (backpressure)."""
TICK = 1.0
"""Seconds after which the loop looks up: for a hung engine, or a signal to stop."""
ATTEMPTS = 3
"""Deaths of an actor that one work may see before it is given up."""
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}


@contextmanager
def session(block: ClusterBlock) -> Iterator[None]:
    """A Ray of our own for the length of the block, or the one named, or one already up."""
    if ray.is_initialized():
        yield
        return
    actors = (block.workers or 1) + block.scorers
    options: dict[str, Any] = (
        {"address": block.address}
        if block.address
        else {"num_cpus": max(os.cpu_count() or 1, actors + 1), "include_dashboard": False}
    )
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    try:
        yield
    finally:
        ray.shutdown()


@dataclass(slots=True, eq=False)
class _Worker:
    actor: Any
    current: Checkpoint | None = None
    """What its engine holds once all that it was given is done."""
    running: int = 0
    moved: float = 0.0
    """When it last began or finished something, monotonic seconds."""


@dataclass(slots=True)
class _Call:
    """One call of an inference actor: works that share a batch, one as a rule."""

    works: list[Work]
    cases: list[Any]
    actor: Any
    worker: _Worker
    rollouts: list[Any]


@dataclass(slots=True)
class _Writing:
    """One work at a score actor."""

    work: Work
    actor: Any


class Sweep:
    """Runs works to the end, yielding what was written and what failed, as it comes."""

    def __init__(
        self, out: Path, engine: EngineBlock, cluster: ClusterBlock, provenance: Mapping[str, Any]
    ) -> None:
        self.engine = share_gpu(engine, cluster)
        self.cluster = cluster
        self.most = engines.together(engine.name, engine.options)
        self.workers = [_Worker(self._inference()) for _ in range(count_workers(engine, cluster))]
        self.about = out, engine, provenance
        self.scorers = deque(self._scorer() for _ in range(cluster.scorers))
        self.cases: dict[tuple[str, Shard], Any] = {}
        self.queue = Queue()
        self.calls: dict[Any, _Call] = {}
        self.writing: dict[Any, _Writing] = {}
        self.deaths: dict[str, int] = {}
        self.deadline = math.inf

    def run(self, works: Sequence[Work]) -> Iterator[Written | Failure]:
        """Every partition of the works, written or failed; then the actors are gone."""
        self.queue = Queue(works)
        try:
            while self._goes_on():
                self._feed()
                ready, _ = ray.wait([*self.calls, *self.writing], timeout=TICK)
                for ref in ready:
                    land = self._written if ref in self.writing else self._generated
                    yield from land(ref)
                self._replace_hung()
        finally:
            for actor in [*(worker.actor for worker in self.workers), *self.scorers]:
                ray.kill(actor)

    def stop(self, within: float) -> None:
        """Begin nothing new, and end after what is under way, or after so many seconds."""
        self.queue = Queue()
        self.deadline = time.monotonic() + within

    def _goes_on(self) -> bool:
        under_way = self.queue or self.calls or self.writing
        return bool(under_way) and time.monotonic() < self.deadline

    def _feed(self) -> None:
        """Give idle workers work, as far as the score actors keep up."""
        under_way = len(self.writing) + sum(len(call.works) for call in self.calls.values())
        room = QUEUED_PER_SCORER * len(self.scorers) - under_way
        while room > 0:
            worker = min(self.workers, key=lambda w: w.running)
            if worker.running >= QUEUED_PER_WORKER:
                return
            others = [w.current for w in self.workers if w is not worker and w.running]
            busy = {(other.path, other.base) for other in others if other is not None}
            works = self.queue.take(worker.current, busy, self.most)
            if not works:
                return
            self._generate(worker, works, self.queue.ahead(works[-1].checkpoint, busy))
            room -= len(works)

    def _generate(self, worker: _Worker, works: list[Work], ahead: Checkpoint | None) -> None:
        cases = [self._cases(work) for work in works]
        call = worker.actor.generate.options(num_returns=len(works) + 1)
        *rollouts, records = call.remote(works, ahead, *cases)
        if not worker.running:
            worker.moved = time.monotonic()
        worker.running += 1
        worker.current = works[-1].checkpoint
        self.calls[records] = _Call(works, cases, worker.actor, worker, rollouts)

    def _cases(self, work: Work) -> Any:
        environment = build(work.environment)
        asked = canonical([environment.id, environment.version, dict(environment.ask)])
        if (asked, work.shard) not in self.cases:
            make = ray.remote(num_cpus=0)(make_cases)
            self.cases[asked, work.shard] = make.remote(work.environment, work.shard)
        return self.cases[asked, work.shard]

    def _generated(self, ref: Any) -> Iterator[Failure]:
        call = self.calls.pop(ref)
        if call.worker.actor is call.actor:
            call.worker.running -= 1
            call.worker.moved = time.monotonic()
        try:
            records = ray.get(ref)
        except ray.exceptions.RayError as error:
            yield from self._lost(call, error)
            return
        for work, cases, rollouts, record in zip(
            call.works, call.cases, call.rollouts, records, strict=True
        ):
            if isinstance(record, CheckpointError):
                for lost in [work, *self.queue.drop(weights(work))]:
                    yield from _failures(lost, str(record))
            else:
                self._write(work, cases, rollouts, record)

    def _write(self, work: Work, cases: Any, rollouts: Any, record: Generated) -> None:
        self.scorers.rotate(-1)
        ref = self.scorers[0].write.remote(work, cases, rollouts, record)
        self.writing[ref] = _Writing(work, self.scorers[0])

    def _written(self, ref: Any) -> Iterator[Written | Failure]:
        writing = self.writing.pop(ref)
        try:
            yield from ray.get(ref)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            if writing.actor in self.scorers:
                self.scorers.remove(writing.actor)
                self.scorers.append(self._scorer())
            yield from self._again(writing.work, f"score actor lost: {_reason(error)}")

    def _lost(self, call: _Call, error: Any) -> Iterator[Failure]:
        """An engine that raised is as lost as one that died: its state is unknown."""
        _raise_if_broken(call.cases)
        cause = getattr(error, "cause", None)
        if isinstance(cause, engines.EngineError):
            raise cause from None
        if not isinstance(cause, engines.EngineBusy):
            self._replace(call.worker, call.actor)
        for work in call.works:
            if isinstance(cause, engines.AnotherArchitecture):
                self.queue.put(work)
            else:
                yield from self._again(work, f"engine lost: {_reason(error)}")

    def _replace(self, worker: _Worker, actor: Any) -> None:
        """A new process for a worker whose actor that is; calls still in the old one will fail."""
        if worker.actor is actor:
            ray.kill(actor)
            worker.actor, worker.current, worker.running = self._inference(), None, 0

    def _replace_hung(self) -> None:
        now = time.monotonic()
        for worker in self.workers:
            if worker.running and now - worker.moved > self.cluster.patience:
                LOG.warning("an engine took more than %g s; it is replaced", self.cluster.patience)
                self._replace(worker, worker.actor)

    def _again(self, work: Work, reason: str) -> Iterator[Failure]:
        key = work.partitions[0].key
        self.deaths[key] = self.deaths.get(key, 0) + 1
        if self.deaths[key] < ATTEMPTS:
            self.queue.put(work)
        else:
            yield from _failures(work, f"{reason} ({ATTEMPTS} times)")

    def _inference(self) -> Any:
        own = ray.remote(
            num_cpus=1,
            num_gpus=gpu_share(self.engine, self.cluster),
            runtime_env={"env_vars": WORKER_ENVIRONMENT},
        )
        return own(Inference).remote(self.engine)

    def _scorer(self) -> Any:
        return ray.remote(num_cpus=0)(Scorer).remote(*self.about)


def _failures(work: Work, reason: str) -> Iterator[Failure]:
    for partition in work.partitions:
        yield Failure(partition, reason)


def _raise_if_broken(cases: Sequence[Any]) -> None:
    """Let a fault of the environment rise: no engine is to blame for cases that were not made."""
    try:
        ray.get(list(cases))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _reason(error: Any) -> str:
    """One line: what an actor raised, or how Ray says that it ended."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines() or [""]
    return f"{type(cause).__name__}: {lines[0]}"


def count_workers(engine: EngineBlock, cluster: ClusterBlock) -> int:
    """Inference actors: as asked, else what the cluster's GPUs hold, else one per two cores."""
    if cluster.workers:
        return cluster.workers
    resources = ray.cluster_resources()
    if gpus := int(resources.get("GPU", 0)):
        return max(1, int(gpus / gpu_share(engine, cluster)))
    return max(1, int(resources.get("CPU", 2)) // 2)


def gpu_share(engine: EngineBlock, cluster: ClusterBlock) -> float:
    """GPUs of one inference actor: several for a model spread over them, else a fraction of one."""
    if not ray.cluster_resources().get("GPU", 0):
        return 0.0
    return float(engine.gpus) if engine.gpus > 1 else 1.0 / cluster.engines_per_gpu


def share_gpu(engine: EngineBlock, cluster: ClusterBlock) -> EngineBlock:
    """The engine's options with its share of a GPU's memory, where several engines share one."""
    share, name = cluster.engines_per_gpu, "gpu_memory_utilization"
    if share == 1 or name in engine.args or name not in engines.options_of(engine.name):
        return engine
    return EngineBlock(name=engine.name, dtype=engine.dtype, **engine.args, **{name: 0.9 / share})
