"""Engine `hf`: transformers, one live model, checkpoint after checkpoint."""

from typing import TYPE_CHECKING

from pipeline.engines import EngineError
from pipeline.records import TOO_LONG

if TYPE_CHECKING:
    from pipeline.engines.hf.engine import HfEngine

DTYPES = ("float32", "bfloat16", "float16")
ROWS = {"max_context": TOO_LONG}


def build(
    dtype: str = "float32",
    device: str = "auto",
    threads: int = 1,
    batch: int | None = None,
    max_context: int | None = None,
) -> "HfEngine":
    """An engine that has no checkpoint yet. Raises EngineError.

    device: as torch names it; `auto` takes CUDA where there is some
    threads: of the CPU, for the whole process
    batch: rollouts at once; by default 256 on a CPU and 1024 elsewhere
    max_context: tokens of prompt and completion, where that is less than the model's own
    """
    if dtype not in DTYPES:
        raise EngineError(f"engine hf: dtype {dtype!r} is none of {', '.join(DTYPES)}")
    if min(threads, batch or 1, max_context or 1) < 1:
        raise EngineError("engine hf: threads, batch and max_context are at least 1")
    # torch takes seconds to import, and the driver of a sweep has no use for it.
    from pipeline.engines.hf.engine import HfEngine

    return HfEngine(dtype, device, threads, batch, max_context)
