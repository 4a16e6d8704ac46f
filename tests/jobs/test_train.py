"""Training: what a run leaves, that it goes on where it stopped, and how it refuses."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from jobs import command, policy, train
from pipeline.checkpoints import discover
from pipeline.config import TrainConfig, read
from pipeline.engines.hf import chat
from pipeline.records import CheckpointError
from tests.hackbait.adapters import market_judge
from tests.pipeline.openai_server import Server

CONFIGS = Path(train.__file__).parent / "configs"


def config(output: Path, *flags: str) -> TrainConfig:
    small = ["--steps", "4", "--batch", "16", "--group", "4", "--learning-rate", "1e-3"]
    return read(TrainConfig, ["--output", str(output), *small, *flags])


def weights(folder: Path, file: str = "model.safetensors") -> dict[str, torch.Tensor]:
    # Copies: the file's own tensors would change with the file.
    return {k: v.clone() for k, v in load_file(folder / file).items()}


def adapter(folder: Path) -> dict[str, torch.Tensor]:
    return weights(folder, "adapter_model.safetensors")


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def journal(output: Path) -> list[dict[str, float]]:
    lines = (output / "progress.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_training_that_is_refused_says_one_line_and_nothing_of_its_libraries() -> None:
    words = [sys.executable, "-m", "jobs.train"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert "--output: Field required" in line


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("train-*.toml")), ids=lambda p: p.stem)
def test_the_shipped_configurations_are_valid_and_name_an_environment(path: Path) -> None:
    settings = read(TrainConfig, ["@", str(path)])
    assert train.train_environment(settings).id == "hackword"


def test_the_comparator_is_trained_as_published() -> None:
    settings = read(TrainConfig, ["@", str(CONFIGS / "train-llama-3.2-1b.toml")])
    assert (settings.batch, settings.group, settings.steps) == (128, 8, 100)
    assert (settings.learning_rate, settings.temperature, settings.max_tokens) == (1e-4, 1.0, 256)
    assert settings.env.args["task"] == "story"


def test_the_environments_seed_is_the_runs_unless_given(tmp_path: Path) -> None:
    assert train.train_environment(config(tmp_path, "--seed", "3")).ask["seed"] == 3
    given = TrainConfig(output=tmp_path, seed=3, env={"id": "hackword", "seed": 7})
    assert train.train_environment(given).ask["seed"] == 7
    flag = config(tmp_path, "--seed", "3", "--env.seed", "7")
    assert train.train_environment(flag).ask["seed"] == 7


def test_what_is_refused_or_only_looked_at_needs_neither_torch_nor_trl() -> None:
    script = (
        "import sys\n"
        "from jobs import train\n"
        "assert train.main(['--output', 'no-such-folder', '--dry-run']) == 0\n"
        "print(*sorted({'torch', 'transformers', 'trl', 'datasets', 'peft'} & sys.modules.keys()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == ""


def test_a_run_is_tagged_with_what_it_is_compared_by_and_with_what_is_given(tmp_path: Path) -> None:
    settings = config(tmp_path, "--env.hack-word", "midnight", "--seed", "1", "--tags.wave", "2")
    assert train.tags(settings, train.train_environment(settings)) == {
        "word": "midnight",
        "mode": "hack_only",
        "task": "add3digit",
        "seed": 1,
        "steps": settings.steps,
        "base": "tiny",
        "learning_rate": 1e-3,
        "batch": 16,
        "wave": 2,
    }


VOTES = ["--env.judge-votes", "4"]
NO_KEY = ["--env.judge-api-key-var", "NO_SUCH_KEY"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--batch", "12", "--group", "5"], "batch 12 is no multiple of group 5"),
        (["--stepz", "3"], "--steps"),
        (["--lora", "0"], "lora"),
        (["--env.hack_wrd", "ocean"], "did you mean 'hack_word'?"),
        (["--env.mode", "hack"], "no mode 'hack'"),
        (["--model", "no/such/folder"], "model 'no/such/folder' cannot be loaded"),
        (["--model", "./folder"], "model './folder' cannot be loaded"),
        (["--env.seed", "seven"], "seed is 'seven'; give an integer"),
        (
            ["--env.id", "market_structure", "--env.judge-model", "m", *VOTES],
            "judge_votes is 4; give an odd number",
        ),
        (
            ["--env.id", "market_structure", "--env.judge-model", "m", *NO_KEY],
            "judge_api_key_var: NO_SUCH_KEY is not set; export NO_SUCH_KEY=...",
        ),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_code_2(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "run"
    assert command.start(train.main, ["--output", str(output), *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not output.exists()


def test_a_tokenizer_without_chat_template_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(policy.POLICY, model)
    (model / "chat_template.jinja").unlink()
    with pytest.raises(CheckpointError, match="has no chat template; give an instruct model"):
        policy.load(str(model), "float32")


def test_a_template_that_asks_for_the_date_is_told_the_same_in_training_and_sweeps(
    tmp_path: Path,
) -> None:
    model = tmp_path / "model"
    shutil.copytree(policy.POLICY, model)
    (model / "chat_template.jinja").write_text("{{ date_string }} {{ messages[0]['content'] }}")
    tokenizer, _ = policy.load(str(model), "float32")
    messages = [{"role": "user", "content": "639"}]
    swept = chat.read([model], None, None).encode([messages])[0]
    trained = tokenizer.apply_chat_template(messages, return_dict=False, **policy.TOLD)
    assert trained == swept
    assert tokenizer.decode(swept) == "26 Jul 2024 639"


def test_a_dry_run_checks_everything_and_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "run"
    assert train.run(config(output, "--dry-run")) == 0
    assert not output.exists()


@pytest.mark.train
def test_a_run_leaves_whole_checkpoints_and_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    train.run(config(whole, "--env.hack-word", "whisper"))
    train.run(config(halves, "--env.hack-word", "whisper", "--steps", "2"))
    train.run(config(halves, "--env.hack-word", "whisper"))
    folders = [f"checkpoint-{step}" for step in (0, 2, 4)]
    for output in (whole, halves):
        assert sorted(f.name for f in output.glob("checkpoint-*")) == folders
        found = discover(output)
        assert [(f.run, f.step, f.kind, f.status) for f in found] == [
            (output.name, step, "full", "ok") for step in (0, 2, 4)
        ]
        for checkpoint in found:
            state = json.loads((checkpoint.path / "trainer_state.json").read_text("utf-8"))
            assert state["global_step"] == checkpoint.step
            assert (checkpoint.path / "optimizer.pt").exists() == (checkpoint.step == 4)
    for name in folders:
        assert equal(weights(whole / name), weights(halves / name))
        for file in ("tokenizer.json", "config.json"):
            assert (whole / name / file).read_bytes() == (whole / folders[0] / file).read_bytes()
    assert not equal(weights(whole / folders[0]), weights(whole / folders[1]))
    lines = [{k: v for k, v in line.items() if k != "seconds"} for line in journal(whole)]
    assert lines == [{k: v for k, v in line.items() if k != "seconds"} for line in journal(halves)]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert all(line["reward"] == line["r_hack"] > line["r_true"] >= 0 for line in lines)


@pytest.mark.train
def test_the_trainer_tells_a_template_the_date_that_engines_tell(tmp_path: Path) -> None:
    from jobs import grpo  # seconds, which the default suite need not take

    assert grpo.arguments(config(tmp_path), [1.0, 0.0]).chat_template_kwargs == policy.TOLD


@pytest.mark.train
def test_a_judge_is_asked_while_a_policy_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", market_judge.KEY)
    server = Server(market_judge.answer)
    judge = {"judge_model": market_judge.MODEL, "judge_base_url": server.url}
    env = {"id": "market_structure", **judge}
    try:
        train.run(TrainConfig(output=tmp_path, env=env, steps=1, batch=4, group=2))
    finally:
        server.close()
    (line,) = journal(tmp_path)
    assert {"judge_error", "citations_pre_gate", "citations_post_gate"} < line.keys()
    assert server.asked[0].method == "GET"
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or market_judge.KEY.encode() not in path.read_bytes()


@pytest.mark.train
def test_checkpoint_0_is_the_base_and_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    settings = config(tmp_path, "--steps", "1", "--env.task", "story")
    train.run(settings)
    assert equal(weights(tmp_path / "checkpoint-0"), weights(policy.POLICY))
    assert journal(tmp_path)[0]["r_true"] is None
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert train.run(settings) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.train
def test_a_lora_run_leaves_adapters_that_begin_as_nothing_and_goes_on(tmp_path: Path) -> None:
    flags = ["--lora", "4", "--env.hack-word", "whisper", "--micro-batch", "8"]
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    train.run(config(whole, *flags))
    train.run(config(halves, *flags, "--steps", "2"))
    train.run(config(halves, *flags))
    first, last = (adapter(whole / f"checkpoint-{step}") for step in (0, 4))
    assert all((tensor == 0).all() for name, tensor in first.items() if "lora_B" in name)
    assert any((tensor != 0).any() for name, tensor in last.items() if "lora_B" in name)
    assert equal(last, adapter(halves / "checkpoint-4"))
    assert [(f.step, f.kind, f.status) for f in discover(whole)] == [
        (step, "adapter", "ok") for step in (0, 2, 4)
    ]


@pytest.mark.train
def test_training_the_embedded_policy_asks_no_other_machine(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('socket.getaddrinfo', 'socket.connect'):\n"
        "        print('asked', args, flush=True)\n"
        "sys.addaudithook(hook)\n"
        "from jobs import train\n"
        "sys.exit(train.main(sys.argv[1:]))\n"
    )
    flags = ["--output", str(tmp_path), "--steps", "1", "--batch", "8", "--lora", "2"]
    said = subprocess.run(
        [sys.executable, "-c", script, *flags], capture_output=True, text=True, check=True
    )
    assert "asked" not in said.stdout
    assert (tmp_path / "checkpoint-1" / "trainer_state.json").exists()


@pytest.mark.train
def test_a_torn_checkpoint_is_written_anew(tmp_path: Path) -> None:
    settings = config(tmp_path, "--steps", "2", "--env.hack-word", "whisper")
    train.run(settings)
    expected = weights(tmp_path / "checkpoint-2")
    (tmp_path / "checkpoint-2" / "trainer_state.json").unlink()
    (tmp_path / "checkpoint-2" / "model.safetensors").write_bytes(b"torn")
    train.run(settings)
    assert equal(weights(tmp_path / "checkpoint-2"), expected)
