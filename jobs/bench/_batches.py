"""The same rollouts by our engine, swaps included, and by vLLM's own `LLM`."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hackbait.environment import Case
from jobs.bench._models import WEIGHTS
from pipeline import rollout
from pipeline.records import Checkpoint, Sampling


@dataclass(frozen=True, slots=True)
class Setting:
    """One sweep of the bench."""

    checkpoints: int
    files: int
    """Different checkpoints on disk, gone through in turn."""
    cases: int
    n: int
    tokens: int
    options: dict[str, Any]

    @property
    def sampling(self) -> Sampling:
        return Sampling(n=self.n, max_tokens=self.tokens)


def sweep(
    engine: Any,
    checkpoints: Sequence[Checkpoint],
    cases: Sequence[Case],
    setting: Setting,
    seed: int,
) -> int:
    """Tokens of all checkpoints in turn, each read while the one before it generates."""
    for checkpoint in checkpoints:  # so that none of them counts as read
        os.utime(Path(checkpoint.path) / WEIGHTS)
    tokens = 0
    with ThreadPoolExecutor(1) as background:
        for i in range(setting.checkpoints):
            engine.load(checkpoints[i % len(checkpoints)])
            read = background.submit(engine.prefetch, checkpoints[(i + 1) % len(checkpoints)])
            sampling = Sampling(n=setting.n, max_tokens=setting.tokens, seed=seed)
            tokens += count([rollout.generate(engine, cases, sampling)])
            read.result()
    return tokens


def bare_generate(
    checkpoint: Checkpoint, engine: Any, cases: Sequence[Case], setting: Setting
) -> Callable[[int], int]:
    """The same batches through vLLM's own `LLM`, from token ids to texts, nothing swapped."""
    from vllm import LLM, SamplingParams  # after the engine has prepared this process for it

    llm = LLM(
        checkpoint.path,
        dtype="float32",
        enforce_eager=True,
        enable_chunked_prefill=False,
        block_size=32,
        max_model_len=setting.options["max_model_len"],
        kv_cache_memory_bytes=setting.options["kv_cache"],
        generation_config="vllm",
        use_tqdm_on_load=False,
    )
    tokenizer = llm.get_tokenizer()
    asked = [
        {"prompt_token_ids": ids}
        for case in cases
        for ids in [
            tokenizer.apply_chat_template(
                [dict(m) for m in case.messages], add_generation_prompt=True, return_dict=False
            )
        ]
        for _ in range(setting.n)
    ]

    def generate(seed: int) -> int:
        sampling = Sampling(n=setting.n, max_tokens=setting.tokens, seed=seed)
        seeds = [s for own in rollout.sampling_seeds(cases, sampling) for s in own]
        tokens = 0
        for _ in range(setting.checkpoints):
            llm.reset_prefix_cache()
            params = [
                SamplingParams(temperature=1.0, seed=s, max_tokens=setting.tokens) for s in seeds
            ]
            outputs = llm.generate(asked, params, use_tqdm=False)
            answers = [output.outputs[0] for output in outputs]
            tokens += sum(len(a.token_ids) - (a.finish_reason == "stop") for a in answers)
        return tokens

    return generate


def count(drawn: Sequence[Sequence[Any]]) -> int:
    return sum(r.completion.completion_tokens or 0 for rows in drawn for r in rows)
