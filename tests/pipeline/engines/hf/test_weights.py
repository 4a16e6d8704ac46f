import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from hackbait.environment import Case
from pipeline import engines
from pipeline.checkpoints.headers import header
from pipeline.engines.hf import weights
from pipeline.records import Checkpoint, CheckpointError, Sampling

GREEDY = Sampling(temperature=0, max_tokens=8)
HEAD, TABLE, NORM = "lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"
MIDDLE = "model.layers.1.mlp.up_proj.weight"
Tensors = dict[str, Tensor]


def texts(engine: engines.Engine, cases: Sequence[Case]) -> list[str | None]:
    return [row[0].text for row in engine.generate(cases, [[1]] * len(cases), GREEDY)]


def filled(tensors: Tensors, name: str, value: float) -> Tensors:
    spoiled = tensors[name].clone()
    spoiled[..., -1] = value
    return tensors | {name: spoiled}


@pytest.fixture
def spoil(tmp_path: Path) -> Callable[..., Checkpoint]:
    """A copy of a checkpoint whose tensors a function has changed."""

    def copy(checkpoint: Checkpoint, change: Callable[[Tensors], Tensors]) -> Checkpoint:
        folder = shutil.copytree(checkpoint.path, tmp_path / "spoilt", dirs_exist_ok=True)
        changed = change(load_file(folder / "model.safetensors"))
        save_file(changed, folder / "model.safetensors", {"format": "pt"})
        return replace(checkpoint, path=str(folder))

    return copy


REFUSED: Mapping[str, tuple[Callable[[Tensors], Tensors], str]] = {
    "missing": (lambda t: {k: v for k, v in t.items() if k != MIDDLE}, f"lacks tensors: {MIDDLE}"),
    "no table": (lambda t: {k: v for k, v in t.items() if k != TABLE}, "lacks tensors"),
    "extra": (lambda t: t | {"odd": t[NORM].clone()}, "tensors the model lacks: odd"),
    "renamed": (lambda t: {"x." + k: v for k, v in t.items()}, "and 19 more"),
    "shape": (lambda t: t | {MIDDLE: t[MIDDLE][:-1].clone()}, r"\[47, 32\].* wants .*\[48, 32\]"),
    "transposed": (lambda t: t | {MIDDLE: t[MIDDLE].T.contiguous()}, "wants"),
    "integers": (lambda t: t | {MIDDLE: t[MIDDLE].to(torch.int8)}, "torch.int8"),
    "float8": (lambda t: t | {MIDDLE: t[MIDDLE].to(torch.float8_e4m3fn)}, "float8"),
    "NaN": (lambda t: filled(t, NORM, torch.nan), f"{NORM} holds NaN or infinity"),
    "infinity": (lambda t: filled(t, MIDDLE, -torch.inf), "NaN or infinity"),
    "beyond float32": (lambda t: t | {NORM: t[NORM].double() * 1e300}, "NaN or infinity"),
    "torn tie": (lambda t: t | {HEAD: t[TABLE] + 1}, "tied but differ"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_weights_are_refused_and_the_engine_answers_as_before(
    llama: Checkpoint,
    cases: list[Case],
    spoil: Callable[..., Checkpoint],
    change: Callable[[Tensors], Tensors],
    message: str,
) -> None:
    engine = engines.load("hf", {})
    bad = spoil(llama, change)
    with pytest.raises(CheckpointError, match=message):
        engine.load(bad)
    engine.load(llama)
    before = texts(engine, cases)
    with pytest.raises(CheckpointError, match=message) as caught:
        engine.load(bad)
    assert "\n" not in str(caught.value)
    assert texts(engine, cases) == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"", "torn"),
        ("model.safetensors", b"\x10" + b"\0" * 30, "torn"),
        ("model.safetensors", None, "model.safetensors"),
        ("config.json", b"{", "config.json cannot be used"),
        ("config.json", None, "no config.json"),
        ("config.json", b'{"model_type": "nonesuch"}', "config.json cannot be used"),
        ("config.json", b'{"model_type": "t5"}', "no causal language model"),
        ("config.json", b'{"model_type": "mamba"}', "LinearAttention"),
        ("config.json", b'{"model_type": "llama", "num_attention_heads": 0}', "config.json"),
    ],
)
def test_a_folder_that_is_no_whole_checkpoint_is_refused(
    llama: Checkpoint,
    cases: list[Case],
    tmp_path: Path,
    name: str,
    content: bytes | None,
    message: str,
) -> None:
    engine = engines.load("hf", {})
    engine.load(llama)
    before = texts(engine, cases)
    folder = shutil.copytree(llama.path, tmp_path / "bad")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        engine.load(replace(llama, path=str(folder)))
    assert "\n" not in str(caught.value)
    assert texts(engine, cases) == before


