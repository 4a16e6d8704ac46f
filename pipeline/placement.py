"""How many engines a cluster holds, those of a judge among them, and each one's share of a GPU."""

import math
from collections.abc import Mapping

from pipeline import engines
from pipeline.config import ClusterBlock, EngineBlock, JudgeBlock
from pipeline.engines import EngineError

GPU_MEMORY = 0.9
"""Share of a GPU's memory that its engines may take together."""
NO_JUDGE = JudgeBlock()

Resources = Mapping[str, float]
"""Of the whole cluster, by Ray's names: CPU, GPU."""


def count_workers(
    engine: EngineBlock,
    cluster: ClusterBlock,
    resources: Resources,
    judge: JudgeBlock = NO_JUDGE,
) -> int:
    """Inference actors: as asked, else what a judge leaves of the GPUs, else of every two cores."""
    if cluster.workers:
        return cluster.workers
    if not resources.get("GPU", 0):
        return max(1, int(resources.get("CPU", 2)) // 2 - judge.engines)
    gpus, _ = left(resources, judge)
    return max(1, gpus * cluster.engines_per_gpu if engine.gpus == 1 else gpus // engine.gpus)


def gpu_share(
    engine: EngineBlock,
    cluster: ClusterBlock,
    resources: Resources,
    judge: JudgeBlock = NO_JUDGE,
) -> float:
    """GPUs of one inference actor: several for a model spread over them, else a fraction of one.

    EngineError where a judge leaves too little.
    """
    if not resources.get("GPU", 0):
        return 0.0
    _, part = left(resources, judge)
    if engine.gpus > 1 and part < 1:
        raise EngineError(
            f"engine spans {engine.gpus} GPUs, and the judge has a part of each; lower "
            "judge.workers or judge.share"
        )
    return float(engine.gpus) if engine.gpus > 1 else part / cluster.engines_per_gpu


def judge_share(judge: JudgeBlock, resources: Resources) -> float:
    """GPUs of one judge engine; 0 where there are none, or no such engine."""
    if judge.engine is None or not resources.get("GPU", 0):
        return 0.0
    return float(judge.engine.gpus) if judge.engine.gpus > 1 else judge.share


def left(resources: Resources, judge: JudgeBlock) -> tuple[int, float]:
    """GPUs for the sweep's own engines, and the part of each that is theirs.

    Whole ones, where judges leave any untouched; else every one, shared. EngineError for neither.
    """
    gpus = int(resources.get("GPU", 0))
    taken = judge_share(judge, resources) * judge.engines
    untouched = gpus - math.ceil(taken)
    if untouched > 0 or not taken:
        return untouched, 1.0
    if taken >= gpus:
        raise EngineError(
            f"judge: its {judge.engines} engines take {taken:g} of {gpus} GPUs and leave none for "
            "the sweep's own; lower judge.workers or judge.share"
        )
    return gpus, 1 - taken / gpus


def share_gpu(engine: EngineBlock, share: float) -> EngineBlock:
    """The engine's options with its share of a GPU's memory, where several engines share one."""
    option = "gpu_memory_utilization"
    if not 0 < share < 1 or option in engine.args or option not in engines.options_of(engine.name):
        return engine
    memory = {option: GPU_MEMORY * share}
    return EngineBlock(name=engine.name, dtype=engine.dtype, **engine.args, **memory)
