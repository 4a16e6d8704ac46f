"""Whether two engines with the same weights answer alike."""

from collections.abc import Sequence

from pipeline.engines.vllm.live import Drawn, Live
from pipeline.engines.vllm.settings import Request
from pipeline.records import Sampling

PROMPTS, TOKENS = 16, 16
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1, "float16": 0.1}
"""By how much the log-probabilities of one greedy rollout may differ."""


def answers(live: Live) -> list[Drawn]:
    """Greedy answers to prompts of unlike lengths and beginnings."""
    tokens = min(TOKENS, live.limit - PROMPTS)
    prompts = [
        [(i * 37 + j * (i + 1)) % live.vocabulary for j in range(i + 1)] for i in range(PROMPTS)
    ]
    greedy = Sampling(temperature=0, max_tokens=tokens)
    return live.run([Request(prompt, 0, []) for prompt in prompts], greedy, logprobs=True)


def difference(ours: Sequence[Drawn], theirs: Sequence[Drawn], dtype: str) -> str:
    """The first in which two lists of answers differ, as text; empty where they do not."""
    for our, their in zip(ours, theirs, strict=True):
        if our.ids != their.ids:
            return f"tokens {our.ids} and {their.ids}"
        if abs((our.logprob or 0.0) - (their.logprob or 0.0)) > TOLERANCE[dtype]:
            return f"log-probability {our.logprob} and {their.logprob}"
    return ""
