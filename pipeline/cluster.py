"""Ray: the actors placed on machines, and the loop that keeps them busy.

The driver hands on references: no completion ever passes through it.
"""

import logging
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from hackbait.environment import canonical
from pipeline.actors import Inference, Scorer, make_cases
from pipeline.config import ClusterBlock, EngineBlock
from pipeline.plan import build
from pipeline.records import (
    CheckpointError,
    Failure,
    Generated,
    Shard,
    Work,
    Written,
)
from pipeline.schedule import Queue, Weights, weights

QUEUED_PER_WORKER = 2
"""Generations an inference actor holds: one running, one waiting, so that it never idles."""
QUEUED_PER_SCORER = 4
"""Partitions a score actor holds; beyond that, generation waits (backpressure)."""
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
    current: Weights | None = None
    running: int = 0


@dataclass(slots=True)
class _Flight:
    """One work on its way: first to an inference actor, then to a score actor."""

    work: Work
    cases: Any
    actor: Any
    worker: _Worker
    rollouts: Any = None
    generated: Generated | None = None


class Sweep:
    """Runs works to the end, yielding what was written and what failed, as it comes."""

    def __init__(
        self, out: Path, engine: EngineBlock, cluster: ClusterBlock, provenance: Mapping[str, Any]
    ) -> None:
        self.engine = engine
        self.gpus = gpus_per_worker(cluster)
        self.workers = [_Worker(self._inference()) for _ in range(count_workers(cluster))]
        self.about = out, engine, provenance
        self.scorers = deque(self._scorer() for _ in range(cluster.scorers))
        self.cases: dict[tuple[str, Shard], Any] = {}
        self.queue = Queue()
        self.flights: dict[Any, _Flight] = {}
        self.writing: dict[Any, _Flight] = {}
        self.deaths: dict[str, int] = {}

    def run(self, works: Sequence[Work]) -> Iterator[Written | Failure]:
        """Every partition of the works, written or failed; then the actors are gone."""
        self.queue = Queue(works)
        try:
            while self.queue or self.flights or self.writing:
                self._feed()
                ready, _ = ray.wait([*self.flights, *self.writing], num_returns=1)
                for ref in ready:
                    land = self._written if ref in self.writing else self._generated
                    yield from land(ref)
        finally:
            for actor in [*(worker.actor for worker in self.workers), *self.scorers]:
                ray.kill(actor)

    def _feed(self) -> None:
        """Give idle workers work, as far as the score actors keep up."""
        room = QUEUED_PER_SCORER * len(self.scorers) - len(self.writing) - len(self.flights)
        while room > 0:
            worker = min(self.workers, key=lambda w: w.running)
            if worker.running >= QUEUED_PER_WORKER:
                return
            busy = {w.current for w in self.workers if w is not worker and w.current}
            work = self.queue.take(worker.current, busy)
            if work is None:
                return
            self._generate(worker, work)
            room -= 1

    def _generate(self, worker: _Worker, work: Work) -> None:
        cases = self._cases(work)
        rollouts, status = worker.actor.generate.options(num_returns=2).remote(work, cases)
        worker.running += 1
        worker.current = weights(work)
        self.flights[status] = _Flight(work, cases, worker.actor, worker, rollouts)

    def _cases(self, work: Work) -> Any:
        environment = build(work.environment)
        asked = canonical([environment.id, environment.version, dict(environment.ask)])
        if (asked, work.shard) not in self.cases:
            make = ray.remote(num_cpus=0)(make_cases)
            self.cases[asked, work.shard] = make.remote(work.environment, work.shard)
        return self.cases[asked, work.shard]

    def _generated(self, status: Any) -> Iterator[Failure]:
        flight = self.flights.pop(status)
        worker = flight.worker
        if worker.actor is flight.actor:
            worker.running -= 1
        try:
            answer = ray.get(status)
        except ray.exceptions.RayError as error:
            _raise_if_broken(flight.cases)
            # An engine that raised is as lost as one that died: its state is unknown.
            if worker.actor is flight.actor:
                ray.kill(worker.actor)
                worker.actor, worker.current, worker.running = self._inference(), None, 0
            yield from self._again(flight.work, f"engine lost: {_reason(error)}")
            return
        if isinstance(answer, CheckpointError):
            for lost in [flight.work, *self.queue.drop(weights(flight.work))]:
                yield from _failures(lost, str(answer))
            return
        flight.generated = answer
        self._write(flight)

    def _write(self, flight: _Flight) -> None:
        self.scorers.rotate(-1)
        flight.actor = self.scorers[0]
        ref = flight.actor.write.remote(
            flight.work, flight.cases, flight.rollouts, flight.generated
        )
        self.writing[ref] = flight

    def _written(self, ref: Any) -> Iterator[Written | Failure]:
        flight = self.writing.pop(ref)
        try:
            yield from ray.get(ref)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            if flight.actor in self.scorers:
                self.scorers.remove(flight.actor)
                self.scorers.append(self._scorer())
            yield from self._again(flight.work, f"score actor lost: {_reason(error)}")

    def _again(self, work: Work, reason: str) -> Iterator[Failure]:
        key = work.partitions[0].key
        self.deaths[key] = self.deaths.get(key, 0) + 1
        if self.deaths[key] < ATTEMPTS:
            self.queue.put(work)
        else:
            yield from _failures(work, f"{reason} ({ATTEMPTS} times)")

    def _inference(self) -> Any:
        own = ray.remote(
            num_cpus=1, num_gpus=self.gpus, runtime_env={"env_vars": WORKER_ENVIRONMENT}
        )
        return own(Inference).remote(self.engine)

    def _scorer(self) -> Any:
        return ray.remote(num_cpus=0)(Scorer).remote(*self.about)


def _failures(work: Work, reason: str) -> Iterator[Failure]:
    for partition in work.partitions:
        yield Failure(partition, reason)


def _raise_if_broken(cases: Any) -> None:
    """Let a fault of the environment rise: no engine is to blame for cases that were not made."""
    try:
        ray.get(cases)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _reason(error: Any) -> str:
    """One line: what an actor raised, or how Ray says that it ended."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines() or [""]
    return f"{type(cause).__name__}: {lines[0]}"


def count_workers(block: ClusterBlock) -> int:
    """Inference actors: as asked, else one per GPU of the cluster, else one per two cores."""
    if block.workers:
        return block.workers
    resources = ray.cluster_resources()
    return int(resources.get("GPU", 0)) or max(1, int(resources.get("CPU", 2)) // 2)


def gpus_per_worker(block: ClusterBlock) -> float:
    if block.gpus_per_worker is not None:
        return block.gpus_per_worker
    return 1.0 if ray.cluster_resources().get("GPU", 0) else 0.0
