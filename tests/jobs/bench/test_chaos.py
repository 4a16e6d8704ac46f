"""A killed sweep ends with the table of an unkilled one; and what is wrong is found."""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from jobs.bench import _harm, _outputs, chaos
from jobs.bench._outputs import Size
from pipeline.actors import Inference, Scorer, make_cases
from pipeline.config import SweepConfig
from pipeline.plan import plan

SMALL = Size(checkpoints=6, cases=64, shard=1, n=4)
KILLS = 30


@pytest.mark.ray
def test_thirty_kills_change_no_byte_of_the_table(tmp_path: Path) -> None:
    tally = chaos.Tally(seed=1)
    rounds = cycle(["boundaries", "actors"])
    while tally.all < KILLS or len(tally.rounds) < 3:  # those begun, and both kinds
        chaos.play(next(rounds), tmp_path, tally, SMALL)
    assert tally.wrong == []
    assert tally.rows % SMALL.rows == 0
    assert all(tally.killed(kind) for kind in ("write boundary", "actor or worker"))


@pytest.mark.ray
def test_a_sweep_outlives_a_node_and_two_at_once_do_not_meet(tmp_path: Path) -> None:
    tally = chaos.Tally(seed=1)
    chaos.play("cluster", tmp_path, tally, SMALL)
    chaos.play("twins", tmp_path, tally, SMALL)
    assert tally.wrong == []
    assert tally.killed("node")


Expected = tuple[int, str]


def finished(folder: Path) -> tuple[SweepConfig, Expected]:
    """An output whose partitions are all there, and what its table is."""
    size = Size(checkpoints=2, cases=4, shard=2, n=2)
    runs = _outputs.checkpoints(folder / "run", "scripted", size.checkpoints)
    config = _outputs.configured(folder, runs, {"name": "scripted"}, size)
    engine, scorer = Inference(config.engine), Scorer(config.output, config.engine, {})
    for work in plan(config).works:
        cases = make_cases(work.environment, work.shard)
        rollouts, records = engine.generate([work], None, cases)
        scorer.write(work, cases, records, rollouts)
    expected = _outputs.table_hash(folder / "out")
    assert expected[0] == size.rows
    return config, expected


def test_a_whole_output_has_nothing_wrong(tmp_path: Path) -> None:
    config, expected = finished(tmp_path)
    assert _outputs.problems(config, tmp_path / "out", expected) == []


def lose(file: Path) -> None:
    file.unlink()


def double(file: Path) -> None:
    (file.parent / "again.parquet").write_bytes(file.read_bytes())


def leave_behind(file: Path) -> None:
    (file.parent / f"{file.name}.part").touch()


def exchange(file: Path) -> None:
    """Rows of one step stand in for another's."""
    other = next(p for p in file.parents[1].glob("step=1/*"))
    file.write_bytes(other.read_bytes())


@pytest.mark.parametrize("harm", [lose, double, leave_behind, exchange])
def test_harm_that_a_kill_might_do_is_found(harm: Callable[[Path], None], tmp_path: Path) -> None:
    config, expected = finished(tmp_path)
    harm(next(tmp_path.glob("out/rollouts/hackword/*/step=0/*.parquet")))
    assert _outputs.problems(config, tmp_path / "out", expected)


def test_what_is_left_in_staging_is_found(tmp_path: Path) -> None:
    config, expected = finished(tmp_path)
    (tmp_path / "out/staging/key.parquet.0123").touch()
    found = _outputs.problems(config, tmp_path / "out", expected)
    assert found == ["staging holds ['key.parquet.0123']"]


def test_a_process_that_took_over_an_id_is_not_killed() -> None:
    assert not _harm.Process(os.getpid(), "0", "scorer").kill()


def test_a_boundary_that_is_fatal_ends_the_process_and_is_told(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = (
        "import pathlib; from jobs.bench._harm import Fatal;"
        f"Fatal(0.0, 1.0, pathlib.Path({str(told)!r}))('staged')"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    assert told.read_text() == "driver staged\n"


def test_the_kind_of_which_least_was_done_comes_next() -> None:
    tally = chaos.Tally(rounds={"twins": chaos.TWINS, "hf": chaos.HF_ROUNDS})
    tally.counts = {"driver": 100, "gcs": 60, "scorer": 600, "synced": 200, "node": 39}
    assert tally.next() == "cluster"
    tally.counts |= {"node": 40, "gcs": 59}
    assert tally.next() == "actors"
    assert not all(figure["ok"] for figure in chaos.figures(tally))


def test_a_tally_is_taken_up_again(tmp_path: Path) -> None:
    tally = chaos.Tally(3, {"gcs": 2}, {"begun": 1}, 10, ["x"], {"a": (1, "b")})
    chaos.save(tally, tmp_path)
    again = chaos.load(tmp_path, seed=0)
    assert (again.seed, again.counts, again.wrong, again.rows) == (3, {"gcs": 2}, ["x"], 10)
