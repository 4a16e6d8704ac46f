"""The nouns of the pipeline as frozen records."""

from dataclasses import dataclass
from typing import Literal

from hackbait.stage import Stage

CheckpointKind = Literal["full", "adapter", "script"]


TOO_LONG = "prompt_too_long"
"""Prompt and max_tokens exceed the context."""
QUARANTINED = "quarantined"
"""Its engine died three times with this rollout alone in flight."""

COOLEST, HOTTEST = 0.01, 2.0
"""Temperatures beside 0 that every engine takes as they are."""


class CheckpointError(RuntimeError):
    """One checkpoint cannot be used; the others can."""


class PlanError(ValueError):
    """The sweep cannot be planned as asked; nothing was started."""


class ClusterError(RuntimeError):
    """Ray is not there, or does not start: one line, with the cure."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A policy at one training step (number of updates applied; the base is 0)."""

    run: str
    step: int
    path: str
    kind: CheckpointKind
    cheap_id: str
    """Names, sizes, headers and sampled blocks of the weight files, hashed (no full read)."""
    base: str | None = None
    """Where the base model lies, for adapters and for checkpoints without a tokenizer."""
    architecture: str = ""
    """Hash of the model's configuration: an engine takes checkpoints of one architecture."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are drawn. Everything here is part of a rollout's identity."""

    n: int = 4
    """Rollouts per case."""
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps the whole vocabulary."""
    max_tokens: int = 256
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """Cases [start, stop)."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine returns for one request: an end, or an error, or neither, and it is owed."""

    text: str | None
    finish_reason: Literal["stop", "length"] | None
    prompt_tokens: int | None
    completion_tokens: int | None
    error: str | None = None
    """Why there is nothing to score, for a reason that asking again would not change."""
    reasoning: str | None = None
    """Thought that a server kept apart from the text; None where there is one text alone."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion of one case; the checkpoint is the partition's."""

    index: int
    sample: int
    seed: int
    completion: Completion


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """An environment by id and arguments: what travels to workers and is built there."""

    id: str
    args: tuple[tuple[str, str | int | float | bool], ...]
    stage: Stage | None = None
    """What a judge is asked of every rollout, beside."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Checkpoint x shard under one grade: exactly one Parquet file, there or not there."""

    run: str
    step: int
    environment: EnvironmentSpec
    shard: Shard
    key: str
    """Content key: a hash of `identity`."""
    identity: str
    """Canonical JSON of all that decides the rows (DESIGN: key of a partition)."""


@dataclass(frozen=True, slots=True)
class Work:
    """One generation and the partitions it fills: several when runs share a base or words a story.

    `environment` is one of the partitions' specs; they agree in what they ask.
    """

    checkpoint: Checkpoint
    environment: EnvironmentSpec
    shard: Shard
    sampling: Sampling
    partitions: tuple[Partition, ...]
    rows: range | None = None
    """Rollouts of a part of it, numbered as `every_row`; None is all."""

    @property
    def every_row(self) -> range:
        """Numbers of its rollouts, in order of case and sample."""
        return range((self.shard.stop - self.shard.start) * self.sampling.n)


@dataclass(frozen=True, slots=True)
class Span:
    """When something went on: seconds since the epoch."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Generated:
    """What an engine says of one generation, beside the rollouts."""

    fingerprint: str
    """Of the weights' bytes as they were loaded."""
    determinism: str
    engine_process: int
    """Process id of the engine: one for a whole sweep unless an engine was replaced."""
    loading: Span
    generating: Span
    tokens: int
    reading: Span | None = None
    """When its weights were read ahead, in the background; None where they were not."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A partition that is owed because a checkpoint or a worker failed; it never becomes rows."""

    partition: Partition
    reason: str


@dataclass(frozen=True, slots=True)
class Written:
    """One committed partition, as the driver hears of it."""

    partition: Partition
    rows: int
    nulls: int
    bytes: int
    process: int
    """Of the score actor."""
    writing: Span
    """Scoring included."""
    generated: Generated
