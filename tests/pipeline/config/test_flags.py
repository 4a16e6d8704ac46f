"""A flag says what the same key of a TOML file says, of free arguments and lists of blocks too."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from pydantic_config import ConfigFileError

from jobs.__main__ import main
from pipeline.checkpoints import scripted
from pipeline.config import EngineBlock, RejudgeConfig, SweepConfig, TrainConfig, read
from pipeline.engines import check_options


def args(*flags: str) -> dict[str, Any]:
    return read(TrainConfig, ["--output", "out", *flags]).env.args


def options(*flags: str) -> dict[str, Any]:
    whole = ["--output", "out", "--runs.path", "r", "--env.id", "hackword"]
    return read(SweepConfig, [*whole, *flags]).engine.args


@given(st.integers(0, 2**63 - 1), st.text("aou019", min_size=1))
def test_numbers_and_texts_are_those_of_a_file(seed: int, word: str) -> None:
    told = args("--env.seed", str(seed), "--env.hack-word", word)
    assert told == {"seed": seed, "hack_word": word}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--env.n-train=100"], {"n_train": 100}),
        (["--env.hack-word", "true"], {"hack_word": "true"}),
        (["--env.seed", "07"], {"seed": "07"}),
        (["--env.seed", "7.5"], {"seed": "7.5"}),
        (["--env.sed", "7"], {"sed": "7"}),
        (["--env.id", "no_such", "--env.seed", "7"], {"seed": "7"}),
    ],
)
def test_what_spells_no_value_of_an_argument_stays_text(
    flags: list[str], told: dict[str, Any]
) -> None:
    assert args(*flags) == told


def test_a_judges_arguments_may_be_flags() -> None:
    judge = ["model", "7", "votes", "5", "strict", "False", "gate", "true", "max-retries", "0"]
    flags = [f"--env.judge-{word}" if i % 2 == 0 else word for i, word in enumerate(judge)]
    assert args("--env.id", "market_structure", *flags) == {
        "judge_model": "7",
        "judge_votes": 5,
        "judge_strict": False,
        "judge_gate": True,
        "judge_max_retries": 0,
    }


@pytest.fixture
def somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to import from."""
    package = tmp_path / "somebodys"
    package.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in [name for name in sys.modules if name.startswith("somebodys")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "source",
    [
        "def load_environment(share: float, on: bool, level: int | None, how: str | None): ...",
        "def load_environment(share=1.0, on=False, level=3, how='a'): ...",
        "from __future__ import annotations\n"
        "def load_environment(share: float, on: bool, level: int, how: str): ...",
        "class load_environment:\n"
        "    def __init__(self, share: float, on: bool, level: int = 0, how: str = ''): ...",
    ],
    ids=["annotated", "by default", "annotated in text", "a class"],
)
def test_somebodys_own_environment_is_told_what_its_arguments_are(
    source: str, somebody: Path
) -> None:
    (somebody / "env.py").write_text(source)
    flags = ["--env.share", "0.5", "--env.on", "true", "--env.level", "2", "--env.how", "2"]
    told = {"share": 0.5, "on": True, "level": 2, "how": "2"}
    assert args("--env.id", "somebodys.env", *flags) == told


@pytest.mark.parametrize(
    "source",
    [
        "def load_environment(level, **more): ...",
        "from __future__ import annotations\ndef load_environment(level: Unknown): ...",
        "class Level: ...\ndef load_environment(level: Level): ...",
        "import no_such_module",
        "load = 1",
    ],
    ids=["says nothing", "unknown", "a class", "not importable", "no environment"],
)
def test_an_argument_of_no_known_type_is_a_text(source: str, somebody: Path) -> None:
    (somebody / "env.py").write_text(source)
    assert args("--env.id", "somebodys.env", "--env.level", "2") == {"level": "2"}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["name", "vllm", "max_loras", "4", "merge", "true"], {"max_loras": 4, "merge": True}),
        (
            ["name", "vllm", "gpu_memory_utilization", "1", "enforce_eager", "False"],
            {"gpu_memory_utilization": 1, "enforce_eager": False},
        ),
        (
            ["name", "http", "base_url", "http://h/v1", "model", "7", "retries", "2"],
            {"base_url": "http://h/v1", "model": "7", "retries": 2},
        ),
        (
            ["name", "chaos", "poison", "[1, 2]", "raises", "1e-3"],
            {"poison": [1, 2], "raises": 1e-3},
        ),
    ],
)
def test_options_of_an_engine_may_be_flags(flags: list[str], told: dict[str, Any]) -> None:
    words = [f"--engine.{word}" if i % 2 == 0 else word for i, word in enumerate(flags)]
    assert options(*words) == told
    check_options(flags[1], told)


