"""What runs inside vLLM's worker: weights loaded exactly, and new ones in place of the old."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from vllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

from pipeline.engines.hf import weights
from pipeline.engines.vllm.folders import tensors

LOAD_FORMAT = "exact"


@contextmanager
def unwritten_is_nan() -> Iterator[None]:
    """Parameters made here are NaN until they are written, so that a forgotten one cannot hide.

    vLLM (0.32) overlooks a missing tensor that it packs with others, as q_proj with k_proj.
    """
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


@register_model_loader(LOAD_FORMAT)
class ExactLoader(DefaultModelLoader):  # type: ignore[misc]
    """Loads the files that a fingerprint covers and no others, into parameters that are NaN."""

    def __init__(self, load_config: Any) -> None:
        super().__init__(replace(load_config, load_format="auto"))

    def get_all_weights(self, model_config: Any, model: Any) -> Any:
        return tensors(Path(model_config.model))

    def load_model(self, *args: Any, **options: Any) -> Any:
        with unwritten_is_nan():
            return super().load_model(*args, **options)


class Swapping:
    """Mixed into vLLM's worker, which calls its methods by name (`worker_extension_cls`)."""

    def swap_checkpoint(
        self, folder: str, adapter: str | None, ignored: list[str], count: int
    ) -> None:
        """Every parameter from the weight files of a folder, plus those of a LoRA adapter.

        The caller has compared names and shapes with those that the engine was started from, whose
        parameters are `count` tensors; `ignored` ones are passed over. When this raises, the
        weights are neither the old nor the new ones.
        """
        loaded = (
            iter(weights.merge(weights.read(Path(folder)), Path(adapter)).tensors.items())
            if adapter
            else tensors(Path(folder))
        )
        kept = [(name, tensor) for name, tensor in loaded if name not in ignored]
        if len(kept) != count:
            raise RuntimeError(f"{folder}: {len(kept)} tensors instead of {count}")
        self.narrow_biases()
        cast(Any, self).reload_weights(weights_iterator=iter(kept))
        self.repack_tied_head()

    def narrow_biases(self) -> None:
        """Give biases back the dtype that they are loaded in.

        A CPU with AMX widens those of small layers to float32 after loading, and would then take
        a float32 checkpoint's values unrounded: seen with vLLM 0.32.0, bfloat16, Qwen2, where a
        swapped checkpoint answered otherwise than in a fresh engine.
        """
        worker = cast(Any, self)
        if worker.device.type == "cpu":
            for layer in worker.model_runner.get_model().modules():
                bias, wanted = getattr(layer, "bias", None), getattr(layer, "params_dtype", None)
                if isinstance(bias, torch.Tensor) and wanted and bias.dtype != wanted:
                    bias.data = bias.data.to(wanted)

    def repack_tied_head(self) -> None:
        """Rebuild what a CPU made of a weight that two layers share.

        Each layer keeps a packed copy there for its matrix product. The head of a tied model has no
        tensor of its own in a checkpoint, so that its copy would stay the old one: seen with vLLM
        0.32.0 on CPU, where output was silently wrong. On a GPU there is no copy.
        """
        worker = cast(Any, self)
        if worker.device.type != "cpu":
            return
        tables = [
            layer
            for layer in worker.model_runner.get_model().modules()
            if isinstance(layer, VocabParallelEmbedding)
        ]
        shared = Counter(layer.weight.data_ptr() for layer in tables)
        for layer in tables:
            if isinstance(layer, ParallelLMHead) and shared[layer.weight.data_ptr()] > 1:
                layer.quant_method.process_weights_after_loading(layer)
