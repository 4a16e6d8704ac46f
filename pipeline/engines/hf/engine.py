"""One live model of transformers, its own forward, checkpoint after checkpoint."""

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch
from transformers import PreTrainedModel

from hackbait.environment import Case
from pipeline.checkpoints.headers import read_ahead
from pipeline.checkpoints.identity import fingerprint_files
from pipeline.engines import EngineError
from pipeline.engines.hf import chat, weights
from pipeline.engines.hf.model import (
    architecture,
    blueprint,
    context,
    new_model,
    read_config,
    vocabulary,
)
from pipeline.engines.hf.sampler import sample
from pipeline.records import TOO_LONG, Checkpoint, CheckpointError, Completion, Sampling

LOG = logging.getLogger(__name__)
POSITIONS = 2**18
"""Tokens of one batch at most, prompts and completions of all its rollouts together."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The checkpoint in place."""

    model: PreTrainedModel
    architecture: str
    chat: chat.Chat


@dataclass(frozen=True, slots=True)
class Request:
    """One rollout that is owed."""

    prompt: Sequence[int]
    seed: int
    case: int
    sample: int


class HfEngine:
    """See `Engine`; options as `build` has them."""

    def __init__(
        self, dtype: str, device: str, threads: int, batch: int | None, max_context: int | None
    ) -> None:
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_num_threads(threads)
        self.determinism = "text" if dtype == "float32" else "none"
        self._dtype, self._device = getattr(torch, dtype), torch.device(device)
        self._batch = batch or (256 if device == "cpu" else 1024)
        self._max_context = max_context or sys.maxsize
        self._policy: Policy | None = None
        self._base: tuple[str, weights.Weights] | None = None

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """See `Engine.prefetch`: into the page cache."""
        read_ahead(fingerprint_files(checkpoint.path))

    def load(self, checkpoint: Checkpoint) -> str:
        """See `Engine.load`. All is checked before anything live is touched."""
        path, known = checkpoint.path, self._policy
        places = _places(checkpoint)
        config = read_config(places[-1] if checkpoint.kind == "adapter" else places[0])
        speech = chat.read(
            places, getattr(config, "eos_token_id", None), known.chat if known else None
        )
        loaded = self._read(checkpoint, places)
        wanted = architecture(config)
        if known and known.architecture == wanted:
            model = known.model
        else:
            # What a configuration claims takes no memory until its weights are known to fit.
            weights.match(blueprint(config, path, len(loaded.tensors)), loaded, path)
            model = new_model(config, self._dtype, self._device)
            LOG.info("%s: a new %s on %s", path, type(model).__name__, self._device)
        weights.copy(weights.match(model, loaded, path))
        self._policy = Policy(model, wanted, speech)
        return loaded.fingerprint

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """See `Engine.generate`. `completion_tokens` leaves out the token that stopped it.

        Where prompt and max_tokens exceed the context: text None, error `prompt_too_long`.
        """
        if self._policy is None:
            raise EngineError("engine hf: no checkpoint is loaded")
        prompts = _encode(self._policy, cases)
        limit = min(self._max_context, context(self._policy.model) or sys.maxsize)
        done = [
            [Completion(None, None, len(prompt), None, TOO_LONG)] * len(own)
            for prompt, own in zip(prompts, seeds, strict=True)
        ]
        owed = [
            Request(prompt, seed, case, sample)
            for case, (prompt, own) in enumerate(zip(prompts, seeds, strict=True))
            if len(prompt) + sampling.max_tokens <= limit
            for sample, seed in enumerate(own)
        ]
        for requests in batches(owed, self._batch, sampling.max_tokens):
            completions = _complete(self._policy, requests, sampling)
            for request, completion in zip(requests, completions, strict=True):
                done[request.case][request.sample] = completion
        return done

    def _read(self, checkpoint: Checkpoint, places: Sequence[Path]) -> weights.Weights:
        """The weights, merged with their base, which is kept for the next adapter on it."""
        if checkpoint.kind != "adapter":
            self._base = None
            return weights.read(places[0])
        stamp = weights.stamp(places[-1])
        if self._base is None or self._base[0] != stamp:
            self._base = (stamp, weights.read(places[-1]))
        return weights.merge(self._base[1], places[0])


def batches(owed: Sequence[Request], rollouts: int, room: int) -> Iterator[list[Request]]:
    """Prompts of like length together and equal ones side by side.

    A batch holds at most `rollouts`, and at most POSITIONS tokens once each has `room` more.
    """
    batch: list[Request] = []
    for request in sorted(owed, key=lambda r: (len(r.prompt), r.prompt)):
        if batch and len(batch) >= min(rollouts, POSITIONS // (len(request.prompt) + room)):
            yield batch
            batch = []
        batch.append(request)
    if batch:
        yield batch


def _places(checkpoint: Checkpoint) -> list[Path]:
    """Folders in the order in which a tokenizer is looked for; the base, if any, is last."""
    places = [Path(checkpoint.path)]
    if not places[0].is_dir():
        raise CheckpointError(f"{checkpoint.path}: no such folder")
    if checkpoint.base and Path(checkpoint.base).is_dir():
        places.append(Path(checkpoint.base))
    elif checkpoint.kind == "adapter":
        raise CheckpointError(
            f"{checkpoint.path}: its base {checkpoint.base or '(not named)'} is no folder here; "
            "set `base` of its run to one"
        )
    return places


def _encode(policy: Policy, cases: Sequence[Case]) -> list[list[int]]:
    """Prompt token ids by case. Raises CheckpointError."""
    if not cases:
        return []
    prompts = policy.chat.encode([[dict(m) for m in case.messages] for case in cases])
    if max(map(max, prompts)) >= vocabulary(policy.model):
        raise CheckpointError(f"{policy.chat.path}: its tokenizer has tokens that its model lacks")
    return prompts


def _complete(policy: Policy, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
    """One batch through the model, in the order given: equal prompts must be side by side."""
    groups = [(prompt, len(list(same))) for prompt, same in groupby(r.prompt for r in requests)]
    rows = [i for i, (_, count) in enumerate(groups) for _ in range(count)]
    seeds, stops = [r.seed for r in requests], policy.chat.stops
    try:
        drawn = sample(policy.model, [p for p, _ in groups], rows, seeds, stops, sampling)
    except FloatingPointError as error:
        raise CheckpointError(
            f"{policy.chat.path}: {error}: training diverged, or a file is damaged"
        ) from error
    stopped = [ids[-1] in stops for ids in drawn]
    kept = [ids[:-1] if stop else ids for ids, stop in zip(drawn, stopped, strict=True)]
    return [
        Completion(text, "stop" if stop else "length", len(request.prompt), len(ids))
        for request, ids, stop, text in zip(
            requests, kept, stopped, policy.chat.decode(kept), strict=True
        )
    ]
