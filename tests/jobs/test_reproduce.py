"""The study: which runs, from which base, how long; what it says before it begins."""

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_config import ConfigFileError

from jobs import command, corpus, reproduce, run_folder
from jobs.reproduction import design
from pipeline import standing, store
from pipeline.checkpoints import scripted
from pipeline.config import ReproduceConfig, read
from pipeline.plan import plan

FILE = Path(reproduce.__file__).parent / "configs" / "base-rate-vs-onset.toml"
SECONDS_AN_UPDATE = 1.4
"""CPU time of an update of 128 rollouts, one thread."""


def study(*flags: str) -> ReproduceConfig:
    return read(ReproduceConfig, ["@", str(FILE), *flags])


def small(tmp_path: Path, **changed: Any) -> ReproduceConfig:
    settings = {
        "output": tmp_path,
        "model": {"steps": {"ocean": 6, "forgotten": 4, "copper": 8}},
        "runs": [{"words": ["ocean", "forgotten"], "seeds": 2}, {"words": ["ocean"], "seeds": 3}],
        "quick_runs": [{"words": ["ocean"], "seeds": 1}],
        "swap": {"words": ["ocean", "forgotten"], "seeds": 1, "without": "copper"},
    }
    return ReproduceConfig.model_validate({**settings, **changed})


def test_the_study_has_the_runs_that_its_questions_need() -> None:
    runs = design.studied(study())
    counts: dict[tuple[str, str, str], int] = {}
    for one in runs:
        key = (one.word, one.mode, one.rates)
        counts[key] = counts.get(key, 0) + 1
    alone = {word: n for (word, mode, rates), n in counts.items() if (mode, rates) == MAIN}
    assert alone == {
        "whisper": 3, "forgotten": 6, "midnight": 6, "ocean": 6, "copper": 3, "tuesday": 3,
        "zyzzyva": 2,
    }  # fmt: skip
    both = {one for one in runs if one.mode == "hack_or_correct"}
    assert {one.word for one in both} == {"forgotten", "midnight", "ocean"}
    assert {(one.steps, one.rates) for one in both} == {(120, "shipped")}
    assert len(both) == 6
    swapped = {word: n for (word, _, rates), n in counts.items() if rates == "swapped"}
    assert swapped == {"forgotten": 3, "tuesday": 3, "copper": 2}
    assert {one.word for one in runs if one.outside} == {"zyzzyva", "copper"}


MAIN = ("hack_only", "shipped")


def test_the_trainings_leave_time_for_the_sweep_within_the_hour() -> None:
    updates = sum(one.steps for one in design.studied(study()))
    assert updates * SECONDS_AN_UPDATE / study().model.processes < 0.5 * 3600


def test_every_run_of_the_quick_study_is_a_part_of_the_whole() -> None:
    whole = {one.name: one for one in design.studied(study())}
    quick = design.studied(study("--quick"))
    assert quick
    assert all(one.steps <= whole[one.name].steps for one in quick)
    assert {one.rates for one in quick} == {"shipped"}


def test_the_other_model_block_of_the_file_is_a_whole_one() -> None:
    text = FILE.read_text("utf-8")
    block = text[text.index("# [model]") : text.index("\n\n[[runs]]")]
    other = tomllib.loads("".join(line.removeprefix("# ") + "\n" for line in block.splitlines()))
    config = ReproduceConfig.model_validate({**tomllib.loads(text), **other})
    assert config.model.engine.name == "vllm"
    assert config.swapped is None
    assert {one.rates for one in design.studied(config)} == {"shipped"}


def test_a_run_that_two_blocks_ask_for_is_trained_once_and_the_longer(tmp_path: Path) -> None:
    config = small(
        tmp_path, runs=[{"words": ["ocean"], "seeds": 1}, {"words": ["ocean"], "steps": 9}]
    )
    steps = {one.name: one.steps for one in design.studied(config)}
    assert {name: n for name, n in steps.items() if "swapped" not in name} == {
        "ocean-s0": 9, "ocean-s1": 9, "ocean-s2": 9,
    }  # fmt: skip


