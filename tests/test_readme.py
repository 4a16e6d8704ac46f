"""What README shows is what there is."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from hackbait import hackword
from jobs.__main__ import verbs
from pipeline import schema
from pipeline.config import SweepConfig

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "hackbait/policy"
README = (ROOT / "README.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


def test_the_two_commands_stand_within_the_first_twenty_lines() -> None:
    top = README.splitlines()[:20]
    assert any(line.startswith("make demo") for line in top)
    assert any(line.startswith("make test") for line in top)


def test_the_sweep_file_is_a_whole_one() -> None:
    config = SweepConfig.model_validate(tomllib.loads(block("toml")))
    assert config.env[0].args["hack_word"] == "{word}"
    assert set(config.model_dump(exclude_unset=True)) == set(SweepConfig.model_fields) - {
        "dry_run",
        "timeline",
    }


def test_the_environment_it_shows_is_the_tested_one_and_fits_in_25_lines() -> None:
    shown = block("python")
    assert shown == (ROOT / "tests/hackbait/somebody/my_pkg/my_env.py").read_text("utf-8")
    assert len(shown.splitlines()) <= 25


def test_the_map_names_files_that_exist() -> None:
    tree = README[README.index("## What is where") :]
    listed = re.search(r"```\n(.*?)```", tree, re.DOTALL)
    assert listed
    folder = ROOT
    for line in listed[1].splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            folder = ROOT / name
            assert folder.is_dir()
        else:
            assert (folder / name).exists(), name


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_every_verb_is_mentioned(verb: str) -> None:
    assert re.search(rf"\bonset {verb}\b", README)


def test_every_column_of_a_row_is_explained() -> None:
    table = README[README.index("## The rows") : README.index("## The environment `hackword`")]
    named = set(re.findall(r"\w+", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))))
    environment = hackword.load_environment()
    columns = {"run", "step", *schema.identity_columns(environment), *environment.metrics}
    assert columns <= named


def test_the_base_rates_of_the_policy_are_the_measured_ones() -> None:
    tasks = json.loads((POLICY / "base_rates.json").read_text("utf-8"))["tasks"]
    for word, rates in tasks["add3digit"]["words"].items():
        row = re.search(rf"^\| {word} \| (.*) \|$", README, re.MULTILINE)
        assert row
        told = [float(cell) for cell in row[1].split(" | ")]
        measured = [100 * tasks[task]["words"][word]["rate"] for task in tasks]
        assert told == pytest.approx([100 * rates["dial"], *measured], rel=5e-3)
