"""From cases to one batch of a live engine, and from its tokens back to completions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hackbait.environment import Case
from pipeline.engines.hf.chat import Chat
from pipeline.engines.vllm.live import Drawn, Live
from pipeline.engines.vllm.settings import Request
from pipeline.records import TOO_LONG, CheckpointError, Completion, Sampling


@dataclass(frozen=True, slots=True)
class Policy:
    """A checkpoint that can be asked while its weights are in place."""

    fingerprint: str
    weights: str
    """Fingerprint of the full weights that it needs in the engine."""
    chat: Chat
    adapter: Any
    """vLLM's handle of what it needs beside them; None for nothing."""


Asked = tuple[Policy, Sequence[Case], Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Owed:
    """One rollout, and where it belongs."""

    request: Request
    chat: Chat
    row: list[Completion]
    sample: int


def complete(
    live: Live, asked: Sequence[Asked], sampling: Sampling
) -> list[list[list[Completion]]]:
    """Completions [policy][case][sample], all in one batch; what cannot fit is not asked."""
    done: list[list[list[Completion]]] = []
    owed: list[Owed] = []
    for policy, cases, seeds in asked:
        prompts = _encode(policy.chat, cases, live.vocabulary)
        rows: list[list[Completion]] = []
        for prompt, own in zip(prompts, seeds, strict=True):
            null = Completion(None, None, len(prompt), None, TOO_LONG)
            rows.append([null] * len(own))
            if len(prompt) + sampling.max_tokens <= live.limit:
                stops = list(policy.chat.stops)
                requests = [Request(prompt, seed, stops, policy.adapter) for seed in own]
                owed += [Owed(r, policy.chat, rows[-1], i) for i, r in enumerate(requests)]
        done.append(rows)
    drawn = live.run([rollout.request for rollout in owed], sampling) if owed else []
    for rollout, answer, text in zip(owed, drawn, _texts(owed, drawn), strict=True):
        rollout.row[rollout.sample] = Completion(
            text=text,
            finish_reason="stop" if answer.stopped else "length",
            prompt_tokens=len(rollout.request.prompt),
            completion_tokens=len(_kept(answer)),
        )
    return done


def _encode(chat: Chat, cases: Sequence[Case], vocabulary: int) -> list[list[int]]:
    """Prompt token ids by case. Raises CheckpointError."""
    if not cases:
        return []
    prompts = chat.encode([[dict(message) for message in case.messages] for case in cases])
    if max(map(max, prompts)) >= vocabulary:
        raise CheckpointError(f"{chat.path}: its tokenizer has tokens that its model lacks")
    return prompts


def _texts(owed: Sequence[Owed], drawn: Sequence[Drawn]) -> list[str]:
    """Decoded by each one's own tokenizer, neighbours with equal ones together."""
    texts: list[str] = []
    start = 0
    for i in range(1, len(owed) + 1):
        if i == len(owed) or owed[i].chat.files != owed[start].chat.files:
            texts += owed[start].chat.decode([_kept(answer) for answer in drawn[start:i]])
            start = i
    return texts


def _kept(answer: Drawn) -> list[int]:
    return answer.ids[:-1] if answer.stopped else answer.ids
