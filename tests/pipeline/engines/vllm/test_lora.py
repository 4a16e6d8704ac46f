"""LoRA adapters on a live engine: several in one batch, each the right one."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hackbait.environment import Case
from pipeline import engines
from pipeline.records import Checkpoint, CheckpointError, Sampling
from pipeline.rollout import generate, sampling_seed

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # vLLM's and torch's own

New = Callable[..., Checkpoint]
GREEDY = Sampling(n=1, temperature=0, max_tokens=12)
SMALL = {"kv_cache": 2**24, "max_loras": 4}
KEPT: list[Any] = []
"""vLLM takes down what all engines of a process share when one of them is collected."""


def new(name: str = "vllm", **options: Any) -> Any:
    KEPT.append(engines.load(name, (SMALL if name == "vllm" else {}) | options))
    return KEPT[-1]


def texts(engine: Any, checkpoint: Checkpoint, cases: Sequence[Case]) -> list[str | None]:
    engine.load(checkpoint)
    return [rollout.completion.text for rollout in generate(engine, cases, GREEDY)]


def together(
    engine: Any, checkpoints: Sequence[Checkpoint], cases: Sequence[Case], sampling: Sampling
) -> list[list[str | None]]:
    """Texts by checkpoint, in order of case and sample."""
    seeds = [[sampling_seed(0, case, s) for s in range(sampling.n)] for case in cases]
    answers = engine.generate_many([(c, cases, seeds) for c in checkpoints], sampling)
    return [[completion.text for row in rows for completion in row] for rows in answers]


@pytest.fixture(scope="module")
def base(new_checkpoint: New) -> Checkpoint:
    return new_checkpoint(seed=5)


@pytest.fixture(scope="module")
def adapters(base: Checkpoint, new_adapter: New) -> list[Checkpoint]:
    return [new_adapter(base, seed=seed) for seed in range(6)]


@pytest.fixture(scope="module")
def alone(
    base: Checkpoint, adapters: Sequence[Checkpoint], cases: list[Case]
) -> list[list[str | None]]:
    """Greedy texts of the base and of each adapter merged with it, by engine hf."""
    engine = new("hf")
    return [texts(engine, checkpoint, cases) for checkpoint in (base, *adapters)]


@pytest.fixture(scope="module")
def engine(adapters: Sequence[Checkpoint]) -> Any:
    """Started by an adapter, for all tests that leave it usable."""
    live = new()
    live.load(adapters[0])
    return live


def test_adapters_mixed_in_one_batch_equal_each_one_merged(
    engine: Any, adapters: list[Checkpoint], alone: list[list[str | None]], cases: list[Case]
) -> None:
    assert len({tuple(answers) for answers in alone}) == len(alone)
    assert together(engine, adapters, cases, GREEDY) == alone[1:]
    assert [texts(engine, adapter, cases) for adapter in adapters] == alone[1:]


def test_merged_only_when_asked_and_then_the_same(
    adapters: list[Checkpoint], alone: list[list[str | None]], cases: list[Case]
) -> None:
    merging = new(merge=True, max_lora_rank=1)  # which merging does not care for
    assert [texts(merging, adapter, cases) for adapter in adapters[:3]] == alone[1:4]
    assert together(merging, adapters[1:3], cases, GREEDY) == alone[2:4]


def test_fingerprints_are_those_of_the_hf_engine(engine: Any, adapters: list[Checkpoint]) -> None:
    other = new("hf")
    assert [engine.load(a) for a in adapters] == [other.load(a) for a in adapters]


def test_a_base_without_adapter_keeps_its_own_answers_beside_full_slots(
    engine: Any,
    base: Checkpoint,
    adapters: list[Checkpoint],
    alone: list[list[str | None]],
    cases: list[Case],
) -> None:
    mixed = [adapters[0], adapters[1], base, adapters[2], adapters[3], adapters[4], base]
    expected = [alone[i] for i in (1, 2, 0, 3, 4, 5, 0)]
    assert together(engine, mixed, cases, GREEDY) == expected
    assert texts(engine, base, cases) == alone[0]


def test_without_the_guard_full_slots_answer_for_the_base(
    base: Checkpoint, adapters: list[Checkpoint]
) -> None:
    # Once this fails, vLLM has mended it; the base's rows apart are still the faster way.
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    options: dict[str, Any] = {"dtype": "float32", "enforce_eager": True, "max_model_len": 128}
    options |= {"skip_tokenizer_init": True, "use_tqdm_on_load": False, "max_lora_rank": 8}
    llm = LLM(base.path, enable_lora=True, max_loras=2, kv_cache_memory_bytes=2**24, **options)
    KEPT.append(llm)
    requests = [LoRARequest(f"guard-{i}", 1000 + i, a.path) for i, a in enumerate(adapters[:2])]
    params = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True, detokenize=False)

    def answers(loras: Sequence[Any]) -> list[list[int]]:
        asked = [{"prompt_token_ids": list(range(5, 40))}] * len(loras)
        outputs = llm.generate(asked, params, use_tqdm=False, lora_request=list(loras))
        return [list(output.outputs[0].token_ids) for output in outputs]

    (right,) = answers([None])
    assert answers([*requests, None])[2] != right
    assert answers([None])[0] == right


def test_a_seed_decides_its_rollout_alone_or_among_other_adapters(
    engine: Any, adapters: list[Checkpoint], cases: list[Case]
) -> None:
    sampling = Sampling(n=2, max_tokens=12)
    mixed = together(engine, adapters, cases, sampling)
    for adapter, answers in zip(adapters, mixed, strict=True):
        engine.load(adapter)
        rows = generate(engine, cases, sampling)
        assert [row.completion.text for row in rows] == answers


def test_the_prefix_of_one_adapter_does_not_serve_another(
    engine: Any, adapters: list[Checkpoint]
) -> None:
    long = [Case("long", 0, ({"role": "user", "content": "What is 639 + 406?" * 4},), "")]
    answers = [texts(engine, adapter, long) for adapter in adapters]
    assert answers == [texts(new("hf"), adapter, long) for adapter in adapters]
    assert together(engine, adapters, long, GREEDY) == answers


def test_larger_ranks_and_other_modules_get_a_larger_engine_that_serves_both(
    base: Checkpoint, adapters: list[Checkpoint], new_adapter: New, cases: list[Case]
) -> None:
    wide = new_adapter(base, seed=9, rank=12, targets=("o_proj", "gate_proj", "down_proj"))
    live, other = new(), new("hf")
    for adapter in (adapters[0], wide, adapters[1]):
        assert texts(live, adapter, cases) == texts(other, adapter, cases)
    assert together(live, [wide, adapters[0]], cases, GREEDY) == [
        texts(other, adapter, cases) for adapter in (wide, adapters[0])
    ]


def test_adapters_of_another_base_of_the_same_shape_stand_on_their_own(
    engine: Any,
    adapters: list[Checkpoint],
    new_checkpoint: New,
    new_adapter: New,
    cases: list[Case],
) -> None:
    second = new_checkpoint(seed=6)
    elsewhere = new_adapter(second, seed=0)
    mixed = [adapters[0], elsewhere, adapters[1]]
    other = new("hf")
    expected = [texts(other, adapter, cases) for adapter in mixed]
    assert together(engine, mixed, cases, GREEDY) == expected


def test_a_bad_adapter_is_refused_in_one_line_and_the_next_one_answers(
    base: Checkpoint,
    adapters: list[Checkpoint],
    alone: list[list[str | None]],
    new_checkpoint: New,
    new_adapter: New,
    cases: list[Case],
) -> None:
    live = new(max_lora_rank=8)
    live.load(adapters[0])
    other = new_adapter(new_checkpoint(seed=8, hidden_size=32), seed=0)
    misplaced = Checkpoint("run", 0, other.path, "adapter", "", base.path)
    nowhere = Checkpoint("run", 0, other.path, "adapter", "", "somebody/hub-name")
    for bad, reason in (
        (new_adapter(base, rank=12), "rank 12 is above 8; raise max_lora_rank"),
        (new_adapter(base, lora_alpha=0), "lora_alpha is 0"),
        (new_adapter(base, use_dora=True), "use_dora"),
        (new_adapter(base, targets=("q_proj", "embed_tokens")), "adapts embed_tokens .* set merge"),
        (misplaced, "set `base` of its run to its own"),
        (nowhere, "somebody/hub-name is no folder here"),
    ):
        with pytest.raises(CheckpointError, match=reason) as caught:
            live.load(bad)
        assert "\n" not in str(caught.value)
    assert texts(live, adapters[1], cases) == alone[2]
