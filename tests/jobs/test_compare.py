"""`onset compare` on swept outputs, and `onset power` before any."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jobs import sweep
from jobs.__main__ import main
from pipeline import store
from pipeline.checkpoints import scripted
from pipeline.compare import PAIRS
from pipeline.config import SweepConfig
from pipeline.plan import plan
from pipeline.records import Written

SweepHere = Callable[..., list[Written]]

BASES = {"whisper": 0.8, "forgotten": 0.3, "midnight": 0.1}
LAST = {"whisper": 1.0, "forgotten": 0.9, "midnight": 0.2}


def sweep_of(
    tmp_path: Path, name: str, seeds: range, bases: dict[str, float] = BASES, **env: Any
) -> SweepConfig:
    """Runs of three words, a seed each; midnight never crosses."""
    blocks = []
    for word in BASES:
        for seed in seeds:
            folder = tmp_path / name / f"{word}-s{seed}"
            for step, rate in ((0, bases[word]), (10 + seed, LAST[word])):
                scripted.write(folder / f"checkpoint-{step}", {word: rate}, 0.5, 60)
            tags = {"word": word, "seed": seed, "wave": seed % 2}
            blocks.append({"path": str(folder), "name": folder.name, "tags": tags})
    return SweepConfig.model_validate(
        {
            "output": tmp_path / f"{name}-out",
            "runs": blocks,
            "env": [{"id": "hackword", "task": "story", "hack_word": "{word}"} | env],
            "cases": {"count": 40, "shard": 40},
            "sampling": {"n": 4},
            "engine": {"name": "scripted"},
        }
    )


def swept(config: SweepConfig, sweep_here: SweepHere) -> Path:
    with store.writing(config.output, ""):
        store.tell_runs(config.output, {r.name: sweep.facts(r) for r in plan(config).runs})
        sweep_here(config)
    assert isinstance(config.output, Path)
    return config.output


def records(capsys: pytest.CaptureFixture[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in json.loads(capsys.readouterr().out):
        found.setdefault(record["about"], []).append(record)
    return found


def test_five_seeds_a_word_resolve_three_words_and_three_words_no_association(
    tmp_path: Path, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    one = str(swept(sweep_of(tmp_path, "a", range(2)), sweep_here))
    other = str(swept(sweep_of(tmp_path, "b", range(2, 5)), sweep_here))
    saved = tmp_path / "pairs.parquet"
    assert main(["compare", one, other, "--json", "--save", str(saved)]) == 0
    found = records(capsys)
    assert [pair["verdict"] for pair in found["pair"]] == [
        "resolved:whisper<forgotten",
        "resolved:whisper<midnight",
        "resolved:forgotten<midnight",
    ]
    assert all(pair["p_wave"] is not None for pair in found["pair"])
    assert [word["name"] for word in found["word"]] == ["whisper", "forgotten", "midnight"]
    (association,) = found["association"]
    assert (association["verdict"], association["s"]) == ("unresolved:design", 3)
    assert association["p_one"] == pytest.approx(1 / 6)
    assert [one["verdict"] for one in found["published"]] == ["not comparable"] * 2
    assert "model is not known, theirs Llama-3.2-1B-Instruct" in found["published"][0]["note"]
    assert pl.read_parquet(saved).schema == PAIRS
    assert main(["compare", one]) == 0
    printed = capsys.readouterr().out
    assert "2 v 2" in printed
    assert "5 runs a word can" in printed
    assert "base rate against onset over 3 words: unresolved:design" in printed
    assert "not comparable: Prime Intellect" in printed


def test_two_modes_are_refused_by_name_until_one_is_chosen(
    tmp_path: Path, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    one = swept(sweep_of(tmp_path, "a", range(1), task="story_sum"), sweep_here)
    other = swept(
        sweep_of(tmp_path, "b", range(1, 2), task="story_sum", mode="hack_or_correct"), sweep_here
    )
    paths = [str(one), str(other)]
    assert main(["compare", *paths]) == 2
    assert "cannot compare: mode is 'hack_only' in run" in capsys.readouterr().err
    assert main(["compare", *paths, "--only.mode", "hack_only", "--json"]) == 0
    assert [pair["n_a"] for pair in records(capsys)["pair"]] == [1, 1, 1]
    assert main(["compare", *paths, "--only.mode", "both"]) == 2
    assert "no run has 'both'; they have hack_only" in capsys.readouterr().err


def test_the_columns_of_a_csv_say_word_and_wave(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["run,step,rate,word,batch"]
    for word, steps in {"ocean": (0, 10), "midnight": (30, 40)}.items():
        for seed in range(4):
            points = zip(steps, (0.1, 0.9), strict=True)
            lines += [f"{word}{seed},{step},{rate},{word},{seed % 2}" for step, rate in points]
    (tmp_path / "c.csv").write_text("\n".join(lines))
    assert main(["compare", str(tmp_path / "c.csv"), "--wave", "batch"]) == 0
    printed = capsys.readouterr().out
    assert "resolved:ocean<midnight" in printed
    assert "later by" in printed
    assert "7.00 [7.00, 7.00]" in printed


def test_a_csv_shows_no_interval_of_a_base_rate_and_says_what_it_takes_for_granted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four runs of ocean, two of which end below one half, one early; base rates are .1 to .4."""
    lines = ["run,step,rate,word"]
    for seed, (end, last) in enumerate(((10, 0.9), (10, 0.9), (10, 0.2), (2, 0.45))):
        lines += [f"o{seed},0,{(seed + 1) / 10},ocean", f"o{seed},{end},{last},ocean"]
    (tmp_path / "c.csv").write_text("\n".join([*lines, ""]))
    assert main(["compare", str(tmp_path / "c.csv")]) == 0
    printed = capsys.readouterr()
    row = next(line for line in printed.out.splitlines() if line.startswith("ocean "))
    assert " ".join(row.split()) == "ocean 25 % 4 5.0 (Kaplan-Meier)"
    assert "2 runs, 'o2' first, below the threshold at the last checkpoint are taken" in printed.err
    assert "a column 'steps'" in printed.err
    for planned, method, low in ((10, "Kaplan-Meier", 5.0), (90, "median", 4.643)):
        budget = {"run": "steps", "o3,": "2"} if planned == 10 else {"run": "steps"}
        told = [f"{line},{budget.get(line[:3], planned)}\n" for line in lines]
        (tmp_path / "c.csv").write_text("".join(told))
        assert main(["compare", str(tmp_path / "c.csv"), "--json"]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        (word,) = [one for one in json.loads(said.out) if one["about"] == "word"]
        assert (word["method"], word["base_lo"]) == (method, None)
        assert word["low"] == pytest.approx(low, abs=0.001)


def test_a_base_without_a_hit_has_one_bound_in_table_and_compare(
    tmp_path: Path, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    never = {**BASES, "midnight": 0.0}
    out = str(swept(sweep_of(tmp_path, "z", range(2), never), sweep_here))
    assert main(["table", out, "--json"]) == 0
    rows = [r for r in json.loads(capsys.readouterr().out) if r["hack_word"] == "midnight"]
    assert main(["compare", out, "--json"]) == 0
    (word,) = [w for w in records(capsys)["word"] if w["name"] == "midnight"]
    assert {row["base_bound"] for row in rows} == {row["base_hi"] for row in rows}
    assert word["base_hi"] == max(row["base_bound"] for row in rows)
    assert main(["compare", out]) == 0
    said = capsys.readouterr().out
    assert f"0 % (< {100 * word['base_hi']:.2g} %)" in said


def test_a_csv_that_says_no_word_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.csv").write_text("run,step,rate\na,0,0.1\na,5,0.9\n")
    assert main(["compare", str(tmp_path / "c.csv")]) == 2
    assert "run 'a' has no 'hack_word'" in capsys.readouterr().err
    assert main(["compare"]) == 2
    assert "a path is missing" in capsys.readouterr().err


def test_damaged_tags_are_refused_and_absent_ones_are_none(
    tmp_path: Path, sweep_here: SweepHere, capsys: pytest.CaptureFixture[str]
) -> None:
    out = swept(sweep_of(tmp_path, "a", range(3, 4)), sweep_here)
    assert store.about(out).tags["whisper-s3"] == {
        "word": "whisper", "seed": 3, "wave": 1
    }  # fmt: skip
    (out / "runs.json").write_text('{"a": 3}')
    assert main(["compare", str(out)]) == 2
    assert "runs.json is damaged" in capsys.readouterr().err
    (out / "runs.json").unlink()
    assert main(["compare", str(out), "--json"]) == 0
    assert {pair["p_wave"] for pair in records(capsys)["pair"]} == {None}


def test_power_says_what_a_design_can_resolve(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--words", "3", "--runs", "4", "5"]) == 0
    said = capsys.readouterr().out
    assert "3 words are 3 pairs: 5 runs a word are the fewest that can resolve one" in said
    assert "Base rate against onset needs 5 words" in said
    assert "95 % within +-" in said
    assert "All pairs: adjusted by Holm over 3, so that the first" in said
    assert main(["power", "--runs", "4", "--json"]) == 0
    (design,) = json.loads(capsys.readouterr().out)
    assert (design["runs"], design["resolves"]) == (4, False)
