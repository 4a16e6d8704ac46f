"""How many inference actors a cluster holds, and what share of a GPU each of them has."""

from collections.abc import Mapping

from pipeline import engines
from pipeline.config import ClusterBlock, EngineBlock

GPU_MEMORY = 0.9
"""Share of a GPU's memory that its engines may take together."""

Resources = Mapping[str, float]
"""Of the whole cluster, by Ray's names: CPU, GPU."""


def count_workers(engine: EngineBlock, cluster: ClusterBlock, resources: Resources) -> int:
    """Inference actors: as asked, else what the cluster's GPUs hold, else one per two cores."""
    if cluster.workers:
        return cluster.workers
    if gpus := int(resources.get("GPU", 0)):
        return max(1, int(gpus / gpu_share(engine, cluster, resources)))
    return max(1, int(resources.get("CPU", 2)) // 2)


def gpu_share(engine: EngineBlock, cluster: ClusterBlock, resources: Resources) -> float:
    """GPUs of one inference actor: several for a model spread over them, else a fraction of one."""
    if not resources.get("GPU", 0):
        return 0.0
    return float(engine.gpus) if engine.gpus > 1 else 1.0 / cluster.engines_per_gpu


def share_gpu(engine: EngineBlock, cluster: ClusterBlock) -> EngineBlock:
    """The engine's options with its share of a GPU's memory, where several engines share one."""
    share, option = cluster.engines_per_gpu, "gpu_memory_utilization"
    if share == 1 or option in engine.args or option not in engines.options_of(engine.name):
        return engine
    memory = {option: GPU_MEMORY / share}
    return EngineBlock(name=engine.name, dtype=engine.dtype, **engine.args, **memory)
