"""One vLLM engine in this process: built, its weights swapped, asked, and never trusted again
after anything went wrong in it."""

import gc
import logging
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from vllm import LLM
from vllm import __version__ as VERSION
from vllm.lora.request import LoRARequest

from pipeline.engines import EngineDied, EngineError
from pipeline.engines.vllm.folders import HEAD
from pipeline.engines.vllm.memory import too_little
from pipeline.engines.vllm.settings import Options, Request, Shape, arguments, parameters
from pipeline.records import CheckpointError, Sampling

LOG = logging.getLogger(__name__)
PROBE = 8
"""Tokens of the prompt that tries new weights."""
ADAPTER_IDS = count(1)
"""vLLM caches adapters by number, so a number is never used again in a process."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came of a request; `ids` end with the stop that ended them."""

    ids: list[int]
    stopped: bool
    logprob: float | None
    """Of all ids together, where it was asked for."""


class Live:
    """A running engine, the weights that are in it, and the adapters beside them."""

    def __init__(self, folder: Path, fingerprint: str, shape: Shape, options: Options) -> None:
        """Load a full checkpoint. Raises CheckpointError, or EngineError when memory lacks."""
        self.shape = shape
        self.weights = ""
        """Fingerprint of the full weights in place; empty when they are not to be used."""
        self._adapters: OrderedDict[str, Any] = OrderedDict()
        self._room = options.max_loras
        self._died = ""
        self._llm = _start(folder, shape, options)
        self.limit: int = self._llm.model_config.max_model_len
        self.vocabulary: int = self._llm.model_config.get_vocab_size()
        try:
            self._accept(folder, fingerprint)
        except CheckpointError:
            self.close()
            raise

    def swap(self, folder: Path, adapter: Path | None, fingerprint: str) -> None:
        """Other full weights of the same shape in place, merged with an adapter if there is one.

        Raises CheckpointError when they give no finite numbers, EngineDied when the swap failed.
        """
        ignored = [HEAD] if self.shape.tied else []
        told = (str(folder), str(adapter) if adapter else None, ignored, len(self.shape.tensors))
        self.weights = ""
        self._adapters.clear()
        with self._alive(f"loading {adapter or folder}"):
            self._llm.collective_rpc("swap_checkpoint", args=told)
            if not self._llm.reset_prefix_cache():
                raise RuntimeError("its prefix cache could not be emptied")
        self._accept(adapter or folder, fingerprint)

    def adapt(self, folder: Path, fingerprint: str) -> Any:
        """The adapter of a folder beside the base in place, the longest unused one making room.

        Raises CheckpointError when vLLM refuses it or it gives no finite numbers.
        """
        known = self._adapters.get(fingerprint)
        if known is not None:
            self._adapters.move_to_end(fingerprint)
            return known
        while len(self._adapters) >= self._room:
            self.evict(next(iter(self._adapters)))
        request = LoRARequest(fingerprint, next(ADAPTER_IDS), str(folder))
        with self._alive(f"loading {folder}"):
            refusal = self._refusal(request)
        if refusal:
            raise CheckpointError(f"{folder}: vLLM refuses the adapter: {refusal}")
        self._adapters[fingerprint] = request
        if not self._gives_numbers(request):
            self.evict(fingerprint)
            raise CheckpointError(
                f"{folder}: its logits are not finite: training diverged, or a file is damaged"
            )
        return request

    def evict(self, fingerprint: str) -> None:
        """Forget an adapter."""
        with self._alive("removing an adapter"):
            self._llm.llm_engine.remove_lora(self._adapters.pop(fingerprint).lora_int_id)

    def run(
        self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False
    ) -> list[Drawn]:
        """All requests as one batch, in order; with an adapter all of them or none.

        A row without an adapter in a batch whose adapters fill every slot is answered by one of
        them: seen with vLLM 0.32.0 on CPU. Apart they are also faster. Raises EngineDied.
        """
        adapters = [request.adapter for request in requests]
        if any(adapters) and not all(adapters):
            raise ValueError("rows with and without an adapter in one batch")
        with self._alive("generating"):
            outputs = self._llm.generate(
                [{"prompt_token_ids": request.prompt} for request in requests],
                [parameters(request, sampling, logprobs) for request in requests],
                use_tqdm=False,
                lora_request=adapters if any(adapters) else None,
            )
            return [
                self._drawn(request, output)
                for request, output in zip(requests, outputs, strict=True)
            ]

    def forget(self) -> None:
        """What is loaded is not what was hashed: load it again before it is used."""
        self.weights = ""
        while self._adapters:
            self.evict(next(iter(self._adapters)))

    def close(self) -> None:
        """Free its memory, and what all engines of a process share: before the next one is built.

        Left to the garbage collector, this would strike a later engine while that one works.
        """
        self._died = "it was closed"
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm
        gc.collect()

    def holds(self, weights: str, adapter: Any) -> bool:
        """Whether these full weights are in place, and this adapter, if any, beside them."""
        return self.weights == weights and (adapter is None or adapter in self._adapters.values())

    def check(self) -> None:
        """EngineDied unless the engine can be trusted."""
        if self._died:
            raise EngineDied(f"engine vllm died, {self._died}; its process is to be replaced")

    @contextmanager
    def _alive(self, doing: str) -> Iterator[None]:
        """However the block is left otherwise than by its end, the engine is dead from then on.

        What vLLM half did it does not undo: requests stay queued, tensors stay unwritten.
        """
        self.check()
        self._died = doing
        try:
            yield
        except Exception as error:
            self._died = f"{doing}: {type(error).__name__}: {_line(error)}"
            raise EngineDied(f"engine vllm died, {self._died}") from error
        self._died = ""

    def _refusal(self, request: Any) -> str:
        """Why vLLM takes no such adapter, which it says before it keeps any of it; else empty."""
        try:
            self._llm.llm_engine.add_lora(request)
        except ValueError as error:
            return _line(error)
        return ""

    def _accept(self, folder: Path, fingerprint: str) -> None:
        """Name the weights that have just been loaded, if they give numbers."""
        self.weights = fingerprint
        with self._alive("naming its weights"):
            self._llm.update_weight_version(fingerprint)
        if not self._gives_numbers(None):
            self.weights = ""
            raise CheckpointError(
                f"{folder}: its logits are not finite: a tensor is missing, training diverged, or "
                "a file is damaged"
            )

    def _gives_numbers(self, adapter: Any) -> bool:
        prompt = [i % self.vocabulary for i in range(min(PROBE, self.limit - 1))]
        request = Request(prompt, 0, [], adapter)
        (drawn,) = self.run([request], Sampling(temperature=0, max_tokens=1), logprobs=True)
        return drawn.logprob is not None and math.isfinite(drawn.logprob)

    def _drawn(self, request: Request, output: Any) -> Drawn:
        """Raises RuntimeError when other weights answered, or nobody did."""
        (answer,) = output.outputs
        versions = {span.version for span in answer.weight_versions or ()}
        if versions != {self.weights} or output.lora_request != request.adapter:
            raise RuntimeError(f"weights {versions or 'unknown'} answered for {self.weights}")
        if answer.finish_reason not in ("stop", "length"):
            raise RuntimeError(f"a rollout ended by {answer.finish_reason}")
        stopped = answer.finish_reason == "stop"
        return Drawn(list(answer.token_ids), stopped, answer.cumulative_logprob)


def _start(folder: Path, shape: Shape, options: Options) -> Any:
    LOG.info("%s: a new vLLM %s engine", folder, VERSION)
    try:
        return LLM(**arguments(folder, shape, options))
    except Exception as error:
        gc.collect()
        line = _line(error)
        if cure := too_little(line):
            raise EngineError(f"engine vllm: {cure}") from error
        raise CheckpointError(f"{folder}: vLLM cannot load it: {line}") from error


def _line(error: Exception) -> str:
    """What an exception says, on one line; a pydantic error says it on its second."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("Value error, ")] or lines
    return said[0].removeprefix("Value error, ") if said else type(error).__name__
