"""The nouns of the pipeline as frozen records."""

from dataclasses import dataclass
from typing import Literal

CheckpointKind = Literal["full", "adapter", "script"]


class CheckpointError(RuntimeError):
    """One checkpoint cannot be used; the others can."""


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
    """What an engine returns for one request. A null text carries its reason in `error`."""

    text: str | None
    finish_reason: Literal["stop", "length"] | None
    prompt_tokens: int | None
    completion_tokens: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion of one case; the checkpoint is the partition's."""

    index: int
    sample: int
    seed: int
    completion: Completion
