"""What runs in the processes of a sweep: plain classes that cluster.py places.

Inference actors own the accelerator and keep one engine alive; score actors grade and write.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from hackbait.environment import Case, Environment
from pipeline import engines, files, judging, schema, store, unjudged
from pipeline.cache import Near
from pipeline.checkpoints.identity import refuse_replaced
from pipeline.config import ClusterBlock, EngineBlock, JudgeBlock
from pipeline.engines import Engine, ManyAtOnce, SelfChecking
from pipeline.places import Where
from pipeline.plan import build
from pipeline.records import (
    QUARANTINED,
    Checkpoint,
    CheckpointError,
    Completion,
    EnvironmentSpec,
    Generated,
    Partition,
    Rollout,
    Shard,
    Span,
    Work,
    Written,
)
from pipeline.rollout import generate, generate_many, grade, sampling_seeds
from pipeline.schedule import Weights
from pipeline.unjudged import Kept

LOG = logging.getLogger(__name__)
ONE_MACHINE = ClusterBlock()
FREELY = JudgeBlock()
MADE = ("versions", "options")


def make_cases(spec: EnvironmentSpec, shard: Shard) -> list[Case]:
    """Cases of a shard."""
    return build(spec).cases(shard.start, shard.stop)


def quarantined(work: Work, cases: Sequence[Case]) -> list[Rollout]:
    """Nulls instead of the rollouts of a part of a work, which end every engine."""
    null = Completion(None, None, None, None, QUARANTINED)
    places = [divmod(row, work.sampling.n) for row in work.rows or work.every_row]
    seeds = sampling_seeds(cases, work.sampling)
    return [Rollout(cases[at].index, sample, seeds[at][sample], null) for at, sample in places]


def _together(records: Sequence[Generated]) -> Generated:
    """What the engines said of the parts of one generation, as if it had been one."""
    begin = min(records, key=lambda record: record.generating.begin)
    end = max(record.generating.end for record in records)
    return replace(
        begin,
        generating=Span(begin.generating.begin, end),
        tokens=sum(record.tokens for record in records),
    )


class Inference:
    """One live engine in one process; many checkpoints through it."""

    def __init__(self, block: EngineBlock, cluster: ClusterBlock = ONE_MACHINE) -> None:
        self.block = block
        self.near = Near(cluster.cache, cluster.cache_size)
        self._engine: Engine | None = None
        self.loaded: Weights | None = None
        self.fingerprint = ""
        self.swaps = 0
        self._background = ThreadPoolExecutor(1, "prefetch")
        self._ahead: tuple[Weights, Future[Span]] | None = None
        self._reading: Span | None = None

    @property
    def engine(self) -> Engine:
        """Built at its first use: what an actor raises while it is made reaches nobody."""
        if self._engine is None:
            self._engine = engines.load(self.block.name, self.block.options)
        return self._engine

    def ready(self) -> None:
        """Returns once this process is up."""

    def generate(
        self, works: Sequence[Work], ahead: Checkpoint | None, *cases: list[Case]
    ) -> list[Any]:
        """Rollouts of each work, which stay in the object store, then the list of their records.

        A work whose checkpoint cannot be used has None and its CheckpointError instead. `ahead` is
        the checkpoint to read while this one generates.
        """
        began = time.time()
        self.near.keep(work.checkpoint for work in works)
        loads = [self._load(work.checkpoint) for work in works]
        loaded = time.time()
        self._read_ahead(ahead)
        good = [i for i, load in enumerate(loads) if isinstance(load, str)]
        try:
            drawn = self._draw([(works[i], cases[i]) for i in good])
        except CheckpointError as error:
            return [*(None for _ in works), [error for _ in works]]
        rollouts = dict(zip(good, drawn, strict=True))
        spans = Span(began, loaded), Span(loaded, time.time())
        records = [
            self._record(load, rollouts[i], *spans) if isinstance(load, str) else load
            for i, load in enumerate(loads)
        ]
        return [*(rollouts.get(i) for i in range(len(works))), records]

    def _load(self, checkpoint: Checkpoint) -> str | CheckpointError:
        """The fingerprint of what is in place now, or why it cannot be."""
        wanted = checkpoint.path, checkpoint.base
        if wanted != self.loaded:
            self.loaded = None
            self._reading = self._await_read(wanted)
            try:
                local = self.near.bring(checkpoint)
                self.fingerprint = self.engine.load(local)
                refuse_replaced(local)
                self._check(local)
            except CheckpointError as error:
                return error
            self.loaded = wanted
        return self.fingerprint

    def _read_ahead(self, checkpoint: Checkpoint | None) -> None:
        """Begin to read a checkpoint in the background, unless another is still being read."""
        if checkpoint is not None and (self._ahead is None or self._ahead[1].done()):
            wanted = checkpoint.path, checkpoint.base
            self._ahead = wanted, self._background.submit(self._read, checkpoint)

    def _read(self, checkpoint: Checkpoint) -> Span:
        began = time.time()
        with suppress(CheckpointError, OSError):
            self.engine.prefetch(self.near.bring(checkpoint, patience=0))
        self.near.leave_others()
        return Span(began, time.time())

    def _await_read(self, wanted: Weights) -> Span | None:
        """When a checkpoint was read in the background, once it is; None where it was not."""
        if self._ahead is None or self._ahead[0] != wanted:
            return None
        return self._ahead[1].result()

    def _check(self, checkpoint: Checkpoint) -> None:
        """The first checkpoint swapped in is compared with a fresh engine, where an engine can."""
        self.swaps += 1
        if self.swaps == 2 and isinstance(self.engine, SelfChecking):
            note = self.engine.self_check(checkpoint)
            LOG.info("%s: %s", checkpoint.path, note or "swapped in, answers as in a fresh engine")

    def _draw(self, asked: Sequence[tuple[Work, list[Case]]]) -> list[list[Rollout]]:
        if len(asked) == 1:
            work, cases = asked[0]
            # One that was loaded after it and refused may have taken its place.
            fault = self._load(work.checkpoint)
            if isinstance(fault, CheckpointError):
                raise fault
            return [generate(self.engine, cases, work.sampling, work.rows)]
        if not asked:
            return []
        self.loaded = None
        pairs = [(self.near.bring(work.checkpoint), cases) for work, cases in asked]
        drawn = generate_many(cast(ManyAtOnce, self.engine), pairs, asked[0][0].sampling)
        for checkpoint, _ in pairs:
            refuse_replaced(checkpoint)
        return drawn

    def _record(
        self, fingerprint: str, rollouts: Sequence[Rollout], loading: Span, generating: Span
    ) -> Generated:
        return Generated(
            fingerprint=fingerprint,
            determinism=self.engine.determinism,
            engine_process=os.getpid(),
            loading=loading,
            generating=generating,
            tokens=sum(r.completion.completion_tokens or 0 for r in rollouts),
            reading=self._reading,
        )


class Scorer:
    """Grades rollouts and writes their partitions."""

    def __init__(
        self,
        out: Where,
        engine: EngineBlock,
        provenance: Mapping[str, Any],
        at: Callable[[str], None] = files.no_boundary,
        judge: JudgeBlock = FREELY,
        answers: judging.Answers | None = None,
    ) -> None:
        """answers: what the judge's engine says, where it is one."""
        self.out, self.engine, self.provenance, self.at = out, engine, provenance, at
        self.judge, self.answers = judge, answers
        self.is_wary = False
        """Whether the judge did not answer when it was last asked."""

    def write(
        self, work: Work, cases: list[Case], records: Sequence[Generated], *parts: list[Rollout]
    ) -> list[Written]:
        """The rollouts under each partition's grade, each committed; parts come in order.

        Raises JudgeBusy where a judge does not answer: what is not written then stays owed.
        """
        drawn = Kept(_together(records), [r for part in parts for r in part], self.made)
        return self._grade(work, cases, drawn)

    def finish(
        self, work: Work, cases: list[Case], records: Sequence[Generated], *parts: list[Rollout]
    ) -> list[Written]:
        """`write`, where a judge that does not answer costs no rollout: the next launch has it."""
        drawn = Kept(_together(records), [r for part in parts for r in part], self.made)
        try:
            return self._grade(work, cases, drawn)
        except (judging.JudgeBusy, judging.JudgeError):
            unjudged.keep(self.out, work, drawn)
            raise

    def resume(self, work: Work, cases: list[Case]) -> list[Written] | None:
        """Write what an earlier launch kept; None where it is of no use."""
        drawn = unjudged.kept(self.out, work, cases, time.time())
        if drawn is None:
            return None
        written = self._grade(work, cases, drawn)
        unjudged.drop(self.out, work)
        return written

    @property
    def made(self) -> Mapping[str, Any]:
        """What of the provenance is of the rollouts, not of their scores."""
        return {name: self.provenance[name] for name in MADE if name in self.provenance}

    def _grade(self, work: Work, cases: list[Case], drawn: Kept) -> list[Written]:
        return [self._write(partition, work, cases, drawn) for partition in work.partitions]

    def _write(self, partition: Partition, work: Work, cases: list[Case], drawn: Kept) -> Written:
        began, rollouts, generated = time.time(), drawn.rollouts, drawn.record
        environment = build(partition.environment)
        asked = self._judgements(environment, cases, rollouts)
        graded, scores = grade(environment, cases, rollouts, asked)
        rows = schema.table(
            environment,
            cases,
            graded,
            scores,
            sampling=work.sampling,
            engine=self.engine.name,
            dtype=self.engine.dtype,
            generated=generated,
        )
        told = {**self.provenance, **drawn.made}
        size = store.commit(self.out, partition, rows, environment, told, self.at)
        nulls = sum(r.completion.error is not None for r in graded)
        span = Span(began, time.time())
        return Written(partition, len(rollouts), nulls, size, os.getpid(), span, generated)

    def _judgements(
        self, environment: Environment, cases: list[Case], rollouts: Sequence[Rollout]
    ) -> list[Any]:
        about = self.judge, str(self.out), self.answers, self.is_wary
        try:
            found = judging.judgements(environment, cases, rollouts, *about)
        except judging.JudgeBusy:
            self.is_wary = True
            raise
        self.is_wary = self.is_wary and not any(found)
        return found
