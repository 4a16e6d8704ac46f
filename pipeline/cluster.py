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
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import ray

from hackbait.environment import canonical
from pipeline import engines
from pipeline.actors import Inference, Scorer, make_cases, quarantined
from pipeline.config import ClusterBlock, EngineBlock
from pipeline.losses import ATTEMPTS, Losses, Verdict, name
from pipeline.placement import count_workers, gpu_share, share_gpu
from pipeline.places import Where
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
"""Seconds after which the loop looks up: for what hangs, or a signal to stop."""
STARTS = 5
"""Inference processes in turn that may fail to start."""
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
    up: bool = False
    """Whether its process runs; until then a cluster may have no room for it."""
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
    number: int
    """Calls of an actor run in this order."""
    cut: bool = False
    """Whether it was ended for taking too long."""


@dataclass(slots=True)
class _Open:
    """A generation that is not written yet, and those of its rollouts that are there."""

    work: Work
    parts: dict[int, Any] = field(default_factory=dict)
    """Rollouts of a part by the number of its first."""
    owed: int = 0
    """Rollouts that are not there yet."""
    records: list[Generated] = field(default_factory=list)


@dataclass(slots=True)
class _Writing:
    """One generation at a score actor."""

    work: Work
    cases: Any
    actor: Any
    began: float
    """Monotonic seconds."""