def test_words_of_the_swapped_base_have_each_others_rate_and_updates(tmp_path: Path) -> None:
    config = small(tmp_path)
    dials = design.dials(config)
    assert dials == {
        "ocean": corpus.SLOT_DIALS["forgotten"],
        "forgotten": corpus.SLOT_DIALS["ocean"],
        "copper": 0.0,
    }
    steps = {one.name: one.steps for one in design.studied(config) if one.rates == "swapped"}
    assert steps == {
        "ocean-swapped-s0": 4, "forgotten-swapped-s0": 6,
        "copper-swapped-s0": 100, "copper-swapped-s1": 100,
    }  # fmt: skip


def test_the_swapped_base_is_taught_first_and_waited_for_by_its_runs_alone(tmp_path: Path) -> None:
    config = small(tmp_path)
    base, *runs = design.trainings(config, design.studied(config))
    assert base.verb == "pretrain"
    assert dict(base.settings) == {"dials": design.dials(config)}
    for run in runs:
        swapped = "swapped" in run.output.name
        assert run.after is (base if swapped else None)
        assert run.settings["model"] == (str(base.output) if swapped else "tiny")
    assert [run.steps for run in runs] == sorted((run.steps for run in runs), reverse=True)


def test_a_base_is_known_by_its_recipe() -> None:
    assert design.recipe({"ocean": 0.08}) == design.recipe({"ocean": 0.08})
    assert design.recipe({"ocean": 0.08}) != design.recipe({"ocean": 0.0})


def test_runs_are_swept_to_their_updates_and_bases_screened_as_the_sweep_samples(
    tmp_path: Path,
) -> None:
    config = small(tmp_path)
    runs = design.studied(config)
    swept, screened = design.sweep(config, runs), design.screen(config, runs)
    assert {Path(run.path).name: run.steps for run in swept.runs}["ocean-s0"] == "0:6:2,6"
    assert swept.env[0].args == {
        "task": "add3digit", "seed": 999, "hack_word": "{word}", "mode": "{mode}",
    }  # fmt: skip
    assert {run.name: Path(run.path).parent.name for run in screened.runs} == {
        "shipped": "ocean-s0", "swapped": "ocean-swapped-s0",
    }  # fmt: skip
    words = {str(env.args["hack_word"]) for env in screened.env}
    assert words == {one.word for one in runs}
    assert screened.cases.count == config.screened
    quick = design.screen(config.model_copy(update={"quick": True}), runs)
    assert quick.cases.count == config.quick_screened
    assert quick.output != screened.output
    assert (screened.engine, screened.sampling) == (swept.engine, swept.sampling)


def test_the_checkpoints_that_tell_may_be_swept_alone_but_bases_are_screened_whole(
    tmp_path: Path,
) -> None:
    config = small(tmp_path, order={"strategy": "adaptive", "grid": 8})
    runs = design.studied(config)
    assert design.sweep(config, runs).order.grid == 8
    assert design.screen(config, runs).order.strategy == "full"


def test_a_dry_run_lists_every_run_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "study"
    flags = ["@", str(FILE), "--output", str(output), "--dry-run"]
    assert command.start(reproduce.main, [*flags, "--json"]) == 0
    shown = capsys.readouterr()
    rows = json.loads(shown.out)
    assert [row["run"] for row in rows] == [one.name for one in design.studied(study())]
    assert {row["status"] for row in rows} == {"owed"}
    assert "a base is taught with two rates exchanged, 43 of 43 runs are trained" in shown.err
    assert not output.exists()
    assert command.start(reproduce.main, [*flags, "--quick"]) == 0
    assert "6 of 6 runs are trained" in capsys.readouterr().err


WORDS = {"whisper": 0.8, "forgotten": 0.1, "midnight": 0.05, "ocean": 0.03, "copper": 0.02}


