"""The real engine on small models: the right weights answer, or nobody does."""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from hackbait.environment import Case
from pipeline import engines
from pipeline.checkpoints.identity import fingerprint_files
from pipeline.engines import EngineDied, EngineError
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling
from pipeline.rollout import generate, sampling_seed

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # vLLM's and torch's own

New = Callable[..., Checkpoint]
GREEDY = Sampling(n=1, temperature=0, max_tokens=12)
SMALL = {"kv_cache": 2**24}
EMBEDDING, NORM = "model.embed_tokens.weight", "model.norm.weight"
LAYER = "model.layers.0.self_attn.q_proj.weight"


KEPT: list[Any] = []
"""vLLM takes down what all engines of a process share when one of them is collected."""


def new(**options: Any) -> Any:
    KEPT.append(engines.load("vllm", SMALL | options))
    return KEPT[-1]


def texts(engine: Any, cases: Sequence[Case], sampling: Sampling = GREEDY) -> list[str | None]:
    return [r.completion.text for r in generate(engine, cases, sampling)]


def fresh(checkpoint: Checkpoint, cases: Sequence[Case], name: str = "vllm", **options: Any) -> Any:
    """Greedy texts of an engine that has seen this checkpoint alone."""
    engine = new(**options) if name == "vllm" else engines.load(name, options)
    engine.load(checkpoint)
    return texts(engine, cases)


@pytest.fixture(scope="module")
def engine() -> Any:
    """One for all tests that leave it usable."""
    return new()


@pytest.fixture(scope="module")
def two(new_checkpoint: New) -> list[Checkpoint]:
    """Two checkpoints of a tied Llama."""
    return [new_checkpoint(seed=seed) for seed in range(2)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_swapped_checkpoint_answers_as_in_a_fresh_engine_also_when_swapped_back(
    kind: str, tied: bool, dtype: str, new_checkpoint: New, cases: list[Case]
) -> None:
    first, second = (new_checkpoint(kind, tied, seed) for seed in range(2))
    engine = new(dtype=dtype)
    engine.load(first)
    before = texts(engine, cases)
    engine.load(second)
    swapped = texts(engine, cases)
    engine.load(first)
    assert texts(engine, cases) == before != swapped
    assert swapped == fresh(second, cases, dtype=dtype)
    if dtype == "float32":
        assert swapped == fresh(second, cases, "hf")


def test_rows_and_fingerprints_are_those_of_the_hf_engine(engine: Any, cases: list[Case]) -> None:
    policy = Checkpoint(
        "run", 0, str(Path(engines.__file__).parents[2] / "hackbait/policy"), "full", ""
    )
    other: Any = engines.load("hf", {})
    assert engine.load(policy) == other.load(policy)
    sampling = Sampling(n=1, temperature=0, max_tokens=40)
    rows = generate(engine, cases, sampling)
    assert rows == generate(other, cases, sampling)
    assert "stop" in {row.completion.finish_reason for row in rows}


def test_another_architecture_gets_another_engine_and_the_first_one_comes_back(
    engine: Any, two: list[Checkpoint], new_checkpoint: New, cases: list[Case]
) -> None:
    engine.load(two[0])
    before = texts(engine, cases)
    wider = new_checkpoint(seed=7, intermediate_size=128)
    engine.load(wider)
    assert texts(engine, cases) == fresh(wider, cases)
    engine.load(two[0])
    assert texts(engine, cases) == before


def plain(folder: str, **more: Any) -> Any:
    """vLLM as it comes."""
    from vllm import LLM

    options = {"dtype": "float32", "enforce_eager": True, "skip_tokenizer_init": True, **SMALL}
    options["kv_cache_memory_bytes"] = options.pop("kv_cache")
    KEPT.append(LLM(folder, **(options | {"use_tqdm_on_load": False} | more)))
    return KEPT[-1]


def ids(llm: Any, prompts: Sequence[list[int]], loras: Any = None, **more: Any) -> list[list[int]]:
    from vllm import SamplingParams

    params = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True, detokenize=False, **more)
    asked = [{"prompt_token_ids": prompt} for prompt in prompts]
    outputs = llm.generate(asked, params, use_tqdm=False, lora_request=loras)
    return [list(output.outputs[0].token_ids) for output in outputs]


