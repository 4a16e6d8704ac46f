"""An adaptive sweep's works, written here and now: few, resumable, and taken over by a full one."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import tomli_w

from jobs.curves import measure
from pipeline import onset, standing, status, store
from pipeline.checkpoints import scripted
from pipeline.config import CurvesConfig, SweepConfig
from pipeline.order.adaptive import Adaptive
from pipeline.places import where
from pipeline.plan import owed, plan
from pipeline.records import Failure, Written
from pipeline.verify import verify

SweepHere = Callable[..., list[Written]]
Over = tuple[SweepConfig, Adaptive]
WORDS = {"ocean": 17.0, "whisper": 8.0}


def sweep_of(folder: Path) -> SweepConfig:
    """A run of 31 checkpoints that learns two words, at 8 and at 17; two shards."""
    for step in range(31):
        rates = {word: 1 / (1 + math.exp(at - step)) for word, at in WORDS.items()}
        scripted.write(folder / f"run/checkpoint-{step}", rates, 0.5, 40)
    return SweepConfig.model_validate(
        {
            "output": folder / "out",
            "runs": [{"path": str(folder / "run")}],
            "env": [{"id": "hackword", "task": "story", "hack_word": word} for word in WORDS],
            "cases": {"count": 24, "shard": 12},
            "sampling": {"n": 2},
            "engine": {"name": "scripted"},
            "order": {"strategy": "adaptive", "grid": 8},
        }
    )


@pytest.fixture
def config(tmp_path: Path) -> SweepConfig:
    return sweep_of(tmp_path)


def begin(config: SweepConfig) -> Adaptive:
    wanted = plan(config)
    done = store.done(config.output, wanted.partitions)
    return Adaptive(wanted, config.output, config.order, done)


def play(config: SweepConfig, sweep_here: SweepHere, rounds: int = 1000) -> Adaptive:
    """Launch, and go on for so many rounds."""
    order = begin(config)
    with (
        store.writing(config.output, ""),
        standing.told(config.output, order.so_far, searched=order.searched) as told,
    ):
        for _ in range(rounds):
            works = order.works()
            told.plan(order.so_far, order.searched)
            for event in sweep_here(config, works):
                order.hear(event)
            if not works:
                break
    return order


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory, sweep_here: SweepHere) -> Over:
    """A search that is over."""
    config = sweep_of(tmp_path_factory.mktemp("adaptive"))
    return config, play(config, sweep_here)


def crossings(config: SweepConfig) -> dict[str, float]:
    found = measure(CurvesConfig(path=config.output))
    table = onset.onsets(found.frame, "r_hack", found.identity)
    return dict(zip(table["hack_word"], table["onset"], strict=True))


def test_every_evaluated_checkpoint_has_every_word(over: Over) -> None:
    rows = pl.read_parquet(f"{over[0].output}/rollouts/hackword")
    assert set(rows.group_by("step", "index", "sample").len()["len"]) == {2}


def test_what_was_not_wanted_is_neither_owed_nor_a_gap(over: Over) -> None:
    config, order = over
    said, _ = standing.read(config.output)
    assert said is not None
    assert said.searched == order.searched
    done = store.done(config.output, order.plan.partitions)
    assert 0 < len(done) < len(order.plan.partitions) * 0.6
    (one,) = status.standings(said, done, None, False)
    assert (one.owed, one.failed, one.done) == (0, 0, len(done))
    assert verify(config.output, sample=10).is_sound


def test_without_its_plan_no_checkpoint_is_a_gap_either(over: Over, tmp_path: Path) -> None:
    config, _ = over
    assert isinstance(config.output, Path)
    copied = shutil.copytree(config.output, tmp_path / "out")
    (copied / "status/plan.json").unlink()
    resolved = config.model_dump(mode="json", exclude_none=True)
    (copied / "config.toml").write_text(tomli_w.dumps(resolved))
    assert verify(copied, sample=10).is_sound


def test_few_checkpoints_give_the_onset_of_all_and_a_full_sweep_takes_over_each_partition(
    over: Over, sweep_here: SweepHere, tmp_path: Path
) -> None:
    config, order = over
    assert isinstance(config.output, Path)
    copied = config.model_copy(update={"output": tmp_path / "out"})
    shutil.copytree(config.output, copied.output)
    (searched,) = order.searched
    assert searched.is_over
    assert len(searched.steps) < 22
    few, done = crossings(config), store.done(config.output, order.plan.partitions)
    sweep_here(copied, owed(order.plan.works, done))
    assert len(store.done(copied.output, order.plan.partitions)) == len(order.plan.partitions)
    assert crossings(copied) == pytest.approx(few)


def test_a_new_launch_goes_on_where_the_last_was_cut_off(
    config: SweepConfig, over: Over, sweep_here: SweepHere
) -> None:
    for rounds in (1, 2, 3):
        play(config, sweep_here, rounds)
    assert play(config, sweep_here).searched == over[1].searched


def test_a_checkpoint_that_fails_is_gone_round(config: SweepConfig, sweep_here: SweepHere) -> None:
    order = begin(config)
    while works := order.works():
        for work in works:
            if work.checkpoint.step in (8, 17):
                for partition in work.partitions:
                    order.hear(Failure(partition, "torn"))
            else:
                for event in sweep_here(config, [work]):
                    order.hear(event)
    (searched,) = order.searched
    assert not {8, 17} & set(searched.steps)
    assert {16, 18} <= set(searched.steps)
    assert searched.blind == 16  # of a grid of 8 whose second checkpoint is lost


def test_an_output_on_an_object_store_is_read_alike(
    config: SweepConfig, over: Over, sweep_here: SweepHere, bucket: str
) -> None:
    far = config.model_copy(update={"output": where(f"{bucket}/out")})
    play(far, sweep_here, 4)
    near = config.model_copy(update={"output": over[0].output})
    assert isinstance(near.output, Path)
    asked = begin(far).works()
    assert asked
    assert {p.key for work in asked for p in work.partitions} <= {
        path.stem for path in near.output.rglob("*.parquet")
    }
