"""Engine `vllm`: one live vLLM engine, thousands of checkpoints through it."""

from typing import TYPE_CHECKING, Any

from pipeline.engines import EngineError
from pipeline.engines.vllm.start import check_platform, keep_memory, ready
from pipeline.records import TOO_LONG

if TYPE_CHECKING:
    from pipeline.engines.vllm.engine import VllmEngine

DTYPES = ("float32", "bfloat16", "float16")
MAX_LORAS = 8
ROWS = {"max_model_len": TOO_LONG, "merge": None}


def together(max_loras: int = MAX_LORAS, merge: bool = False, **others: Any) -> int:
    """Adapters that one batch of `build`'s engine may hold."""
    return 1 if merge else max_loras


def build(
    dtype: str = "float32",
    max_model_len: int | None = None,
    kv_cache: int | None = None,
    gpu_memory_utilization: float = 0.9,
    tensor_parallel_size: int = 1,
    max_num_seqs: int | None = None,
    max_loras: int = MAX_LORAS,
    max_lora_rank: int | None = None,
    merge: bool = False,
    enforce_eager: bool | None = None,
) -> "VllmEngine":
    """An engine that has no checkpoint yet; the first one decides its shape. Raises EngineError.

    max_model_len: tokens of prompt and completion, where that is less than the model's own
    kv_cache: bytes; by default half a GiB on a CPU, and what the weights leave on a GPU
    gpu_memory_utilization: share of a GPU's memory
    tensor_parallel_size: GPUs that one engine spans
    max_num_seqs: rollouts at once; by default vLLM's own
    max_loras: adapters at once
    max_lora_rank: the largest rank that is taken; by default vLLM's own limit
    merge: adapters are added to their base, one by one, instead of served beside it
    enforce_eager: no graph is compiled; by default on a CPU only
    """
    if dtype not in DTYPES:
        raise EngineError(f"engine vllm: dtype {dtype!r} is none of {', '.join(DTYPES)}")
    counts = (max_model_len, kv_cache, tensor_parallel_size, max_num_seqs, max_loras, max_lora_rank)
    if min(count for count in counts if count is not None) < 1:
        raise EngineError("engine vllm: every count and size is at least 1")
    if not 0 < gpu_memory_utilization <= 1:
        raise EngineError(
            f"engine vllm: gpu_memory_utilization {gpu_memory_utilization} is no share in (0, 1]"
        )
    ready()
    # vLLM reads its environment when it is imported, so not before `ready`.
    from vllm import __version__
    from vllm.platforms import current_platform

    check_platform(current_platform.device_type, __version__)
    if current_platform.is_cpu():
        keep_memory()
    from pipeline.engines.vllm.engine import VllmEngine
    from pipeline.engines.vllm.settings import Options

    options = Options(
        dtype=dtype,
        max_model_len=max_model_len,
        kv_cache=kv_cache,
        gpu_memory_utilization=gpu_memory_utilization,
        tensor_parallel_size=tensor_parallel_size,
        max_num_seqs=max_num_seqs,
        max_loras=max_loras,
        max_lora_rank=max_lora_rank,
        merge=merge,
        enforce_eager=enforce_eager,
    )
    return VllmEngine(options)