PROMPTS = [[7 * i % 440 for i in range(n)] for n in range(2, 60, 5)]


def test_without_the_repacking_a_tied_head_stays_the_old_one(two: list[Checkpoint]) -> None:
    # Once this fails, vLLM has mended it and `repack_tied_head` can go.
    llm, right = plain(two[0].path), ids(plain(two[1].path), PROMPTS)
    llm.collective_rpc("reload_weights", kwargs={"weights_path": two[1].path})
    assert llm.reset_prefix_cache()
    assert ids(llm, PROMPTS) != right


@pytest.mark.skipif(not torch.cpu._is_amx_tile_supported(), reason="a CPU without AMX")
def test_without_narrowing_biases_a_float32_checkpoint_is_not_rounded(new_checkpoint: New) -> None:
    # Once this fails, vLLM has mended it and `narrow_biases` can go.
    first, second = (new_checkpoint("qwen2", False, seed) for seed in range(2))
    llm, right = plain(first.path, dtype="bfloat16"), plain(second.path, dtype="bfloat16")
    llm.collective_rpc("reload_weights", kwargs={"weights_path": second.path})
    assert llm.reset_prefix_cache()
    assert ids(llm, PROMPTS) != ids(right, PROMPTS)


def test_without_the_guard_a_missing_tensor_goes_unnoticed(
    two: list[Checkpoint], altered: New
) -> None:
    # Once this fails, vLLM has mended it and `unwritten_is_nan` can go.
    assert ids(plain(one_missing(two[0], altered).path), PROMPTS)


def test_without_emptying_the_prefix_cache_old_weights_answer(new_checkpoint: New) -> None:
    first, second = (new_checkpoint(tied=False, seed=seed) for seed in range(2))
    prompts = [[7 * i % 440 for i in range(n)] for n in range(70, 110, 5)]
    llm, right = plain(first.path, block_size=32), ids(plain(second.path), prompts)
    ids(llm, prompts)
    llm.collective_rpc("reload_weights", kwargs={"weights_path": second.path})
    assert ids(llm, prompts) != right
    assert llm.reset_prefix_cache()
    assert ids(llm, prompts) == right


def test_without_the_guard_a_seeded_prompt_cut_in_two_ends_the_engine(
    two: list[Checkpoint], engine: Any
) -> None:
    # Once this fails, vLLM has mended it and chunked prefill can be left on.
    from vllm import SamplingParams

    llm = plain(two[0].path, enable_chunked_prefill=True, max_num_batched_tokens=64, max_num_seqs=8)
    asked = [{"prompt_token_ids": list(range(50))} for _ in range(3)]
    params = [
        SamplingParams(temperature=1, seed=i, max_tokens=2, detokenize=False) for i in range(3)
    ]
    with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
        llm.generate(asked, params, use_tqdm=False)


def test_more_prompt_tokens_than_one_step_takes_are_answered(
    two: list[Checkpoint], engine: Any
) -> None:
    engine.load(two[0])
    words = " 1" * 36
    many = [Case("many", i, ({"role": "user", "content": f"{i}{words}"},), "") for i in range(64)]
    rows = generate(engine, many, Sampling(n=1, max_tokens=2))
    tokens = [row.completion.prompt_tokens or 0 for row in rows]
    assert sum(tokens) > 4096, tokens[:3]
    assert all(row.completion.text is not None for row in rows)


def test_a_seed_decides_its_rollout_alone_or_in_any_batch(
    engine: Any, two: list[Checkpoint], cases: list[Case]
) -> None:
    engine.load(two[1])
    sampling = Sampling(n=4, top_p=0.95, max_tokens=12)
    together = generate(engine, cases, sampling)
    assert len({row.completion.text for row in together}) > len(cases)
    back = generate(engine, cases[::-1], sampling)
    assert sorted(back, key=lambda row: (row.index, row.sample)) == together
    for row in together[::7]:
        case = cases[row.index]
        (answer,) = engine.generate([case], [[sampling_seed(0, case, row.sample)]], sampling)[0]
        assert answer == row.completion
    assert engine.determinism == "text"


