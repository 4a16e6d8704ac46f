"""What a sweep says of itself lies in its output, whole, and is never in its way."""

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import standing, status, store
from pipeline.config import SweepConfig
from pipeline.places import Where, where
from pipeline.plan import plan
from pipeline.records import Failure, Written

SweepHere = Callable[..., list[Written]]


def run(config: SweepConfig, sweep_here: SweepHere, upto: int, ended: str = "") -> None:
    """A launch that writes the first works, and fails the next."""
    wanted = plan(config)
    with store.writing(config.output, ""), standing.told(config.output, wanted) as told:
        for event in sweep_here(config, wanted.works[:upto]):
            told.hear(event)
        for partition in wanted.works[upto].partitions:
            told.hear(Failure(partition, "engine lost: \x1b[31mno\n" + "x" * 9999))
        told.ended = ended or told.ended


@pytest.mark.parametrize("far", [False, True])
def test_a_launch_leaves_its_plan_and_how_it_ended(
    far: bool, small: SweepConfig, sweep_here: SweepHere, request: pytest.FixtureRequest
) -> None:
    out: Where = small.output
    if far:
        out = where(request.getfixturevalue("bucket") + "/out")
    config = small.model_copy(update={"output": out})
    run(config, sweep_here, 3)
    found, said = standing.read(out)
    assert found == standing.planned(plan(config))
    assert said is not None
    assert (said.partitions, said.rows, said.ended) == (3, 20, status.WITH_FAILURES)
    assert said.failed is not None
    assert {len(reason) for reason in said.failed.values()} == {standing.REASON_CHARACTERS}
    assert said.rows_per_second > 0
    assert not standing.is_alive(out)


def test_it_is_alive_while_the_output_is_held_and_killed_when_no_end_was_said(
    small: SweepConfig,
) -> None:
    assert not standing.is_alive(small.output)
    with store.writing(small.output, ""):
        told = standing.Told(small.output)
        told.write()
        assert standing.is_alive(small.output)
        assert status.state(standing.read(small.output)[1], True) == status.RUNNING
    assert not standing.is_alive(small.output)
    assert status.state(standing.read(small.output)[1], False) == status.KILLED


def test_looking_holds_up_no_sweep_that_begins(small: SweepConfig) -> None:
    with store.writing(small.output, ""):
        pass
    for _ in range(20):
        assert not standing.is_alive(small.output)
        with store.writing(small.output, ""):
            pass


def test_snapshots_are_written_while_it_goes_on_and_only_when_there_is_news(
    small: SweepConfig,
) -> None:
    wanted = plan(small)
    path = small.output / "status/sweep.json"
    with standing.told(small.output, wanted, every=0.02) as told:
        first = path.read_bytes()
        told.under_way = lambda: wanted.works[:1]
        while path.read_bytes() == first:
            time.sleep(0.01)
        _, said = standing.read(small.output)
        assert said is not None
        assert said.running == tuple(p.key for p in wanted.works[0].partitions)
        before = path.stat().st_mtime_ns
        time.sleep(0.2)
        assert path.stat().st_mtime_ns == before


def test_a_snapshot_that_cannot_be_written_is_logged_once_and_ends_no_sweep(
    small: SweepConfig, sweep_here: SweepHere, caplog: pytest.LogCaptureFixture
) -> None:
    small.output.mkdir()
    (small.output / "status").write_text("a file where a folder should be")
    run(small, sweep_here, 1)
    assert "the sweep goes on" in caplog.text
    assert len(caplog.records) <= 2
    assert len(store.partition_files(small.output)) == 1


def test_an_error_that_ends_a_sweep_is_its_end(small: SweepConfig) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space"), standing.told(small.output, plan(small)):
        raise full
    _, said = standing.read(small.output)
    assert said is not None
    assert said.ended == "error: OSError: [Errno 28] No space left on device"


def test_a_plan_of_other_checkpoints_keeps_what_is_done(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    first = small.model_copy(update={"runs": small.runs[:1]})
    second = small.model_copy(update={"runs": small.runs[1:]})
    run(first, sweep_here, 2)
    run(second, sweep_here, 1)
    found, _ = standing.read(small.output)
    assert found is not None
    assert [one.run for one in found.partitions] == ["a"] * 2 + ["b\n../é"] * 4


@pytest.mark.parametrize("name", ["plan.json", "sweep.json"])
def test_a_damaged_file_is_one_line(small: SweepConfig, name: str) -> None:
    folder: Path = small.output / "status"
    folder.mkdir(parents=True)
    (folder / name).write_text('{"launch": [')
    with pytest.raises(store.StoreError, match="the next sweep writes it anew") as refused:
        standing.read(small.output)
    assert "\n" not in str(refused.value)


def test_a_damaged_plan_does_not_keep_a_sweep_from_writing_its_own(small: SweepConfig) -> None:
    folder: Any = small.output / "status"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{")
    with standing.told(small.output, plan(small)):
        pass
    assert standing.read(small.output)[0] == standing.planned(plan(small))
