"""The loop of a sweep: works to engines, their rollouts to score actors, losses mended."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ray

from hackbait.environment import canonical
from pipeline import engines, files, unjudged
from pipeline.actors import FREELY, make_cases, quarantined
from pipeline.cluster.judges import Judges
from pipeline.cluster.scorers import Scorers
from pipeline.cluster.workers import Call, Workers, reason
from pipeline.config import ClusterBlock, EngineBlock, JudgeBlock
from pipeline.judging import JudgeBusy
from pipeline.losses import ATTEMPTS, Losses, Verdict, alone
from pipeline.parts import Generations
from pipeline.places import Where
from pipeline.plan import build
from pipeline.records import CheckpointError, Failure, Generated, Shard, Work, Written
from pipeline.schedule import Queue, weights

LOG = logging.getLogger(__name__)

TICK = 1.0
"""Seconds after which the loop looks up: for what hangs, or a signal to stop."""


class Sweep:
    """Runs works to the end, yielding what was written and what failed, as it comes.

    `at` hears every write boundary of `store.commit`, in the process that passes it.
    """

    def __init__(
        self,
        out: Where,
        engine: EngineBlock,
        cluster: ClusterBlock,
        provenance: Mapping[str, Any],
        at: Callable[[str], None] = files.no_boundary,
        judge: JudgeBlock = FREELY,
    ) -> None:
        self.most = engines.together(engine.name, engine.options)
        # Loaded first: a judge that cannot be had costs no inference.
        self.judges = Judges(judge, cluster)
        provenance = {**provenance, **self.judges.load()}
        self.workers = Workers(engine, cluster, judge)
        about = out, engine, provenance, at, judge, self.judges.answers
        self.scorers = Scorers(about, cluster)
        self.cases: dict[tuple[str, Shard], Any] = {}
        self.out = out
        self.queue = Queue()
        self.unjudged = deque[Work]()
        """Works whose rollouts an earlier launch kept."""
        self.owed = Generations()
        self.failed = False
        self.losses = Losses()
        self.deadline = math.inf
        self.answers = False
        """Whether an engine has answered: one that cannot be built is a checkpoint's fault then."""

    def run(
        self, works: Sequence[Work], following: Callable[[], Sequence[Work]] = tuple
    ) -> Iterator[Written | Failure]:
        """Every partition of the works, written or failed; then the actors are gone.

        `following` is asked for more once all are; the engines live on between such rounds.
        """
        try:
            while works and self.deadline == math.inf:
                self.owed, self.queue = Generations(works), Queue(self._take_up(works))
                yield from self._round()
                works = following()
            if not self.failed and self.deadline == math.inf:
                unjudged.clear(self.out)
        finally:
            self.workers.kill()
            self.scorers.kill()
            self.judges.kill()

    def _take_up(self, works: Sequence[Work]) -> list[Work]:
        """Set those apart that need no engine any more; the others."""
        kept, rest = unjudged.apart(self.out, works)
        self.unjudged = deque(kept)
        return rest

    def _round(self) -> Iterator[Written | Failure]:
        while self._goes_on():
            self._feed()
            under_way = [*self.workers.starting, *self.workers.calls, *self.scorers.writing]
            ready, _ = ray.wait(under_way, timeout=TICK)
            if not ready:
                _check_node()
            for ref in ready:
                yield from self._ended(ref)
            self.workers.cut_hung()
            if self.scorers.cut_hung():
                self.judges.replace()  # they may be what hung

    @property
    def under_way(self) -> list[Work]:
        """What actors hold now; any thread may ask."""
        generating = [work for call in [*self.workers.calls.values()] for work in [*call.works]]
        return generating + [writing.work for writing in [*self.scorers.writing.values()]]

    def stop(self, within: float) -> None:
        """Begin nothing new, and end after what is under way, or after so many seconds."""
        self.queue, self.unjudged = Queue(), deque()
        self.deadline = time.monotonic() + within

    def _goes_on(self) -> bool:
        under_way = self.queue or self.unjudged or self.workers.calls or self.scorers.writing
        return bool(under_way) and time.monotonic() < self.deadline

    def _ended(self, ref: Any) -> Iterator[Written | Failure]:
        if ref in self.workers.starting:
            self.workers.started(ref)
        elif ref in self.workers.calls:
            yield from self._generated(ref)
        elif ref in self.scorers.writing:
            yield from self._written(ref)

    def _feed(self) -> None:
        """Give idle workers work, as far as the score actors keep up."""
        while self.unjudged and self.scorers.room > self.workers.works:
            work = self.unjudged.popleft()
            self.owed.close(work)
            self.scorers.resume(work, self._cases(work))
        while self.scorers.room > self.workers.works and (worker := self.workers.idle()):
            busy = self.workers.busy(worker)
            taken = self.queue.take(worker.current, busy, self.most)
            if not taken:
                return
            works = [work for work in taken if work in self.owed]
            if works:
                cases = [self._cases(work) for work in works]
                ahead = self.queue.ahead(works[-1].checkpoint, busy)
                self.workers.generate(worker, works, cases, ahead)

    def _cases(self, work: Work) -> Any:
        environment = build(work.environment)
        asked = canonical([environment.id, environment.version, dict(environment.ask)])
        if (asked, work.shard) not in self.cases:
            make = ray.remote(num_cpus=0)(make_cases)
            self.cases[asked, work.shard] = make.remote(work.environment, work.shard)
        return self.cases[asked, work.shard]

    def _generated(self, ref: Any) -> Iterator[Failure]:
        call = self.workers.ended(ref)
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
                    yield from self._fail(lost, str(record))
            else:
                self.answers = True
                self.losses.answered(work)
                yield from self._add(work, cases, rollouts, record)

    def _lost(self, call: Call, error: Any) -> Iterator[Failure]:
        """An engine that raised is as lost as one that died: its state is unknown."""
        self._check_cases(call.cases)
        cause = getattr(error, "cause", None)
        if isinstance(cause, engines.EngineError):
            if not self.answers:
                raise cause from None
            self.workers.replace(call.worker, call.actor)
            for lost in {w for work in call.works for w in [work, *self.queue.drop(weights(work))]}:
                yield from self._fail(lost, str(cause))
            return
        busy = isinstance(cause, engines.EngineBusy)
        if not busy:
            self.workers.replace(call.worker, call.actor)
        if not call.in_flight or isinstance(cause, engines.AnotherArchitecture):
            self.queue.back(call.works)
        elif len(call.works) > 1:
            self.queue.back([alone(work) for work in call.works])
        else:
            (work,), (cases,) = call.works, call.cases
            passes = self.losses.passed if call.cut or busy else self.losses.died
            why = "took too long" if call.cut else reason(error)
            yield from self._settle(work, cases, passes(work), f"engine lost: {why}")

    def _settle(self, work: Work, cases: Any, verdict: Verdict, why: str) -> Iterator[Failure]:
        self.queue.back(verdict.again)
        if verdict.condemned:
            LOG.warning("%s, with one rollout alone; it is null from now on: %s", why, work)
            null = ray.remote(num_cpus=0)(quarantined)
            yield from self._add(work, cases, null.remote(work, cases))
        elif not verdict.again:
            yield from self._fail(work, f"{why} ({ATTEMPTS} times)")

    def _add(
        self, work: Work, cases: Any, rollouts: Any, record: Generated | None = None
    ) -> Iterator[Failure]:
        """Rollouts of all or a part of a generation; it is written once all of it is there."""
        generation = self.owed.add(work, rollouts, record)
        if generation is None:
            return
        if generation.fault:
            yield from self._fail(work, generation.fault)
        else:
            self.owed.close(work)
            self.scorers.write(generation.work, cases, generation.records, generation.rollouts)

    def _fail(self, work: Work, why: str) -> Iterator[Failure]:
        """The whole generation stays owed; what was left of it is not asked any more."""
        self.failed = True
        if self.owed.close(work):
            for partition in work.partitions:
                yield Failure(partition, why)

    def _written(self, ref: Any) -> Iterator[Written | Failure]:
        writing = self.scorers.ended(ref)
        try:
            written = ray.get(ref)
            if written is None:
                self.owed.open(writing.work)
                self.queue.put(writing.work)
            yield from written or ()
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, JudgeBusy):
                self.owed.open(writing.work)
                yield from self._fail(writing.work, f"judge: {cause}")
                return
            if cause is not None and not isinstance(cause, ray.exceptions.RayError):
                raise cause from None
            self.scorers.replace(writing.actor)
            self._check_cases([writing.cases])
            self.owed.open(writing.work)
            verdict = self.losses.passed(writing.work)
            why = f"score actor lost: {reason(error)}"
            yield from self._settle(writing.work, writing.cases, verdict, why)

    def _check_cases(self, cases: Sequence[Any]) -> None:
        """Let a fault of the environment rise; cases that were lost with a node are made again."""
        try:
            ray.get(list(cases))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError:
            self.cases.clear()


def _check_node() -> None:
    """ConnectionError when Ray's own process beside the driver is gone: nothing can start then."""
    ours = ray.get_runtime_context().get_node_id()
    if not any(node["NodeID"] == ours and node["Alive"] for node in ray.nodes()):
        raise ConnectionError(
            "Ray's process on the driver's machine (raylet) is gone; run the same command to go on"
        )
