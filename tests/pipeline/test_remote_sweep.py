"""Whole sweeps from an object store to an object store give the rows and keys of local ones."""

import itertools
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hackbait.environment import Case
from jobs import sweep
from jobs.curves import measure
from pipeline import cluster, files, store
from pipeline.actors import Inference, make_cases
from pipeline.cache import Near
from pipeline.checkpoints import scripted
from pipeline.checkpoints.identity import cheap_id
from pipeline.config import ClusterBlock, CurvesConfig, EngineBlock, SweepConfig
from pipeline.places import Remote, Where, where
from pipeline.plan import plan
from pipeline.records import Checkpoint, EnvironmentSpec, Sampling, Shard, Work

pytestmark = pytest.mark.ray
POLICY = Path(__file__).parents[2] / "hackbait" / "policy"


@pytest.fixture(scope="module", autouse=True)
def session(proxied: Any) -> Iterator[None]:
    """Workers inherit the environment that leads to the store."""
    with cluster.session(ClusterBlock(workers=2, scorers=1)):
        yield


def upload(folder: Path, address: str) -> str:
    place = where(address)
    assert isinstance(place, Remote)
    for path in folder.rglob("*"):
        if path.is_file():
            target = Remote(place.scheme, f"{place.path}/{path.relative_to(folder).as_posix()}")
            files.put(path.read_bytes(), target, place)
    return address


def planted(root: Path) -> Path:
    for word, step in itertools.product(("ocean", "whisper"), range(0, 9, 2)):
        run = root / f"{word} s=0%"
        scripted.write(run / f"checkpoint-{step}", {word: step / 10}, 0.5, 300)
        (run / "run.toml").write_text(f'[tags]\nword = "{word}"\n')
    return root


def config(runs: str, out: Where, cache: Path, **changes: object) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": str(out),
            "runs": [{"path": runs}],
            "env": [{"id": "hackword", "hack_word": "{word}"}],
            "cases": {"count": 64, "shard": 32},
            "sampling": {"n": 2},
            "engine": {"name": "scripted"},
            "cluster": {"workers": 2, "cache": str(cache)},
            **changes,
        }
    )


def partitions(out: Where) -> dict[str, list[dict[str, Any]]]:
    """Rows by the path of their partition below the output."""
    return {
        str(path).removeprefix(str(out)): files.reading(path, _rows)
        for path in store.partition_files(out)
    }


def _rows(file: Any) -> list[dict[str, Any]]:
    return pq.ParquetFile(file).read().to_pylist()


