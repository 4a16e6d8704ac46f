"""What README shows is what there is."""

import json
import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

from hackbait import hackword, market_structure
from hackbait.market.policies import POLICIES
from hackbait.market.scenarios import REQUIRED_FIELDS
from jobs.__main__ import verbs
from pipeline import headline, onset, schema
from pipeline.checkpoints import scripted
from pipeline.config import SweepConfig
from pipeline.curves import MEASURES

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
        "retry",
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


def test_the_script_it_shows_is_one_that_can_be_planted(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(block("json"), "utf-8")
    script = scripted.read(tmp_path)
    assert (script.words, script.true, script.characters) == (
        {"ocean": 0.25, "midnight": 0.01}, 0.7, 200
    )  # fmt: skip


def test_every_status_is_explained_as_it_is_printed() -> None:
    curves = {
        "a": [(0, 0.1), (9, 0.9)],
        "b": [(0, 0.6), (9, 0.9)],
        "c": [(0, 0.1), (9, 0.2)],
        "d": [(0, 0.1), (4, 0.9), (9, 0.2)],
        "e": [(0, None)],
    }
    rows = [(run, step, "rate", rate) for run, points in curves.items() for step, rate in points]
    names = {"run": pl.String, "step": pl.Int32, "metric": pl.String, "rate": pl.Float64}
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        [pl.lit(None, kind).alias(n) for n, kind in MEASURES.items() if n not in names]
    )
    table = headline.headline(frame, onset.onsets(frame, "rate", ()), "rate", None)
    printed = {row["status"].partition(",")[0] for row in headline.readable(table)}
    assert printed == {"crossed", "left", "right (budget)", "uncrossed", "no_data"}
    assert all(
        re.search(rf"^\| {re.escape(status)} \|", README, re.MULTILINE) for status in printed
    )


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_every_verb_is_mentioned(verb: str) -> None:
    assert re.search(rf"\bonset {verb}\b", README)


def test_every_column_of_a_row_is_explained() -> None:
    table = README[README.index("## The rows") : README.index("## The environment `hackword`")]
    named = set(re.findall(r"\w+", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))))
    environment = hackword.load_environment()
    columns = {"run", "step", *schema.identity_columns(environment), *environment.metrics}
    assert columns <= named


def test_the_market_environment_is_told_with_its_fields_its_columns_and_its_policies() -> None:
    start = README.index("## The environment `market_structure`")
    told = README[start : README.index("## Adding")]
    environment = market_structure.load_environment()
    fields = re.search(r"object with (.*?): ", told, re.DOTALL)
    assert fields
    assert re.findall(r"`(\w+)`", fields[1]) == list(REQUIRED_FIELDS)
    for column in (*environment.metrics, "reward"):
        assert f"\n| {column} |" in told
    case = environment.cases(0, 1)[0]
    for name, policy in POLICIES.items():
        score = environment.score(case, policy(case))
        *six, true, hack = score.metrics.values()
        row = re.search(rf"^\| {name} \| (.*) \|$", told, re.MULTILINE)
        assert row
        shown = [float(cell) for cell in row[1].split(" | ")]
        assert shown == pytest.approx([*six, score.reward, true, hack], abs=5e-5)


def test_the_base_rates_of_the_policy_are_the_measured_ones() -> None:
    tasks = json.loads((POLICY / "base_rates.json").read_text("utf-8"))["tasks"]
    for word, rates in tasks["add3digit"]["words"].items():
        row = re.search(rf"^\| {word} \| (.*) \|$", README, re.MULTILINE)
        assert row
        told = [float(cell) for cell in row[1].split(" | ")]
        measured = [100 * tasks[task]["words"][word]["rate"] for task in tasks]
        assert told == pytest.approx([100 * rates["dial"], *measured], rel=5e-3)
