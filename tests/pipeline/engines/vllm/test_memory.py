"""Too little memory is told in the options that mend it, however vLLM says it."""

import pytest

from pipeline.engines.vllm.memory import too_little

SAID = (
    "To serve at least one request with the model's max seq len (2048), (1.25 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (0.5 GiB). {}Try increasing "
    "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing "
    "`max_model_len` when initializing the engine. See https://docs.vllm.ai for more details."
)
"""As vLLM 0.32 words it."""
FITS = "Based on the available memory, the estimated maximum model length is 800. "


@pytest.mark.parametrize(("fits", "shorter"), [(FITS, "800 or less"), ("", "less")])
def test_a_cache_too_small_names_the_bytes_it_needs_and_the_length_that_fits(
    fits: str, shorter: str
) -> None:
    """1.255 GiB, as the figure was rounded, and 128 / 2048 more are 1365.44 MiB: 1366 * 2**20."""
    assert too_little(SAID.format(fits)) == (
        f"set kv_cache to 1432354816 (bytes) or more, max_model_len to {shorter}, or a larger "
        "gpu_memory_utilization: one rollout of 2048 tokens takes 1.25 GiB of KV cache, and there "
        "are 0.5 GiB"
    )


def test_no_cache_at_all_and_memory_in_any_other_words_have_their_cure_first() -> None:
    none = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when"
    assert str(too_little(none)).startswith("set kv_cache (bytes) or a larger gpu_memory_util")
    other = "CUDA out of memory. Tried to allocate 2.00 GiB"
    assert str(too_little(other)).startswith("set kv_cache (bytes), max_model_len or gpu_memory")
    assert str(too_little(other)).endswith(other)


def test_what_is_not_about_memory_is_another_matter() -> None:
    assert too_little("Model architectures ['X'] are not supported for now.") is None
