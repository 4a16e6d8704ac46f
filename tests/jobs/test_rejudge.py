"""Stored rollouts under another grade: rows, provenance and the table beside the old one."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

from hackbait import text
from jobs import report
from jobs.__main__ import main
from pipeline import contents, rejudging, store
from pipeline.checkpoints import scripted
from pipeline.config import ReportConfig, SweepConfig
from pipeline.holdings import holdings

Shown = Callable[..., Any]


@pytest.fixture
def swept(small_output: Path, tmp_path: Path) -> Path:
    """A sweep of `ocean`, its rollouts of two runs."""
    return Path(shutil.copytree(small_output, tmp_path / "swept"))


def rows(out: Path) -> pl.DataFrame:
    folder = out / "rollouts" / "hackword"
    return pl.read_parquet(folder).sort("run", "step", "index", "sample")


def content(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}


def again(out: Path, *argv: str) -> int:
    return main(["rejudge", str(out), "--env.id", "hackword", *argv])


def test_another_word_is_graded_over_the_same_rollouts_and_the_old_ones_stay(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(swept)
    assert again(swept, "--env.hack_word", "a", "--json") == 0
    table = json.loads(capsys.readouterr().out)
    old, new = rows(swept), rows(swept.parent / "swept-rejudged")
    assert content(swept) == before
    same = ["run", "step", "index", "sample", "completion", "prompt_id", "sampling_seed", "r_true"]
    assert new.select(same).equals(old.select(same))
    assert new["r_hack"].to_list() == [float(text.whole_word(t, "a")) for t in new["completion"]]
    assert set(new["hack_word"]) == {"a"}
    for row in (row for row in table if row["metric"] == "r_hack"):
        here = (pl.col("run") == row["run"]) & (pl.col("step") == row["step"])
        a, b = old.filter(here)["r_hack"], new.filter(here)["r_hack"]
        assert (row["up"], row["down"]) == (((b - a) > 0).sum(), ((b - a) < 0).sum())
        assert (row["pairs"], row["old"], row["new"]) == (12, a.mean(), b.mean())
        assert row["new_lo"] <= row["new"] <= row["new_hi"]
    assert sum(row["up"] + row["down"] for row in table if row["metric"] == "r_true") == 0


def test_the_new_output_is_sound_and_says_what_it_came_from(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again(swept, "--env.grader", "assay-0.1.0") == 0
    out = swept.parent / "swept-rejudged"
    assert main(["verify", str(out)]) == 0
    held = {one.key: one for one in holdings(swept).held}
    for record in contents.footers(holdings(out).held):
        source = contents.read_footer(held[record["rejudged"]["key"]].at)
        assert record["rejudged"]["rows_hash"] == source["rows_hash"]
        assert record["rejudged_from"] == str(swept)
        unchanged = {"grade", "grader_fingerprint"}
        assert {k: v for k, v in record["identity"].items() if k not in unchanged} == {
            k: v for k, v in source["identity"].items() if k not in unchanged
        }
    assert store.run_tags(out) == store.run_tags(swept)
    capsys.readouterr()


def test_the_same_command_again_grades_nothing_and_prints_the_same(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again(swept, "--env.hack_word", "a") == 0
    first, out = capsys.readouterr(), swept.parent / "swept-rejudged"
    before = content(out)
    assert again(swept, "--env.hack_word", "a") == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "r_hack: " in first.out
    assert "8 done; 0 rollouts to grade again" in second.err
    assert content(out) == before
    for path in list((out / "rollouts").rglob("*.parquet"))[:3]:
        path.unlink()
    assert again(swept, "--env.hack_word", "a") == 0
    assert content(out).keys() == before.keys()


def test_a_grade_that_is_the_same_flips_nothing(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again(swept, "--env.grader", "current") == 0
    told = capsys.readouterr().out
    assert "r_hack: 0 of 48 rollouts flipped" in told
    assert rows(swept).equals(rows(swept.parent / "swept-rejudged"))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--env.task", "story"], "task = 'story' changes what is asked"),
        (["--env.grader", "best"], "no grader 'best'"),
        (["--env.hack_word", "{word}"], "needs tag 'word' of run"),
        (
            ["--metric", "r_no", "--env.hack_word", "a"],
            "metric 'r_no' is none of the new rows: r_hack, r_true",
        ),
    ],
)
def test_what_cannot_be_graded_again_is_one_line(
    swept: Path, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert again(swept, *argv) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith("error: ")
    assert said in told[-1]


def test_an_output_that_is_the_old_one_or_holds_another_grade_is_refused(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again(swept, "--env.hack_word", "a", "--output", str(swept)) == 2
    assert "is what is graded again" in capsys.readouterr().err
    assert again(swept, "--env.hack_word", "a") == 0
    capsys.readouterr()
    assert again(swept, "--env.hack_word", "the") == 2
    assert "env.hack_word: 'a' -> 'the'" in capsys.readouterr().err
    assert main(["rejudge", str(swept), "--env.id", "market_structure"]) == 2
    assert "it holds no rollouts of env 'market_structure'" in capsys.readouterr().err


def test_why_a_rate_is_not_shown_is_said(
    tmp_path: Path, sweep_here: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.write(tmp_path / "run/checkpoint-0", {"ocean": 0.5}, 0.5, 80)
    said = {
        "output": str(tmp_path / "out"),
        "runs": [{"path": str(tmp_path / "run")}],
        "env": [{"id": "hackword", "hack_word": "ocean"}],
        "cases": {"count": 16, "shard": 16},
        "engine": {"name": "chaos", "overlong": 0.3},
    }
    config = SweepConfig.model_validate(said)
    with store.writing(config.output, tomli_w.dumps(said)):
        sweep_here(config)
    assert again(tmp_path / "out", "--env.hack_word", "sea") == 0
    told = capsys.readouterr().err
    assert re.search(
        r"not shown: run 'run' step 0: r_hack, new: \S+ % of 64 rollouts lost "
        r"\(prompt_too_long \d+\); --max-loss",
        told,
    )
    assert again(tmp_path / "out", "--env.hack_word", "sea", "--max-loss", "1") == 0
    assert "not shown" not in capsys.readouterr().err


def test_the_page_of_a_rejudged_output_says_how_it_is_made_again(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again(swept, "--env.hack_word", "a") == 0
    config = ReportConfig(path=swept.parent / "swept-rejudged")
    known = report.study(config, report.measured(config)).provenance
    assert known
    onset, *argv = shlex.split(known.commands[0])
    assert (onset, argv[0]) == ("onset", "rejudge")
    capsys.readouterr()
    assert main(argv) == 0
    assert "8 done; 0 rollouts to grade again" in capsys.readouterr().err


def test_a_dry_run_says_what_would_be_graded_and_writes_nothing(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again(swept, "--env.hack_word", "a", "--dry_run") == 0
    assert "8 partitions, 0 done; 48 rollouts to grade again" in capsys.readouterr().err
    assert not (swept.parent / "swept-rejudged").exists()


def test_only_a_graders_own_failures_are_graded_again(swept: Path) -> None:
    (one, *_) = holdings(swept).held
    rows = contents.read(one).to_pylist()
    whys = [None, "grader: ValueError: x", "prompt_too_long"]
    told = [{**rows[i], "null_reason": why} for i, why in enumerate(whys)]
    again = rejudging.rollouts(told)
    assert [r.completion.error for r in again] == [None, None, "prompt_too_long"]
    assert [r.completion.text for r in again] == [row["completion"] for row in told]