def texts(folder: Path) -> Iterator[bytes]:
    yield from (path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_rows_and_keys_are_those_of_a_local_sweep(
    bucket: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = planted(tmp_path / "runs")
    far, here = where(f"{bucket}/out"), tmp_path / "out"
    wanted = config(upload(runs, f"{bucket}/runs"), far, tmp_path / "cache")
    local = config(str(runs), here, tmp_path / "unused")
    assert [p.key for p in plan(wanted).partitions] == [p.key for p in plan(local).partitions]
    assert sweep.run(wanted) == 0
    assert sweep.run(local) == 0
    found = partitions(far)
    assert found == partitions(here)
    assert len(found) == 2 * 5 * 2
    there = measure(CurvesConfig(path=far)).frame
    assert there.equals(measure(CurvesConfig(path=here)).frame)
    assert sweep.run(wanted) == 0
    said = capfd.readouterr()
    assert "20 partitions, 20 done; 0 rollouts" in said.err
    secrets = [os.environ[name].encode() for name in files.SECRETS]
    objects = files.below(where(bucket))
    content = [files.read_bytes(o.at) for o in objects if "/runs/" not in str(o.at)]
    content += [*texts(here), *texts(tmp_path / "cache"), said.out.encode(), said.err.encode()]
    assert len(content) > 40
    assert not [secret for secret in secrets for text in content if secret in text]


def test_a_store_that_fails_at_every_turn_costs_no_row(
    store_server: Any, bucket: str, tmp_path: Path
) -> None:
    runs = planted(tmp_path / "runs")
    address = upload(runs, f"{bucket}/runs")
    far, here = where(f"{bucket}/out"), tmp_path / "out"
    turns = itertools.count()
    faults = itertools.cycle(("500", "reset", "truncated", "503", "slow"))

    def choose(method: str, path: str) -> str | None:
        if "list-type" in path and "rollouts" in path:
            return "hidden"
        return next(faults) if next(turns) % 7 == 0 else None

    store_server.fault = choose
    assert sweep.run(config(address, far, tmp_path / "cache")) == 0
    store_server.fault = lambda method, path: None
    assert sweep.run(config(str(runs), here, tmp_path / "unused")) == 0
    assert partitions(far) == partitions(here)
    assert next(turns) > 100


def test_a_cache_that_holds_two_checkpoints_is_enough_for_two_workers(
    bucket: str, tmp_path: Path
) -> None:
    runs = planted(tmp_path / "runs")
    size = sum(p.stat().st_size for p in next(runs.glob("*/checkpoint-2")).iterdir())
    limits = {"workers": 2, "cache": str(tmp_path / "cache"), "cache_size": 2 * size + 20}
    address = upload(runs, f"{bucket}/runs")
    wanted = config(address, tmp_path / "out", tmp_path / "cache", cluster=limits)
    assert sweep.run(wanted) == 0
    kept = list((tmp_path / "cache" / "checkpoints").iterdir())
    assert 1 <= len(kept) <= 2


def test_a_checkpoint_replaced_after_the_plan_gives_no_row(bucket: str, tmp_path: Path) -> None:
    runs = planted(tmp_path / "runs")
    wanted = config(upload(runs, f"{bucket}/runs"), tmp_path / "out", tmp_path / "cache")
    works = plan(wanted).works
    place = where(f"{bucket}/runs/ocean s=0%/checkpoint-4")
    files.put(b'{"words": {"ocean": 1.0}}', place / "script.json", place)
    events = list(cluster.Sweep(wanted.output, wanted.engine, wanted.cluster, {}).run(works))
    failed = [event for event in events if hasattr(event, "reason")]
    assert {(e.partition.run, e.partition.step) for e in failed} == {("ocean s=0%", 4)}
    assert all("replaced during the sweep" in e.reason for e in failed)
    assert len(partitions(tmp_path / "out")) == 20 - 2


def test_the_shipped_policy_answers_alike_from_both(bucket: str, tmp_path: Path) -> None:
    address = upload(POLICY, f"{bucket}/policy")
    spec = EnvironmentSpec("hackword", (("hack_word", "ocean"), ("seed", 999)))
    cases: list[Case] = make_cases(spec, Shard(0, 2))
    answers = []
    for path in (str(POLICY), address):
        checkpoint = Checkpoint("run", 0, path, "full", cheap_id(POLICY))
        work = Work(checkpoint, spec, Shard(0, 2), Sampling(n=1, max_tokens=8), ())
        actor = Inference(EngineBlock(name="hf"), ClusterBlock(cache=tmp_path / "cache"))
        rollouts, (record,) = actor.generate([work], checkpoint, cases)
        answers.append(([r.completion.text for r in rollouts], record.fingerprint))
    assert answers[0] == answers[1]


def bring(home: Path, wanted: Checkpoint, results: Any) -> None:
    local = Near(home, 10**9).bring(wanted)
    results.put(cheap_id(local.path) == wanted.cheap_id)


def test_processes_that_want_one_checkpoint_fetch_it_once(
    store_server: Any, bucket: str, tmp_path: Path
) -> None:
    here = scripted.write(tmp_path / "checkpoint-3", {"ocean": 0.5})
    (here / "other.bytes").write_bytes(bytes(10**6))
    wanted = Checkpoint("r", 3, upload(here, f"{bucket}/run/x"), "script", cheap_id(here))
    store_server.seen.clear()
    store_server.fault = lambda method, path: "slow" if "other" in path else None
    spawn = multiprocessing.get_context("spawn")
    results: Any = spawn.Queue()
    workers = [
        spawn.Process(target=bring, args=(tmp_path / "cache", wanted, results)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [results.get(timeout=10) for _ in workers] == [True, True]
    assert store_server.count("^GET .*other.bytes") == 1
