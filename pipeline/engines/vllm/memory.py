"""vLLM's words for too little memory, in ours: the cure first, in the units of the options."""

import math
import re

LITTLE = re.compile("memory|kv cache", re.IGNORECASE)
TOO_SMALL = re.compile(
    r"max seq len \((?P<tokens>\d+)\), \(?(?P<needed>[\d.]+) GiB KV cache is needed.*?"
    r"available KV cache memory \((?P<there>[\d.]+) GiB\)"
    r"(?:.*?maximum model length is (?P<fits>\d+))?",
    re.DOTALL,
)
"""Seen with vLLM 0.32."""
NONE_LEFT = "No available memory for the cache blocks"
ROUNDED = 0.005
"""GiB that a figure of two decimals may leave out."""
BLOCK = 128
"""Tokens at most of the block that vLLM keeps for itself beside what it says it needs."""
MIB = 2**20


def too_little(said: str) -> str | None:
    """What to set, then why; None where vLLM speaks of something else."""
    if found := TOO_SMALL.search(said):
        gib = (float(found["needed"]) + ROUNDED) * (1 + BLOCK / int(found["tokens"]))
        least = math.ceil(gib * 2**30 / MIB) * MIB
        shorter = f"{found['fits']} or less" if found["fits"] else "less"
        return (
            f"set kv_cache to {least} (bytes) or more, max_model_len to {shorter}, or a larger "
            f"gpu_memory_utilization: one rollout of {found['tokens']} tokens takes "
            f"{found['needed']} GiB of KV cache, and there are {found['there']} GiB"
        )
    if NONE_LEFT in said:
        return "set kv_cache (bytes) or a larger gpu_memory_utilization: no KV cache fits"
    if LITTLE.search(said):
        return f"set kv_cache (bytes), max_model_len or gpu_memory_utilization to what fits: {said}"
    return None
