"""Planted faults: as many as asked, and every other rollout as the script has it."""

from pathlib import Path

import pytest

from hackbait.environment import load
from pipeline import engines
from pipeline.checkpoints import scripted
from pipeline.records import Checkpoint, Sampling
from pipeline.rollout import sampling_seeds

SAMPLING = Sampling(n=8)


def texts(folder: Path, name: str, **options: object) -> list[tuple[str | None, str | None]]:
    scripted.write(folder, {"ocean": 0.5}, 0.5, 100)
    engine = engines.load(name, options)
    engine.load(Checkpoint("run", 0, str(folder), "script", ""))
    cases = load("hackword", task="add3digit").cases(0, 512)
    drawn = engine.generate(cases, sampling_seeds(cases, SAMPLING), SAMPLING)
    return [(completion.text, completion.error) for own in drawn for completion in own]


def test_faults_of_rows_come_at_their_rate_and_spare_the_others(tmp_path: Path) -> None:
    plain = texts(tmp_path, "scripted")
    faulty = texts(tmp_path, "chaos", overlong=0.05, empty=0.05)
    assert all(
        b in (a, ("", None), (None, "prompt_too_long")) for a, b in zip(plain, faulty, strict=True)
    )
    for kind in (("", None), (None, "prompt_too_long")):
        assert faulty.count(kind) / len(faulty) == pytest.approx(0.05, abs=0.015)


def test_a_rollout_that_is_over_long_is_so_whenever_it_is_asked(tmp_path: Path) -> None:
    once, again = (texts(tmp_path, "chaos", overlong=0.05) for _ in range(2))
    assert once == again


def test_a_call_that_raises_says_that_it_was_planted(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="planted"):
        texts(tmp_path, "chaos", raises=1.0)


def test_no_engine_is_built_for_the_steps_that_are_named(tmp_path: Path) -> None:
    assert texts(tmp_path, "chaos", refuses=[1])
    with pytest.raises(engines.EngineError, match="step 0"):
        texts(tmp_path, "chaos", refuses=[0, 1])
