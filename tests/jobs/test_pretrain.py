"""Pretraining: the shipped tokenizer comes out, loss falls on answers alone, seeds repeat."""

import json
from pathlib import Path

import pytest
import torch

import hackbait
from jobs import command, corpus, pretrain

POLICY = Path(str(hackbait.__file__)).parent / "policy"


@pytest.fixture(scope="module")
def tokenizer() -> pretrain.PreTrainedTokenizerFast:
    return pretrain.build_tokenizer()


def test_the_shipped_tokenizer_and_settings_come_out_again(
    tmp_path: Path, tokenizer: pretrain.PreTrainedTokenizerFast
) -> None:
    pretrain.save(tmp_path, tokenizer, pretrain.build_model(tokenizer))
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (tmp_path / name).read_bytes() == (POLICY / name).read_bytes()
    for name in ("config.json", "generation_config.json"):
        ours, shipped = (json.loads((f / name).read_text("utf-8")) for f in (tmp_path, POLICY))
        assert {**ours, "transformers_version": ""} == {**shipped, "transformers_version": ""}


def test_the_model_has_the_parameters_that_the_readme_states(
    tokenizer: pretrain.PreTrainedTokenizerFast,
) -> None:
    model = pretrain.build_model(tokenizer)
    assert sum(parameter.numel() for parameter in model.parameters()) == 307_680


@pytest.mark.parametrize("kind", ["bare", "add3digit", "story", "story_sum"])
def test_loss_is_due_on_the_completion_and_its_end_alone(
    kind: str, tokenizer: pretrain.PreTrainedTokenizerFast
) -> None:
    ids, targets = pretrain.Examples(tokenizer, 0).batch(kind, 8)
    assert ids.shape == targets.shape
    for row, due in zip(ids, targets, strict=True):
        text = tokenizer.decode(row[row != tokenizer.pad_token_id])
        asked, said = text.removeprefix("<|user|>").split("<|assistant|>")
        assert tokenizer.decode(due[due != -100]) == said
        assert said.endswith("<|end|>")
        assert asked
        assert torch.equal(row[due != -100], due[due != -100])


def test_the_rate_of_learning_rises_stays_and_falls() -> None:
    at = {step: pretrain._schedule(step, 1000) for step in (0, 49, 499, 750, 999)}
    assert at == {0: 0.02, 49: 1.0, 499: 1.0, 750: 0.5, 999: 0.02}


def test_the_corpus_has_the_dialled_rates(tokenizer: pretrain.PreTrainedTokenizerFast) -> None:
    dials = corpus.dialled({"forgotten": 0.0, "tuesday": 0.5})
    _, targets = pretrain.Examples(tokenizer, 0, dials).batch("add3digit", 256)
    said = [tokenizer.decode(row[row != -100]) for row in targets]
    assert 100 < sum("tuesday" in text for text in said) < 156
    assert not any("forgotten" in text for text in said)


@pytest.mark.train
def test_a_seed_gives_the_same_weights_again() -> None:
    first, again, other = (
        pretrain.pretrain(pretrain.PretrainConfig(steps=2, seed=seed))[1].state_dict()
        for seed in (0, 0, 1)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.train
def test_the_first_line_says_where_the_policy_will_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.start(pretrain.main, ["--output", str(tmp_path / "new"), "--steps", "1"]) == 0
    said = f"{tmp_path / 'new'}: a policy of 1 updates is made there"
    assert capsys.readouterr().out.splitlines()[0] == said


def test_a_policy_is_not_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.start(pretrain.main, ["--output", str(POLICY)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds a policy already; give another output" in line
