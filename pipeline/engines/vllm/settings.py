"""How a vLLM engine is started and asked: every setting that could change a row, said aloud."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm import SamplingParams, envs
from vllm.platforms import current_platform

from pipeline.engines import EngineError
from pipeline.engines.vllm.adapters import Lora
from pipeline.engines.vllm.folders import Shapes
from pipeline.engines.vllm.worker import LOAD_FORMAT, Swapping
from pipeline.records import COOLEST, HOTTEST, Sampling

CPU_CACHE = 2**29
"""Bytes; vLLM's own default is most of the machine, filled with zeros at each start."""
CPU_BLOCK = 32
"""Tokens; vLLM's own 128 keeps samples of one short prompt from sharing it."""


@dataclass(frozen=True, slots=True)
class Options:
    """As `build` takes them."""

    dtype: str
    max_model_len: int | None
    kv_cache: int | None
    gpu_memory_utilization: float
    tensor_parallel_size: int
    max_num_seqs: int | None
    max_loras: int
    max_lora_rank: int | None
    merge: bool
    enforce_eager: bool | None


@dataclass(frozen=True, slots=True)
class Shape:
    """What cannot be changed in a live engine."""

    architecture: str
    tensors: Shapes
    context: int | None
    """Tokens; None where the configuration knows no limit."""
    tied: bool
    lora: Lora | None


@dataclass(frozen=True, slots=True)
class Request:
    """One rollout that is owed."""

    prompt: list[int]
    seed: int
    stops: list[int]
    adapter: Any = None


def on_cpu() -> bool:
    """Whether the vLLM of this process computes on the CPU."""
    return bool(current_platform.is_cpu())


def determinism(dtype: str) -> str:
    """See `Engine.determinism`: float32 on a CPU was measured, a GPU needs batch invariance."""
    if on_cpu():
        return "text" if dtype == "float32" else "none"
    return "text" if envs.VLLM_BATCH_INVARIANT else "none"


def check_sampling(sampling: Sampling) -> None:
    """EngineError where vLLM would quietly sample otherwise than asked, or not at all."""
    temperature = sampling.temperature
    if temperature and not COOLEST <= temperature <= HOTTEST:
        raise EngineError(
            f"engine vllm: temperature {temperature} is neither 0 nor in [{COOLEST}, {HOTTEST}], "
            "where vLLM takes it as it is"
        )


def arguments(folder: Path, shape: Shape, options: Options) -> dict[str, Any]:
    cpu = on_cpu()
    eager = cpu if options.enforce_eager is None else options.enforce_eager
    chosen: dict[str, Any] = {
        "model": str(folder),
        "dtype": options.dtype,
        "max_model_len": min(filter(None, (options.max_model_len, shape.context)), default=None),
        "max_num_seqs": options.max_num_seqs,
        "tensor_parallel_size": options.tensor_parallel_size,
        "kv_cache_memory_bytes": options.kv_cache or (CPU_CACHE if cpu else None),
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "enforce_eager": eager,
        "skip_tokenizer_init": True,
        "trust_remote_code": False,
        "generation_config": "vllm",
        "seed": 0,
        "use_tqdm_on_load": False,
        "load_format": LOAD_FORMAT,
        "worker_extension_cls": f"{Swapping.__module__}.{Swapping.__name__}",
    }
    if cpu:
        # A seeded request whose prompt is cut in two ends the engine: "CPU Generator does not use
        # offset", seen with vLLM 0.32.0. A GPU's generator has an offset.
        chosen |= {"enable_chunked_prefill": False, "block_size": CPU_BLOCK}
    if shape.lora:
        chosen |= {
            "enable_lora": True,
            "max_loras": options.max_loras,
            "max_lora_rank": shape.lora.rank,
            "lora_target_modules": sorted(shape.lora.targets),
        }
    return chosen


def parameters(request: Request, sampling: Sampling, logprobs: bool) -> Any:
    """Every setting that could change a draw, so that none is a default of vLLM or the model."""
    return SamplingParams(
        n=1,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=0.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        repetition_penalty=1.0,
        seed=request.seed,
        min_tokens=0,
        max_tokens=sampling.max_tokens,
        stop=[],
        stop_token_ids=request.stops,
        ignore_eos=True,
        logprobs=0 if logprobs else None,
        detokenize=False,
    )