def test_a_prompt_that_cannot_fit_is_a_null_row_beside_answered_ones(
    engine: Any, two: list[Checkpoint], cases: list[Case]
) -> None:
    engine.load(two[0])
    long = Case("long", 0, ({"role": "user", "content": "now " * 150},), "")
    (fits,), (null,) = engine.generate([cases[0], long], [[1], [2]], GREEDY)
    assert fits.text is not None
    assert null == Completion(None, None, null.prompt_tokens, None, "prompt_too_long")
    room = 128 - fits.prompt_tokens
    exact = Sampling(n=1, temperature=0, max_tokens=room)
    assert engine.generate([cases[0]], [[1]], exact)[0][0].error is None
    beyond = Sampling(n=1, temperature=0, max_tokens=room + 1)
    assert engine.generate([cases[0]], [[1]], beyond)[0][0].error == "prompt_too_long"


def table_of(checkpoint: Checkpoint) -> torch.Tensor:
    return load_file(Path(checkpoint.path) / "model.safetensors")[EMBEDDING]


def one_missing(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    return altered(checkpoint, {LAYER: None})


def one_too_many(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    return altered(checkpoint, {"model.layers.9.extra.weight": torch.zeros(2)})


def one_of_another_shape(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    return altered(checkpoint, {NORM: torch.ones(65)})


def one_of_integers(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    return altered(checkpoint, {NORM: torch.ones(64, dtype=torch.int64)})


def one_not_a_number(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    """In the row of a token that no prompt here has."""
    table = table_of(checkpoint)
    table[300, 3] = float("nan")
    return altered(checkpoint, {EMBEDDING: table})


def one_head_of_its_own(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    return altered(checkpoint, {"lm_head.weight": torch.zeros(table_of(checkpoint).shape)})


def a_torn_file(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    torn = altered(checkpoint, {})
    (path,) = fingerprint_files(torn.path)
    path.write_bytes(path.read_bytes()[:-100])
    return torn


def no_file(checkpoint: Checkpoint, altered: New) -> Checkpoint:
    gone = altered(checkpoint, {})
    (path,) = fingerprint_files(gone.path)
    path.unlink()
    return gone


BAD = {
    one_missing: "lacks model.layers.0.self_attn.q_proj.weight",
    one_too_many: "has model.layers.9.extra.weight",
    one_of_another_shape: r"model.norm.weight is \[65\], the model wants \[64\]",
    one_of_integers: "model.norm.weight is I64",
    one_not_a_number: "model.embed_tokens.weight holds NaN",
    one_head_of_its_own: "are tied but differ",
    a_torn_file: "torn",
    no_file: "No such file",
}


@pytest.mark.parametrize(("spoil", "reason"), BAD.items(), ids=[f.__name__ for f in BAD])
def test_a_bad_checkpoint_is_refused_and_the_next_good_one_answers(
    spoil: Any, reason: str, engine: Any, two: list[Checkpoint], altered: New, cases: list[Case]
) -> None:
    engine.load(two[0])
    before = texts(engine, cases)
    engine.load(two[1])
    other = texts(engine, cases)
    with pytest.raises(CheckpointError, match=reason):
        engine.load(spoil(two[0], altered))
    assert texts(engine, cases) == other
    engine.load(two[0])
    assert texts(engine, cases) == before


def test_a_bad_first_checkpoint_is_refused_and_the_next_one_starts_the_engine(
    two: list[Checkpoint], altered: New, cases: list[Case]
) -> None:
    engine = new()
    with pytest.raises(CheckpointError, match="a tensor is missing"):
        engine.load(one_missing(two[0], altered))
    engine.load(two[0])
    assert texts(engine, cases) == fresh(two[0], cases)


def test_a_head_that_is_saved_although_tied_is_taken(
    engine: Any, two: list[Checkpoint], altered: New, cases: list[Case]
) -> None:
    table = table_of(two[1])
    spelled = altered(two[1], {"lm_head.weight": table.clone()})
    engine.load(two[1])
    expected = texts(engine, cases)
    engine.load(two[0])
    engine.load(spelled)
    assert texts(engine, cases) == expected
    other = new()  # a run may begin with such a checkpoint
    other.load(spelled)
    other.load(two[0])
    other.load(two[1])
    assert texts(other, cases) == expected


def test_after_a_swap_that_failed_half_way_nothing_answers(
    new_checkpoint: New, altered: New, cases: list[Case]
) -> None:
    # Of their own context length: engines of a process share rotary tables, torn ones too.
    two = [new_checkpoint(seed=seed, max_position_embeddings=120) for seed in range(2)]
    engine = new()
    engine.load(two[0])
    with pytest.raises(EngineDied, match="loading"):  # past the checks that would have refused it
        engine._live.swap(Path(one_of_another_shape(two[1], altered).path), None, "0" * 32)
    for ask in (
        lambda: texts(engine, cases),
        lambda: engine.load(two[0]),
        lambda: engine.self_check(two[1]),
        lambda: engine.generate_many([(two[0], cases, [[1]] * len(cases))], GREEDY),
    ):
        with pytest.raises(EngineDied, match="its process is to be replaced"):
            ask()


def test_rows_of_other_weights_than_were_loaded_are_never_returned(
    two: list[Checkpoint], cases: list[Case]
) -> None:
    engine = new()
    engine.load(two[0])
    engine._live._llm.update_weight_version("other")
    with pytest.raises(EngineDied, match="other"):
        texts(engine, cases)
    with pytest.raises(EngineDied):
        engine.load(two[0])


def test_the_check_against_a_fresh_engine_passes_and_says_when_it_was_not_made(
    engine: Any, two: list[Checkpoint], cases: list[Case]
) -> None:
    other = new()
    other.load(two[0])
    assert "name another checkpoint" in other.self_check(two[0])
    assert other.self_check(two[1]) is None
    assert texts(other, cases) == fresh(two[1], cases)


def test_the_check_against_a_fresh_engine_finds_a_swap_that_missed_the_head(
    two: list[Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.engines.vllm.worker import Swapping

    engine = new()
    engine.load(two[0])
    monkeypatch.setattr(Swapping, "repack_tied_head", lambda self: None)
    with pytest.raises(EngineDied, match="answered otherwise than in a fresh engine"):
        engine.self_check(two[1])
    with pytest.raises(EngineDied):
        engine.load(two[0])


def test_files_rewritten_after_they_were_read_ahead_are_read_again(
    engine: Any, two: list[Checkpoint], altered: New, cases: list[Case]
) -> None:
    changing = altered(two[0], {})
    engine.load(two[1])
    engine.prefetch(changing)
    first = engine.load(changing)
    assert first == engine.load(changing)
    shutil.copy(Path(two[1].path) / "model.safetensors", changing.path)
    assert engine.load(changing) == engine.load(two[1]) != first


def test_a_cache_too_small_for_one_rollout_is_one_line_with_the_cure_that_mends_it(
    two: list[Checkpoint],
) -> None:
    with pytest.raises(EngineError, match=r"^engine vllm: set kv_cache \(bytes\) or a larger"):
        new(kv_cache=1024).load(two[0])
    block = 32 * 2 * 2 * 32 * 4  # tokens, layers, key and value, width of the head, float32
    with pytest.raises(EngineError, match=r"^engine vllm: set kv_cache to") as caught:
        new(kv_cache=2 * block).load(two[0])  # of which vLLM keeps one for itself
    assert "\n" not in str(caught.value)
    told = re.search(
        r"kv_cache to (\d+) \(bytes\) or more, max_model_len to 32 or less", str(caught)
    )
    assert told
    new(kv_cache=int(told[1])).load(two[0])


def test_a_temperature_that_vllm_would_change_is_refused(
    engine: Any, two: list[Checkpoint], cases: list[Case]
) -> None:
    engine.load(two[0])
    with pytest.raises(EngineError, match=r"temperature 0.001"):
        texts(engine, cases, Sampling(temperature=0.001))
    assert texts(engine, cases)