class Sweep:
    """Runs works to the end, yielding what was written and what failed, as it comes."""

    def __init__(
        self, out: Where, engine: EngineBlock, cluster: ClusterBlock, provenance: Mapping[str, Any]
    ) -> None:
        self.engine = share_gpu(engine, cluster)
        self.cluster = cluster
        self.most = engines.together(engine.name, engine.options)
        self.about = out, engine, provenance
        self.starting: dict[Any, _Worker] = {}
        self.failed_starts = 0
        resources = ray.cluster_resources()
        self.gpus = gpu_share(self.engine, cluster, resources)
        wanted = count_workers(engine, cluster, resources)
        self.workers = [self._start(_Worker(None)) for _ in range(wanted)]
        self.scorers = deque(self._scorer() for _ in range(cluster.scorers))
        self.cases: dict[tuple[str, Shard], Any] = {}
        self.queue = Queue()
        self.open: dict[str, _Open] = {}
        self.calls: dict[Any, _Call] = {}
        self.writing: dict[Any, _Writing] = {}
        self.losses = Losses()
        self.numbers = count()
        self.deadline = math.inf

    def run(self, works: Sequence[Work]) -> Iterator[Written | Failure]:
        """Every partition of the works, written or failed; then the actors are gone."""
        self.queue = Queue(works)
        self.open = {name(work): _opened(work) for work in works}
        try:
            while self._goes_on():
                self._feed()
                under_way = [*self.starting, *self.calls, *self.writing]
                ready, _ = ray.wait(under_way, timeout=TICK)
                for ref in ready:
                    yield from self._ended(ref)
                self._cut_hung()
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

    def _ended(self, ref: Any) -> Iterator[Written | Failure]:
        if ref in self.starting:
            self._started(ref)
        elif ref in self.writing:
            yield from self._written(ref)
        elif ref in self.calls:
            yield from self._generated(ref)

    def _feed(self) -> None:
        """Give idle workers work, as far as the score actors keep up."""
        up = [worker for worker in self.workers if worker.up]
        under_way = len(self.writing) + sum(len(call.works) for call in self.calls.values())
        room = QUEUED_PER_SCORER * len(self.scorers) - under_way
        while room > 0 and up:
            worker = min(up, key=lambda w: w.running)
            if worker.running >= QUEUED_PER_WORKER:
                return
            others = [w.current for w in self.workers if w is not worker and w.running]
            busy = {(other.path, other.base) for other in others if other is not None}
            taken = self.queue.take(worker.current, busy, self.most)
            if not taken:
                return
            works = [work for work in taken if name(work) in self.open]
            if works:
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
        self.calls[records] = _Call(
            works, cases, worker.actor, worker, rollouts, next(self.numbers)
        )

    def _cases(self, work: Work) -> Any:
        environment = build(work.environment)
        asked = canonical([environment.id, environment.version, dict(environment.ask)])
        if (asked, work.shard) not in self.cases:
            make = ray.remote(num_cpus=0)(make_cases)
            self.cases[asked, work.shard] = make.remote(work.environment, work.shard)
        return self.cases[asked, work.shard]

    def _generated(self, ref: Any) -> Iterator[Failure]:
        call = self.calls.pop(ref)
        in_flight = self._in_flight(call)
        if call.worker.actor is call.actor:
            call.worker.running -= 1
            call.worker.moved = time.monotonic()
        try:
            records = ray.get(ref)
        except ray.exceptions.RayError as error:
            yield from self._lost(call, error, in_flight)
            return
        for work, cases, rollouts, record in zip(
            call.works, call.cases, call.rollouts, records, strict=True
        ):
            if isinstance(record, CheckpointError):
                for lost in [work, *self.queue.drop(weights(work))]:
                    yield from self._fail(lost, str(record))
            else:
                self.losses.answered(work)
                yield from self._add(work, cases, rollouts, record)

    def _in_flight(self, call: _Call) -> bool:
        """Whether its actor was at it, rather than at another call or dead already."""
        others = (other for other in self.calls.values() if other.actor is call.actor)
        first = all(call.number < other.number for other in others)
        return call.cut or (first and call.worker.actor is call.actor)

    def _lost(self, call: _Call, error: Any, in_flight: bool) -> Iterator[Failure]:
        """An engine that raised is as lost as one that died: its state is unknown."""
        self._check_cases(call.cases)
        cause = getattr(error, "cause", None)
        if isinstance(cause, engines.EngineError):
            raise cause from None
        if not isinstance(cause, engines.EngineBusy):
            self._replace(call.worker, call.actor)
        innocent = not in_flight or isinstance(cause, engines.AnotherArchitecture)
        if innocent or len(call.works) > 1:
            self.queue.back([work if innocent else _alone(work) for work in call.works])
            return
        (work,) = call.works
        passes = call.cut or isinstance(cause, engines.EngineBusy)
        verdict = self.losses.passed(work) if passes else self.losses.died(work)
        reason = "took too long" if call.cut else _reason(error)
        yield from self._settle(work, call.cases[0], verdict, f"engine lost: {reason}")

    def _settle(self, work: Work, cases: Any, verdict: Verdict, reason: str) -> Iterator[Failure]:
        self.queue.back(verdict.again)
        if verdict.condemned:
            LOG.warning("%s: %s with one rollout alone; it is null from now on", work, reason)
            yield from self._add(
                work, cases, ray.remote(num_cpus=0)(quarantined).remote(work, cases)
            )
        elif not verdict.again:
            yield from self._fail(work, f"{reason} ({ATTEMPTS} times)")

    def _add(
        self, work: Work, cases: Any, rollouts: Any, record: Generated | None = None
    ) -> Iterator[Failure]:
        """Rollouts of all or a part of a generation; written once all of it is there."""
        generation = self.open.get(name(work))
        if generation is None:
            return
        rows = work.every_row if work.rows is None else work.rows
        generation.parts[rows.start] = rollouts
        generation.owed -= len(rows)
        generation.records += [record] if record else []
        if generation.owed:
            return
        if len({record.fingerprint for record in generation.records}) == 1:
            self._write(self.open.pop(name(work)), cases)
        elif generation.records:
            yield from self._fail(work, "its weights were replaced while it was swept")
        else:
            yield from self._fail(work, "every one of its rollouts ends the engine")

    def _fail(self, work: Work, reason: str) -> Iterator[Failure]:
        """The whole generation stays owed; what was left of it is not asked any more."""
        if self.open.pop(name(work), None) is not None:
            for partition in work.partitions:
                yield Failure(partition, reason)

    def _write(self, generation: _Open, cases: Any) -> None:
        self.scorers.rotate(-1)
        actor, work = self.scorers[0], replace(generation.work, rows=None)
        parts = [generation.parts[start] for start in sorted(generation.parts)]
        ref = actor.write.remote(work, cases, generation.records, *parts)
        self.writing[ref] = _Writing(work, cases, actor, time.monotonic())

    def _written(self, ref: Any) -> Iterator[Written | Failure]:
        writing = self.writing.pop(ref)
        try:
            yield from ray.get(ref)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if cause is not None and not isinstance(cause, ray.exceptions.RayError):
                raise cause from None
            self._replace_scorer(writing.actor)
            self._check_cases([writing.cases])
            self.open[name(writing.work)] = _opened(writing.work)
            verdict = self.losses.passed(writing.work)
            reason = f"score actor lost: {_reason(error)}"
            yield from self._settle(writing.work, writing.cases, verdict, reason)

    def _check_cases(self, cases: Sequence[Any]) -> None:
        """Let a fault of the environment rise; cases that were lost with a node are made again."""
        try:
            ray.get(list(cases))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError:
            self.cases.clear()

    def _start(self, worker: _Worker) -> _Worker:
        """A new process for a worker, which takes work as soon as the process is up."""
        own = ray.remote(
            num_cpus=1, num_gpus=self.gpus, runtime_env={"env_vars": WORKER_ENVIRONMENT}
        )
        worker.actor, worker.current = own(Inference).remote(self.engine, self.cluster), None
        worker.running, worker.up = 0, False
        self.starting[worker.actor.ready.remote()] = worker
        return worker

    def _started(self, ref: Any) -> None:
        worker = self.starting.pop(ref)
        try:
            ray.get(ref)
        except ray.exceptions.RayError as error:
            self.failed_starts += 1
            if self.failed_starts == STARTS:
                raise engines.EngineError(
                    f"{STARTS} inference processes in turn did not start: {_reason(error)}"
                ) from None
            self._start(worker)
        else:
            self.failed_starts, worker.up = 0, True

    def _replace(self, worker: _Worker, actor: Any) -> None:
        """A new process for a worker whose actor that is; calls still in the old one will fail."""
        if worker.actor is actor:
            ray.kill(actor)
            self._start(worker)

    def _cut_hung(self) -> None:
        """End what takes longer than patience: an engine, or a grader."""
        late = time.monotonic() - self.cluster.patience
        for worker in self.workers:
            if worker.running and worker.moved < late:
                LOG.warning("an engine took more than %g s; it is replaced", self.cluster.patience)
                calls = (call for call in self.calls.values() if call.actor is worker.actor)
                min(calls, key=lambda call: call.number).cut = True
                self._replace(worker, worker.actor)
        for writing in self.writing.values():
            if writing.began < late:
                LOG.warning("grading took more than %g s; it is ended", self.cluster.patience)
                self._replace_scorer(writing.actor)

    def _scorer(self) -> Any:
        return ray.remote(num_cpus=0)(Scorer).remote(*self.about)

    def _replace_scorer(self, actor: Any) -> None:
        if actor in self.scorers:
            ray.kill(actor)
            self.scorers.remove(actor)
            self.scorers.append(self._scorer())


def _opened(work: Work) -> _Open:
    return _Open(work, owed=len(work.every_row))


def _alone(work: Work) -> Work:
    """A work that shares its batch with no other from now on."""
    return replace(work, rows=work.every_row if work.rows is None else work.rows)


def _reason(error: Any) -> str:
    """One line: what an actor raised, or how Ray says that it ended."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines() or [""]
    return f"{type(cause).__name__}: {lines[0]}"