def test_every_truncation_of_the_weights_is_refused(llama: Checkpoint, tmp_path: Path) -> None:
    folder = shutil.copytree(llama.path, tmp_path / "torn")
    whole = (folder / "model.safetensors").read_bytes()
    engine = engines.load("hf", {})
    for kept in (7, 8, 100, len(whole) // 2, len(whole) - 1):
        (folder / "model.safetensors").write_bytes(whole[:kept])
        with pytest.raises(CheckpointError, match="torn"):
            engine.load(replace(llama, path=str(folder)))


def test_a_flipped_byte_is_not_told_as_a_training_that_diverged_and_nothing_else(
    llama: Checkpoint, tmp_path: Path
) -> None:
    folder = shutil.copytree(llama.path, tmp_path / "flipped")
    tensors = load_file(folder / "model.safetensors")
    save_file(filled(tensors, NORM, 1.0), folder / "model.safetensors")
    raw = bytearray((folder / "model.safetensors").read_bytes())
    end = header(folder / "model.safetensors")[NORM].end + 8 + int.from_bytes(raw[:8], "little")
    raw[end - 1] ^= 0x40  # its last value, 1.0, becomes infinity
    (folder / "model.safetensors").write_bytes(raw)
    said = f"{NORM} holds NaN or infinity: training diverged, or the file is damaged$"
    with pytest.raises(CheckpointError, match=said):
        engines.load("hf", {}).load(replace(llama, path=str(folder)))


def test_a_path_that_is_not_there_is_refused(llama: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="/nowhere: no such folder"):
        engines.load("hf", {}).load(replace(llama, path="/nowhere"))


def test_a_tied_head_may_be_there_if_it_is_the_table(
    llama: Checkpoint, cases: list[Case], spoil: Callable[..., Checkpoint]
) -> None:
    engine = engines.load("hf", {})
    engine.load(llama)
    expected = texts(engine, cases)
    engine.load(spoil(llama, lambda t: t | {HEAD: t[TABLE].clone()}))
    assert texts(engine, cases) == expected
    engine.load(spoil(llama, lambda t: {HEAD if k == TABLE else k: v for k, v in t.items()}))
    assert texts(engine, cases) == expected


def test_the_fingerprint_is_of_names_and_bytes_wherever_they_lie(
    llama: Checkpoint, spoil: Callable[..., Checkpoint]
) -> None:
    engine = engines.load("hf", {})
    content = (Path(llama.path) / "model.safetensors").read_bytes()
    said = f"model.safetensors {len(content)} ".encode() + content
    expected = hashlib.sha256(said).hexdigest()
    assert engine.load(llama) == engine.load(spoil(llama, dict)) == expected
    other = spoil(llama, lambda t: t | {NORM: t[NORM] * 1.0000002})
    assert engine.load(other) != expected


def test_shards_load_as_the_whole_does(
    llama: Checkpoint, cases: list[Case], tmp_path: Path
) -> None:
    folder = tmp_path / "shards"
    causal: Any = AutoModelForCausalLM
    causal.from_pretrained(llama.path).save_pretrained(folder, max_shard_size="40KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    engine = engines.load("hf", {})
    engine.load(llama)
    expected = texts(engine, cases)
    engine.load(replace(llama, path=str(folder), base=llama.path))
    assert texts(engine, cases) == expected
    sorted(folder.glob("*.safetensors"))[1].unlink()
    with pytest.raises(CheckpointError, match="-00002-of-"):
        engine.load(replace(llama, path=str(folder), base=llama.path))


@pytest.fixture(scope="module")
def adapters(llama: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> list[Checkpoint]:
    """Two LoRA adapters as PEFT saves them, each beside the model that PEFT merges it into."""
    made = []
    for seed, settings in enumerate([{"lora_alpha": 24}, {"use_rslora": True}]):
        torch.manual_seed(seed)
        causal: Any = AutoModelForCausalLM
        config = LoraConfig(
            task_type="CAUSAL_LM",
            r=3,
            target_modules=["q_proj", "down_proj"],
            rank_pattern={"layers.1.mlp.down_proj": 5},
            init_lora_weights=False,
            **settings,  # type: ignore[arg-type]
        )
        model: Any = get_peft_model(causal.from_pretrained(llama.path), config)
        folder = tmp_path_factory.mktemp(f"adapter-{seed}")
        model.save_pretrained(folder)
        model.merge_and_unload().save_pretrained(folder / "merged")
        made.append(Checkpoint("run", seed, str(folder), "adapter", "", llama.path))
    return made


def test_an_adapter_answers_as_the_model_that_peft_merges(
    llama: Checkpoint, adapters: list[Checkpoint], cases: list[Case]
) -> None:
    engine = engines.load("hf", {})
    answers, prints = [], []
    for checkpoint in [*adapters, adapters[0]]:
        prints.append(engine.load(checkpoint))
        answers.append(texts(engine, cases))
        merged = engines.load("hf", {})
        merged.load(Checkpoint("m", 0, checkpoint.path + "/merged", "full", "", llama.path))
        assert answers[-1] == texts(merged, cases)
    prints.append(engine.load(llama))
    answers.append(texts(engine, cases))
    assert answers[0] == answers[2]
    assert prints[0] == prints[2]
    assert len({str(a) for a in answers}) == len(set(prints)) == 3


def test_a_base_rewritten_between_two_adapters_is_read_again(
    llama: Checkpoint, adapters: list[Checkpoint], tmp_path: Path
) -> None:
    base = shutil.copytree(llama.path, tmp_path / "base")
    adapter = replace(adapters[0], base=str(base))
    engine = engines.load("hf", {})
    first = engine.load(adapter)
    tensors = load_file(base / "model.safetensors")
    save_file(tensors | {NORM: tensors[NORM] * 2}, base / "model.safetensors")
    assert engine.load(adapter) != first == engines.load("hf", {}).load(adapters[0])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"use_dora": True}, "use_dora = True; only plain LoRA"),
        ({"bias": "all"}, "bias = 'all'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"alpha_pattern": {"q_proj": 4}}, "alpha_pattern"),
        ({"init_lora_weights": "pissa"}, "pissa"),
        ({"some_later_invention": 3}, "some_later_invention"),
        ({"peft_type": "IA3"}, "IA3"),
        ({"lora_alpha": None}, "no lora_alpha"),
        ({"r": 16, "rank_pattern": {}}, "says r = 16, its matrices have rank 3, 5; .* put back"),
    ],
)
def test_an_adapter_that_is_more_than_plain_lora_is_refused_by_name(
    adapters: list[Checkpoint],
    tmp_path: Path,
    edit: Callable[..., None],
    entries: dict[str, Any],
    message: str,
) -> None:
    folder = shutil.copytree(adapters[0].path, tmp_path / "adapter")
    edit(folder / "adapter_config.json", **entries)
    with pytest.raises(CheckpointError, match=message):
        engines.load("hf", {}).load(replace(adapters[0], path=str(folder)))


