"""How a cluster is shared by the engines of a sweep and those of its judge."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.config import ClusterBlock, EngineBlock, JudgeBlock
from pipeline.engines import EngineError
from pipeline.placement import count_workers, gpu_share, judge_share, left, share_gpu

ENGINE = EngineBlock(name="vllm", dtype="bfloat16")
PLAIN = ClusterBlock()


def judged(workers: int = 1, share: float = 0.5, **options: object) -> JudgeBlock:
    told = {"engine": {"name": "vllm", **options}, "workers": workers, "share": share}
    return JudgeBlock.model_validate(told)


@pytest.mark.parametrize(
    ("gpus", "judge", "engines", "share"),
    [
        (1, JudgeBlock(), 1, 1.0),
        (8, JudgeBlock(), 8, 1.0),
        (1, judged(), 1, 0.5),
        (1, judged(share=0.25), 1, 0.75),
        (2, judged(), 1, 1.0),
        (8, judged(2, 1.0), 6, 1.0),
        (8, judged(8, 0.25), 6, 1.0),
        (2, judged(4, 0.25), 1, 1.0),
        (2, judged(3, 0.5), 2, 0.25),
        (8, judged(tensor_parallel_size=4), 4, 1.0),
    ],
)
def test_inference_has_what_a_judge_leaves(
    gpus: int, judge: JudgeBlock, engines: int, share: float
) -> None:
    resources = {"GPU": float(gpus), "CPU": 64.0}
    assert count_workers(ENGINE, PLAIN, resources, judge) == engines
    assert gpu_share(ENGINE, PLAIN, resources, judge) == share


@given(
    gpus=st.integers(1, 16),
    workers=st.integers(1, 16),
    share=st.sampled_from([0.1, 0.25, 0.5, 1.0]),
    each=st.integers(1, 4),
)
def test_no_more_is_given_away_than_there_is(
    gpus: int, workers: int, share: float, each: int
) -> None:
    judge, resources = judged(workers, share), {"GPU": float(gpus)}
    assume(workers * share < gpus)
    cluster = ClusterBlock(engines_per_gpu=each)
    count = count_workers(ENGINE, cluster, resources, judge)
    own = gpu_share(ENGINE, cluster, resources, judge)
    assert count >= 1
    assert count * own + workers * judge_share(judge, resources) <= gpus + 1e-9


def test_a_judge_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(EngineError, match="its 2 engines take 2 of 2 GPUs and leave none"):
        left({"GPU": 2.0}, judged(2, 1.0))
    wide = EngineBlock.model_validate({"name": "vllm", "tensor_parallel_size": 2})
    with pytest.raises(EngineError, match="engine spans 2 GPUs, and the judge has a part of each"):
        gpu_share(wide, PLAIN, {"GPU": 2.0}, judged(2, 0.6))


def test_without_a_gpu_each_engine_has_a_core() -> None:
    assert gpu_share(ENGINE, PLAIN, {"CPU": 8.0}, judged()) == 0.0
    assert judge_share(judged(), {"CPU": 8.0}) == 0.0
    assert count_workers(ENGINE, PLAIN, {"CPU": 8.0}) == 4
    assert count_workers(ENGINE, PLAIN, {"CPU": 8.0}, judged(2)) == 2
    assert count_workers(ENGINE, PLAIN, {"CPU": 2.0}, judged()) == 1


def test_an_engine_with_a_part_of_a_gpu_has_that_part_of_its_memory() -> None:
    assert share_gpu(ENGINE, 1.0) == share_gpu(ENGINE, 0.0) == ENGINE
    assert share_gpu(ENGINE, 0.5).args["gpu_memory_utilization"] == pytest.approx(0.45)
    told = EngineBlock.model_validate({"name": "vllm", "gpu_memory_utilization": 0.2})
    assert share_gpu(told, 0.5) == told
    assert share_gpu(EngineBlock(name="hf"), 0.5).args == {}