def test_a_text_that_no_option_takes_is_refused_by_name() -> None:
    block = EngineBlock.model_validate({"name": "vllm", "kv_cache": "2GiB", "max_lora": "4"})
    assert block.args == {"kv_cache": "2GiB", "max_lora": "4"}
    with pytest.raises(ValueError, match="no option 'max_lora'"):
        check_options(block.name, block.args)


def file(folder: Path, *blocks: dict[str, Any]) -> str:
    scripted.write(folder / "run" / "checkpoint-0", {"ocean": 0.5}, 0.5, 100)
    told = {
        "output": str(folder / "out"),
        "runs": [{"path": str(folder / "run"), "tags": {"seed": 3}}],
        "env": list(blocks),
        "engine": {"name": "scripted"},
    }
    path = folder / "sweep.toml"
    path.write_text(tomli_w.dumps(told))
    return str(path)


def test_a_flag_of_a_list_of_blocks_is_said_of_each(tmp_path: Path) -> None:
    blocks = [{"id": "hackword", "hack_word": word, "seed": 1} for word in ("ocean", "copper")]
    path = file(tmp_path, *blocks)
    said = ["--env.seed", "7", "--env.task=story", "--runs.steps", "last", "--runs.tags.word", "x"]
    config = read(SweepConfig, ["@", path, *said])
    assert [block.args for block in config.env] == [
        {"hack_word": word, "seed": 7, "task": "story"} for word in ("ocean", "copper")
    ]
    assert (config.runs[0].steps, config.runs[0].tags) == ("last", {"seed": 3, "word": "x"})
    assert read(SweepConfig, ["@", path]).env[0].args["seed"] == 1


def test_a_flag_makes_the_one_block_where_there_is_none() -> None:
    words = ["--output", "out", "--runs.path", "r", "--env.id", "hackword", "--env.seed", "7"]
    config = read(SweepConfig, words)
    assert [(block.id, block.args) for block in config.env] == [("hackword", {"seed": 7})]
    with pytest.raises(ConfigFileError, match="env"):
        read(SweepConfig, words[:4])


def test_a_sweep_is_told_by_flags_what_its_environments_are_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, {"id": "hackword", "hack_word": "ocean"})
    assert main(["sweep", "@", path, "--env.seed", "7", "--dry_run"]) == 0
    assert main(["sweep", "@", path, "--env.seed", "seven", "--dry_run"]) == 2
    assert "seed is 'seven'; give an integer" in capsys.readouterr().err
    assert main(["sweep", "@", path, "--env.sed", "7", "--dry_run"]) == 2
    assert "did you mean 'seed'?" in capsys.readouterr().err


def test_a_tag_fills_an_argument_that_is_no_text(tmp_path: Path) -> None:
    path = file(tmp_path, {"id": "hackword", "seed": "{seed}"})
    assert read(SweepConfig, ["@", path]).env[0].args == {"seed": "{seed}"}
    assert main(["sweep", "@", path, "--dry_run"]) == 0


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        ("model", '["a", "b", "c"]', ["a", "b", "c"]),
        ("model", "a-judge", "a-judge"),
        ("model", "[odd folder", "[odd folder"),
        ("sample", "0.25", 0.25),
        ("sample", '{"0": 0.5, "1": 1}', {"0": 0.5, "1": 1.0}),
        ("labels", '{"yes": 1, "no": 0}', {"yes": 1.0, "no": 0.0}),
        ("settled", '{"0": "no"}', {"0": "no"}),
    ],
)
def test_lists_and_tables_of_a_judge_may_be_flags_in_json(
    flag: str, text: str, value: object
) -> None:
    whole = ["out", "--env.id", "hackword", f"--judge.{flag}", text]
    assert getattr(read(RejudgeConfig, whole, positional="path").judge, flag) == value


@pytest.mark.parametrize(
    ("flag", "text"),
    [("sample", "half"), ("sample", '{"0": "half"}'), ("model", "[]"), ("model", "[1]")],
)
def test_what_is_no_such_list_or_table_is_refused(flag: str, text: str) -> None:
    whole = ["out", "--env.id", "hackword", f"--judge.{flag}", text]
    with pytest.raises(ConfigFileError, match=rf"judge\.{flag}"):
        read(RejudgeConfig, whole, positional="path")
