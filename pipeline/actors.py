"""What runs in the processes of a sweep: plain classes that cluster.py places.

Inference actors own the accelerator and keep one engine alive; score actors grade and write.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hackbait.environment import Case
from pipeline import engines, store
from pipeline.config import EngineBlock
from pipeline.plan import build
from pipeline.records import (
    CheckpointError,
    EnvironmentSpec,
    Generated,
    Partition,
    Rollout,
    Shard,
    Work,
    Written,
)
from pipeline.rollout import generate, score
from pipeline.schedule import Weights, weights


def make_cases(spec: EnvironmentSpec, shard: Shard) -> list[Case]:
    """Cases of a shard."""
    return build(spec).cases(shard.start, shard.stop)


class Inference:
    """One live engine in one process; many checkpoints through it."""

    def __init__(self, block: EngineBlock) -> None:
        self.engine = engines.load(block.name, block.options)
        self.loaded: Weights | None = None
        self.fingerprint = ""

    def generate(
        self, work: Work, cases: list[Case]
    ) -> tuple[list[Rollout] | None, Generated | CheckpointError]:
        """Rollouts, which stay in the object store, and a record for the driver."""
        began = time.perf_counter()
        try:
            self._load(work)
            loaded = time.perf_counter()
            rollouts = generate(self.engine, cases, work.sampling)
        except CheckpointError as error:
            return None, error
        return rollouts, Generated(
            fingerprint=self.fingerprint,
            determinism=self.engine.determinism,
            load_seconds=loaded - began,
            generate_seconds=time.perf_counter() - loaded,
            tokens=sum(r.completion.completion_tokens or 0 for r in rollouts),
        )

    def _load(self, work: Work) -> None:
        if weights(work) != self.loaded:
            self.loaded = None
            self.fingerprint = self.engine.load(work.checkpoint)
            self.loaded = weights(work)


class Scorer:
    """Grades rollouts and writes their partitions."""

    def __init__(self, out: Path, engine: EngineBlock, provenance: Mapping[str, Any]) -> None:
        self.out, self.engine, self.provenance = out, engine, provenance

    def write(
        self, work: Work, cases: list[Case], rollouts: list[Rollout], generated: Generated
    ) -> list[Written]:
        """The rollouts under each partition's grade, each committed."""
        return [self._write(p, work, cases, rollouts, generated) for p in work.partitions]

    def _write(
        self,
        partition: Partition,
        work: Work,
        cases: list[Case],
        rollouts: list[Rollout],
        generated: Generated,
    ) -> Written:
        environment = build(partition.environment)
        rows = store.table(
            environment,
            cases,
            rollouts,
            score(environment, cases, rollouts),
            sampling=work.sampling,
            engine=self.engine.name,
            dtype=self.engine.dtype,
            generated=generated,
        )
        size = store.commit(self.out, partition, rows, environment, self.provenance)
        nulls = sum(r.completion.error is not None for r in rollouts)
        return Written(partition, len(rollouts), nulls, size)