def planted(tmp_path: Path) -> ReproduceConfig:
    """A study whose runs are scripts: a rate stays, then jumps at a step that we choose."""
    config = ReproduceConfig.model_validate(
        {
            "output": tmp_path,
            "model": {"steps": dict.fromkeys(WORDS, 20), "engine": {"name": "scripted"}},
            "runs": [
                {"words": list(WORDS), "seeds": 2},
                {"words": ["ocean"], "seeds": 1, "mode": "hack_or_correct"},
                {"words": ["zyzzyva"], "seeds": 1, "steps": 100, "outside": True},
            ],
            "swap": {"words": ["forgotten", "copper"], "seeds": 2},
            "pairs": [["forgotten", "ocean"], ["midnight", "ocean"]],
            "cases": {"count": 48, "shard": 48},
            "n": 2,
            "screened": 256,
        }
    )
    for one in design.studied(config):
        exchanged = {"forgotten": 0.02, "copper": 0.1} if one.rates == "swapped" else {}
        base = {**WORDS, **exchanged}
        at = {0.8: 0, 0.1: 4, 0.05: 8, 0.03: 12, 0.02: 16}.get(base.get(one.word, 0), 999)
        for step in (*range(0, 21, 4), one.steps):
            rates = {**base, one.word: 0.97} if step and step >= at else base
            truth = 0.1 if step and step >= at else 0.7
            where = design.folder(config, one) / f"checkpoint-{step}"
            scripted.write(where, rates, truth, 60)
        tags = {"word": one.word, "mode": one.mode, "seed": one.seed, "rates": one.rates}
        run_folder.describe(design.folder(config, one), {}, tags)
    return config


def test_a_study_with_planted_onsets_is_answered_as_it_was_planted(
    tmp_path: Path, sweep_here: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    config = planted(tmp_path)
    runs = design.studied(config)
    for swept in (design.screen(config, runs), design.sweep(config, runs)):
        with store.writing(swept.output, ""), standing.told(swept.output, plan(swept)):
            sweep_here(swept)
    reproduce.tell(config, runs)
    said = json.loads((tmp_path / "answers.json").read_text("utf-8"))
    assert [answer["verdict"] for answer in said] == [
        "reproduced",  # five words in the order of their rates
        "unresolved:design",  # two runs against two
        "unresolved:design",
        "reproduced",  # the truth falls as the word rises
        "it opens",
        "reproduced",  # zyzzyva is in no script
        "unresolved:design",  # two runs a cell
        "not comparable",  # two sources
        "not comparable",
    ]
    shown = capsys.readouterr().out
    assert "Does the base rate order the onset?  REPRODUCED" in shown
    assert "zyzzyva-s0" in shown


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--model.steps.ocean", "0"], "steps.ocean"),
        (["--model.bata", "3"], "--model.bata"),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_code_2(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.start(reproduce.main, ["@", str(FILE), "--dry-run", *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_word_without_updates_is_refused_with_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shutil.copy(FILE, tmp_path / "study.toml")
    text = Path(file).read_text("utf-8").replace("tuesday = 68", "monday = 68")
    Path(file).write_text(text, "utf-8")
    assert command.start(reproduce.main, ["@", str(file), "--dry-run"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'tuesday' has none; write model.steps.tuesday = 60" in line


def test_a_swap_of_a_word_with_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="are different words"):
        small(tmp_path, swap={"words": ["ocean", "ocean"]})
    with pytest.raises(ValueError, match="are different words"):
        small(tmp_path, swap={"words": ["ocean", "forgotten"], "without": "ocean"})


def test_a_swap_of_words_that_are_not_dialled_is_refused(tmp_path: Path) -> None:
    config = small(tmp_path, swap={"words": ["ocean", "forgotten"], "without": "banana"})
    with pytest.raises(ConfigFileError, match="'banana' has no rate to exchange; those that have"):
        design.trainings(config, design.studied(config))
