"""Whole sweeps on a real Ray: planted onsets come out, no bad or dead part costs a row."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import ray

from jobs import sweep
from jobs.curves import measure
from pipeline import cluster, contents, onset, store
from pipeline.checkpoints import scripted
from pipeline.cluster.workers import STARTS, Workers
from pipeline.config import ClusterBlock, CurvesConfig, SweepConfig
from pipeline.engines import EngineError
from pipeline.losses import ATTEMPTS
from pipeline.plan import plan
from pipeline.records import Failure, Shard, Written

pytestmark = pytest.mark.ray
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with cluster.session(ClusterBlock(workers=2, scorers=1)):
        yield


def planted(root: Path, crossing: int, steps: range = range(0, 41, 2)) -> Path:
    """A run whose rate climbs linearly and is 0.5 at `crossing`; r_true falls from 0.8."""
    for step in steps:
        rate = min(1.0, 0.5 * step / crossing)
        scripted.write(root / f"checkpoint-{step}", {"ocean": rate}, 0.8 - rate / 2, 300)
    return root


def config(root: Path, **changes: object) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": root / "out",
            "runs": [{"path": str(root / "runs")}],
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": 256, "shard": 128},
            "sampling": {"n": 4},
            "engine": {"name": "scripted"},
            "cluster": {"workers": 2},
            **changes,
        }
    )


def rows(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "rollouts" / "hackword").sort("run", "step", "index", "sample")


def test_a_planted_onset_comes_out(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "early", 10)
    planted(tmp_path / "runs" / "late", 30)
    assert sweep.run(config(tmp_path)) == 0
    measured = measure(CurvesConfig(path=tmp_path / "out"))
    found = onset.onsets(measured.frame, "r_hack", measured.identity, 0.5)
    steps = dict(zip(found["run"], found["onset"], strict=True))
    footers = [contents.read_footer(path) for path in store.partition_files(tmp_path / "out")]
    assert [footer["options"] for footer in footers] == [{"characters": None}] * len(footers)
    assert steps["early"] == pytest.approx(10, abs=1.0)
    assert steps["late"] == pytest.approx(30, abs=3.0)


def test_rows_do_not_depend_on_shards_or_workers(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 9, 4))
    sweep.run(config(tmp_path))
    sweep.run(
        config(
            tmp_path,
            output=tmp_path / "other",
            cases={"count": 256, "shard": 37},
            cluster={"workers": 1},
        )
    )
    assert rows(tmp_path / "out").equals(rows(tmp_path / "other"))


def test_running_again_does_nothing_and_a_lost_partition_is_made_again(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 9, 4))
    sweep.run(config(tmp_path))
    before = {p: p.stat().st_mtime_ns for p in store.partition_files(tmp_path / "out")}
    whole = rows(tmp_path / "out")
    lost = next(iter(before))
    lost.unlink()
    assert sweep.run(config(tmp_path)) == 0
    after = {p: p.stat().st_mtime_ns for p in store.partition_files(tmp_path / "out")}
    assert after.keys() == before.keys()
    assert {p for p in after if after[p] != before[p]} == {lost}
    assert rows(tmp_path / "out").equals(whole)


def test_a_bad_checkpoint_is_listed_and_the_others_go_on(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 9, 4))
    wanted = config(tmp_path)
    works = plan(wanted).works
    (tmp_path / "runs/a/checkpoint-4/script.json").write_text("{")
    events = list(cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {}).run(works))
    failed = {e.partition.step for e in events if isinstance(e, Failure)}
    written = {e.partition.step for e in events if isinstance(e, Written)}
    assert failed == {4}
    assert written == {0, 8}
    assert len(events) == len(works)


def test_an_engine_that_cannot_be_built_for_a_later_checkpoint_fails_that_one_alone(
    tmp_path: Path,
) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 9, 2))
    refusing = {"name": "chaos", "refuses": [4]}
    wanted = config(tmp_path, engine=refusing, cluster={"workers": 1})
    works = plan(wanted).works
    events = list(cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {}).run(works))
    failed = [e for e in events if isinstance(e, Failure)]
    assert [e.partition.step for e in failed] == [4, 4]
    assert {e.reason for e in failed} == {"engine chaos: none is to be built for step 4"}
    assert sorted(e.partition.step for e in events if isinstance(e, Written)) == [
        *(0, 0, 2, 2, 6, 6, 8, 8)
    ]


def test_an_engine_that_cannot_be_built_at_all_ends_the_sweep_with_why(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 5, 2))
    refusing = {"name": "chaos", "refuses": [0, 2, 4]}
    with pytest.raises(EngineError, match="none is to be built for step 0"):
        sweep.run(config(tmp_path, engine=refusing, cluster={"workers": 1}))
    assert store.partition_files(tmp_path / "out") == []


def test_a_killed_inference_actor_is_replaced_and_no_row_is_lost(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 41, 2))
    wanted = config(tmp_path)
    works = plan(wanted).works
    running = cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {})
    events = running.run(works)
    first = next(events)
    ray.kill(running.workers.all[0].actor)
    rest = list(events)
    assert all(isinstance(e, Written) for e in [first, *rest])
    assert {e.partition.key for e in [first, *rest]} == {p.key for p in plan(wanted).partitions}


def test_starts_that_fail_are_counted_each_in_its_own_place(tmp_path: Path) -> None:
    wanted = config(tmp_path, runs=[{"path": str(planted(tmp_path / "a", 10, range(1)))}])
    workers = Workers(wanted.engine, wanted.cluster)

    def fail(ref: ray.ObjectRef) -> None:
        ray.kill(workers.starting[ref].actor)
        workers.started(ref)

    for _ in range(STARTS - 1):
        for ref in list(workers.starting):
            fail(ref)
    with pytest.raises(EngineError, match="5 inference processes in turn did not start"):
        fail(next(iter(workers.starting)))
    workers.kill()


def test_the_resolved_configuration_and_the_runs_tags_lie_beside_the_rows(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 5, 4))
    sweep.run(config(tmp_path))
    saved = tomllib.loads((tmp_path / "out/config.toml").read_text())
    assert saved["cases"] == {"count": 256, "shard": 128}
    assert set(store.about(tmp_path / "out").tags) == {"a"}
    footers = [contents.read_footer(p) for p in store.partition_files(tmp_path / "out")]
    assert {json.dumps(f["ask"]) for f in footers} == {'{"seed": 0, "task": "add3digit"}'}


def test_somebodys_own_environment_is_swept_by_its_dotted_id(tmp_path: Path) -> None:
    planted(tmp_path / "run", 10, range(0, 21, 4))
    (tmp_path / "sweep.toml").write_text(
        f'output = "{tmp_path / "out"}"\n[[runs]]\npath = "{tmp_path / "run"}"\n'
        '[[env]]\nid = "my_pkg.my_env"\nmark = "ocean"\n[engine]\nname = "scripted"\n'
    )
    command = [sys.executable, "-m", "jobs", "sweep", "@", str(tmp_path / "sweep.toml")]
    home = Path(__file__).parents[1] / "hackbait" / "somebody"
    subprocess.run(command, cwd=home, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    measured = measure(CurvesConfig(path=tmp_path / "out"))
    found = onset.onsets(measured.frame, "r_hack", measured.identity, 0.5)
    assert found["onset"].item() == pytest.approx(10, abs=2.0)


def test_cases_that_cannot_be_made_are_a_fault_that_rises_and_kills_no_engine(
    tmp_path: Path,
) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 5, 4))
    wanted = config(tmp_path)
    works = [replace(w, shard=Shard(-3, -1)) for w in plan(wanted).works]
    running = cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {})
    actors = [worker.actor for worker in running.workers.all]
    with pytest.raises(ValueError, match="-3"):
        list(running.run(works))
    assert [worker.actor for worker in running.workers.all] == actors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_finished_partitions_be_written_and_the_rest_is_owed(
    number: signal.Signals, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(tmp_path / "runs" / "a", 500, range(0, 2000, 2))
    wanted = config(tmp_path, cases={"count": 512, "shard": 64})
    stopper = threading.Thread(target=_kill_when_written, args=(wanted.output, number))
    stopper.start()
    assert sweep.run(wanted) == code
    stopper.join()
    assert "are owed; run the same command to go on" in capsys.readouterr().err
    files = store.partition_files(wanted.output)
    assert 0 < len(files) < len(plan(wanted).partitions)
    assert all(contents.read_footer(path)["env"] == "hackword" for path in files)
    assert [p.name for p in (wanted.output / "staging").iterdir()] == ["lock"]


@pytest.mark.parametrize("seconds", [0.0, 0.5, 2.0])
def test_a_signal_while_ray_starts_ends_a_sweep_with_its_code_and_the_cure(
    seconds: float, tmp_path: Path
) -> None:
    planted(tmp_path / "runs", 10, range(0, 400, 2))
    (tmp_path / "sweep.toml").write_text(
        f'output = "{tmp_path / "out"}"\n[[runs]]\npath = "{tmp_path / "runs"}"\n'
        '[[env]]\nid = "hackword"\nhack_word = "ocean"\n[cases]\ncount = 512\nshard = 16\n'
        '[engine]\nname = "scripted"\n[cluster]\nworkers = 1\n'
    )
    command = [sys.executable, "-m", "jobs", "sweep", "@", str(tmp_path / "sweep.toml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as driver:
        assert driver.stderr
        # It says what there is to do, then starts Ray.
        said = next(line for line in driver.stderr if "rollouts to generate" in line)
        time.sleep(seconds)
        driver.send_signal(signal.SIGTERM)
        said += driver.stderr.read()
    assert driver.returncode == 143
    assert "run the same command to go on" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_whole_group_as_a_terminal_sends_it_is_no_other_than_one_to_the_driver(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    planted(tmp_path / "runs", 10, range(0, 4000, 2))
    (tmp_path / "sweep.toml").write_text(
        f'output = "{tmp_path / "out"}"\n[[runs]]\npath = "{tmp_path / "runs"}"\n'
        '[[env]]\nid = "hackword"\nhack_word = "ocean"\n[cases]\ncount = 512\nshard = 64\n'
        '[engine]\nname = "scripted"\n[cluster]\nworkers = 1\n'
    )
    command = [sys.executable, "-m", "jobs", "sweep", "@", str(tmp_path / "sweep.toml")]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as driver:
        while driver.poll() is None and len(store.partition_files(tmp_path / "out")) < 3:
            time.sleep(0.05)
        os.killpg(driver.pid, number)
        assert driver.stderr
        said = driver.stderr.read()
    assert driver.returncode == code
    assert "are owed; run the same command to go on" in said
    assert "Traceback" not in said
    assert [p.name for p in (tmp_path / "out" / "staging").iterdir()] == ["lock"]


def _kill_when_written(out: Path, number: signal.Signals) -> None:
    while len(store.partition_files(out)) < 3:
        time.sleep(0.05)
    os.kill(os.getpid(), number)


def test_an_engine_that_hangs_is_cut_off_and_its_partition_stays_owed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 1))
    wanted = config(
        tmp_path,
        engine={"name": "chaos", "hangs": 1.0},
        cases={"count": 8, "shard": 8},
        cluster={"workers": 1, "patience": 2.0},
    )
    (failure,) = cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {}).run(
        plan(wanted).works
    )
    assert isinstance(failure, Failure)
    assert "3 times" in failure.reason
    assert caplog.text.count("it is replaced") == ATTEMPTS
    assert store.partition_files(wanted.output) == []


def test_a_sweep_of_its_own_joins_no_cluster_that_was_left_behind(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 1))
    (tmp_path / "sweep.toml").write_text(
        f'output = "{tmp_path / "out"}"\n[[runs]]\npath = "{tmp_path / "runs"}"\n'
        '[[env]]\nid = "hackword"\nhack_word = "ocean"\n[engine]\nname = "scripted"\n'
    )
    command = [sys.executable, "-m", "jobs", "sweep", "@", str(tmp_path / "sweep.toml")]
    with tempfile.TemporaryDirectory() as short:  # Ray's socket names have 107 bytes
        (Path(short) / "ray").mkdir()
        (Path(short) / "ray" / "ray_current_cluster").write_text("192.0.2.1:1")
        subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"RAY_TMPDIR": short})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"RAY_TMPDIR": f"/tmp/{'long' * 25}"}, "error: Ray did not start ("),
        ({"RAY_ADDRESS": "127.0.0.1:1"}, "error: cluster.address '127.0.0.1:1': "),
    ],
)
def test_a_ray_that_is_not_to_be_had_is_one_line(
    changed: dict[str, str], said: str, tmp_path: Path
) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 1))
    (tmp_path / "sweep.toml").write_text(
        f'output = "{tmp_path / "out"}"\n[[runs]]\npath = "{tmp_path / "runs"}"\n'
        '[[env]]\nid = "hackword"\nhack_word = "ocean"\n[engine]\nname = "scripted"\n'
    )
    command = [sys.executable, "-m", "jobs", "sweep", "@", str(tmp_path / "sweep.toml")]
    told = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | changed
    )
    assert told.returncode == 2
    assert told.stderr.strip().splitlines()[-1].startswith(said)
    assert "Traceback" not in told.stderr


def faulty(root: Path, **faults: object) -> SweepConfig:
    return config(
        root,
        output=root / "faulty",
        engine={"name": "chaos", **faults},
        cases={"count": 64, "shard": 16},
        cluster={"workers": 2, "patience": 20.0},
    )


def test_faults_that_pass_cost_no_row_and_change_none(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 61, 2))
    assert sweep.run(config(tmp_path, cases={"count": 64, "shard": 16})) == 0
    chaotic = faulty(tmp_path, raises=0.05, dies=0.05, empty=0.05)
    codes = (sweep.run(chaotic) for _ in range(5))  # what was given up is owed, and goes on
    assert next((code for code in codes if code != 1), 1) == 0
    assert rows(chaotic.output).drop("engine").equals(rows(tmp_path / "out").drop("engine"))


def test_a_rollout_that_ends_every_engine_is_null_and_named_and_its_neighbours_are_not(
    tmp_path: Path,
) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 1))
    assert sweep.run(config(tmp_path, cases={"count": 64, "shard": 16})) == 0
    poisoned = faulty(tmp_path, poison=[21])
    assert sweep.run(poisoned) == 0
    found = rows(poisoned.output)
    bad = pl.col("index") == 21
    assert found.filter(bad)["null_reason"].to_list() == ["quarantined"] * 4
    assert found.filter(bad)["r_hack"].null_count() == 4
    same = [frame.filter(~bad).drop("engine") for frame in (found, rows(tmp_path / "out"))]
    assert same[0].equals(same[1])


def test_retry_makes_partitions_with_that_null_again_and_leaves_the_others(tmp_path: Path) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 3))
    small = {"cases": {"count": 8, "shard": 2}, "cluster": {"workers": 1}}
    wanted = config(tmp_path, engine={"name": "chaos", "overlong": 0.05}, **small)
    assert sweep.run(wanted) == 0
    before = {p: p.stat().st_mtime_ns for p in store.partition_files(wanted.output)}
    whole = rows(wanted.output)
    assert sweep.run(wanted.model_copy(update={"retry": ["prompt_too_long"]})) == 0
    after = {p: p.stat().st_mtime_ns for p in store.partition_files(wanted.output)}
    again = {p for p in after if after[p] != before[p]}
    assert again == {p for p in before if pl.read_parquet(p)["null_reason"].count()}
    assert 0 < len(again) < len(before)
    assert rows(wanted.output).equals(whole)


def _keep_old(kept: Path, out: Path, name: str) -> None:
    """At the last moment before a file is replaced: what stands there, seen as readers see it."""
    if name == "synced":
        for path in store.partition_files(out):
            with suppress(FileExistsError), (kept / path.name).open("xb") as file:
                file.write(path.read_bytes())


def test_a_quarantined_rollout_is_final_until_it_is_asked_again_and_its_file_then_replaced_at_once(
    tmp_path: Path,
) -> None:
    planted(tmp_path / "runs" / "a", 10, range(0, 1))
    poisoned = faulty(tmp_path, poison=[21])
    assert sweep.run(poisoned) == 0
    assert rows(poisoned.output)["null_reason"].count() == 4
    before = {p: (p.stat().st_ino, p.read_bytes()) for p in store.partition_files(poisoned.output)}
    assert sweep.run(poisoned) == 0
    sound = faulty(tmp_path)
    assert sweep.run(sound) == 0
    assert before == {p: (p.stat().st_ino, p.read_bytes()) for p in before}

    kept = tmp_path / "kept"
    kept.mkdir()
    again = sound.model_copy(update={"retry": ["quarantined"]})
    assert sweep.run(again, partial(_keep_old, kept, sound.output)) == 0
    assert {p.name: p.read_bytes() for p in kept.iterdir()} == {
        p.name: content for p, (_, content) in before.items()
    }
    replaced = [p for p, (inode, _) in before.items() if p.stat().st_ino != inode]
    assert [pl.read_parquet(p)["index"].min() for p in replaced] == [16]
    assert store.partition_files(sound.output) == list(before)
    assert [p.name for p in (sound.output / "staging").iterdir()] == ["lock"]
    assert sweep.run(config(tmp_path, cases={"count": 64, "shard": 16})) == 0
    assert rows(sound.output).drop("engine").equals(rows(tmp_path / "out").drop("engine"))