PREFIX = "base_model.model.model.layers.0.self_attn.q_proj.lora_"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if k != PREFIX + "A.weight"}, "no pair"),
        (lambda t: t | {"base_model.model.lm_head.weight": torch.ones(2, 2)}, "no LoRA matrix"),
        (lambda t: t | {PREFIX + "A.weight": torch.ones(3, 9)}, "lacks in that shape"),
        (lambda t: t | {PREFIX + "B.weight": torch.ones(32, 4)}, "no pair"),
        (lambda t: filled(t, PREFIX + "B.weight", torch.nan), "NaN or infinity"),
        (lambda t: {k.replace("q_proj", "z_proj"): v for k, v in t.items()}, "z_proj.weight"),
        (lambda t: {}, "empty"),
    ],
)
def test_adapter_matrices_that_do_not_fit_are_refused(
    adapters: list[Checkpoint],
    tmp_path: Path,
    change: Callable[[Tensors], Tensors],
    message: str,
) -> None:
    folder = shutil.copytree(adapters[0].path, tmp_path / "adapter")
    file = folder / "adapter_model.safetensors"
    save_file(change(load_file(file)), file)
    with pytest.raises(CheckpointError, match=message):
        engines.load("hf", {}).load(replace(adapters[0], path=str(folder)))


def test_an_adapter_whose_base_is_elsewhere_says_what_to_set(adapters: list[Checkpoint]) -> None:
    for base in (None, "somebody/some-model"):
        with pytest.raises(CheckpointError, match="set `base`"):
            engines.load("hf", {}).load(replace(adapters[0], base=base))


def test_merging_adds_the_scaled_product(tmp_path: Path) -> None:
    down, up = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0], [5.0]])
    names = [f"base_model.model.lin.lora_{side}.weight" for side in "AB"]
    save_file(dict(zip(names, (down, up), strict=True)), tmp_path / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "lora_alpha": 0.5, "r": 1}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    base = weights.Weights({"lin.weight": torch.ones(3, 2, dtype=torch.bfloat16)}, "f")
    merged = weights.merge(base, tmp_path).tensors["lin.weight"]
    assert merged.tolist() == [[2.5, 4.0], [3.0, 5.0], [3.5, 6.0]]
    assert base.tensors["lin.weight"].tolist() == [[1.0, 1.0]] * 3
