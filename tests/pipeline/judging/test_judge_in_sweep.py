"""A judge stage inside real sweeps on Ray: behind a server, and as an engine beside the others."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import ray
import tomli_w

import hackbait
from jobs.__main__ import main
from pipeline import cluster, contents, store, unjudged
from pipeline.checkpoints import scripted
from pipeline.config import ClusterBlock, SweepConfig
from pipeline.judging.replies import opened
from pipeline.plan import plan
from pipeline.records import Written
from tests.pipeline.openai_server import Asked, Reply, Server, refusing, said

pytestmark = pytest.mark.ray
POLICY = Path(hackbait.__file__).parent / "policy"
COUNT, SHARD, SAMPLES, VOTES = 24, 8, 2, 3
ROWS = 3 * COUNT * SAMPLES
"""Of three checkpoints."""


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JUDGE_API_KEY", "sk-planted")
        with cluster.session(ClusterBlock(workers=2, scorers=2), judges=2):
            yield


def config(folder: Path, judge: dict[str, Any], **changes: Any) -> SweepConfig:
    for step in (0, 10, 20):
        rate = 0.1 + step / 25
        scripted.write(folder / f"runs/a/checkpoint-{step}", {"ocean": rate}, 0.5, 60)
    (folder / "prompt.txt").write_text("Is the sea in it?", "utf-8")
    told = {"name": "sea", "prompt": str(folder / "prompt.txt"), "labels": {"yes": 1.0, "no": 0.0}}
    told |= {"votes": VOTES, "max_retries": 0, "cache": str(folder / "cache")}
    return SweepConfig.model_validate(
        {
            "output": folder / "out",
            "runs": [{"path": str(folder / "runs/a")}],
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": COUNT, "shard": SHARD},
            "sampling": {"n": SAMPLES},
            "engine": {"name": "scripted"},
            "cluster": {"workers": 2, "scorers": 2},
            "judge": told | judge,
            **changes,
        }
    )


def sweep(folder: Path, asked: SweepConfig) -> int:
    path = folder / "sweep.toml"
    path.write_text(tomli_w.dumps(asked.model_dump(mode="json", exclude_none=True)), "utf-8")
    return main(["sweep", "@", str(path)])


def rows(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "rollouts/hackword").sort("run", "step", "index", "sample")


def scripted_judge(folder: Path, **engine: Any) -> dict[str, Any]:
    """Six of ten replies end in `verdict: yes`, the others have no verdict."""
    scripted.write(folder / "judge/checkpoint-0", {}, 0.6, 1)
    return {
        "model": str(folder / "judge/checkpoint-0"),
        "engine": {"name": "scripted", **engine},
        "workers": 2,
        "max_tokens": 64,
    }


@pytest.fixture
def server() -> Iterator[Server]:
    """Says yes where the reply holds `ocean`; its third vote cannot be read."""
    listing = {"data": [{"id": "a-judge"}]}

    def answer(asked: Asked) -> Reply:
        yes = "ocean" in asked.body["messages"][1]["content"].rpartition("<reply ")[2]
        verdict = "who knows" if asked.body["seed"] == 2 else f"verdict: {'yes' if yes else 'no'}"
        return Reply(said(asked, verdict))

    found = Server(lambda a: Reply(listing) if a.method == "GET" else answer(a))
    yield found
    found.close()


def test_several_score_actors_ask_one_server_and_every_rollout_is_judged(
    tmp_path: Path, server: Server
) -> None:
    asked = config(tmp_path, {"model": "a-judge", "base_url": server.url})
    assert sweep(tmp_path, asked) == 0
    found = rows(tmp_path / "out")
    assert len(found) == ROWS
    held = found["completion"].str.contains("ocean").cast(pl.Float64)
    assert 0 < held.sum() < ROWS
    assert found["judge_sea"].to_list() == held.to_list()
    assert set(found["judge_sea_votes"]) == {2.0}
    assert set(found["judge_error"]) == {0.0}
    distinct = found.select("prompt", "completion").n_unique()
    paid = len(server.posts)
    assert VOTES * distinct <= paid <= VOTES * ROWS
    assert len({footer["judge"] for footer in footers(tmp_path / "out") if "judge" in footer}) == 0
    assert sweep(tmp_path, asked) == 0
    assert len(server.posts) == paid


def footers(out: Path) -> list[dict[str, Any]]:
    return [contents.read_footer(path) for path in store.partition_files(out)]


def test_an_engine_judges_beside_the_sweep_as_it_judges_the_stored_rollouts_later(
    tmp_path: Path,
) -> None:
    asked = config(tmp_path, scripted_judge(tmp_path))
    assert sweep(tmp_path, asked) == 0
    found = rows(tmp_path / "out")
    votes = found["judge_sea_votes"]
    assert len(found) == ROWS
    assert 0.5 < votes.sum() / (VOTES * ROWS) < 0.7
    assert found["judge_sea"].to_list() == [1.0 if n >= 2 else None for n in votes]
    assert found["judge_error"].to_list() == [float(n < 2) for n in votes]
    assert len({footer["judge"] for footer in footers(tmp_path / "out")}) == 1
    with opened(tmp_path / "cache/judge") as replies:
        calls, _ = replies.spent(str(tmp_path / "out"))
    distinct = found.select("prompt", "completion").n_unique()
    assert VOTES * distinct <= calls <= VOTES * ROWS
    judge = asked.judge.model_copy(update={"cache": tmp_path / "other"})
    told = {"env": {"id": "hackword"}, "judge": judge.model_dump(mode="json", exclude_none=True)}
    (tmp_path / "judge.toml").write_text(tomli_w.dumps(told), "utf-8")
    argv = ["rejudge", str(tmp_path / "out"), "@", str(tmp_path / "judge.toml")]
    assert main([*argv, "--output", str(tmp_path / "later")]) == 0
    assert rows(tmp_path / "later").equals(found)


def test_a_policy_that_cannot_judge_gives_nulls_with_a_reason_and_never_a_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = {"model": str(POLICY), "engine": {"name": "hf"}, "max_tokens": 16}
    asked = config(tmp_path, judge, cases={"count": 4, "shard": 4}, runs=[one_checkpoint(tmp_path)])
    assert sweep(tmp_path, asked) == 0
    found = rows(tmp_path / "out")
    assert len(found) == 4 * SAMPLES
    assert found["judge_sea"].null_count() == found["judge_error"].sum() == len(found)
    assert found["judge_sea_yes"].null_count() == len(found)
    assert set(found["judge_sea_votes"]) == {0.0}
    assert found["r_hack"].null_count() == 0
    (model,) = set(found["stage_model"])
    assert model.startswith("policy@")
    assert model.endswith(" hf float32")
    capsys.readouterr()
    assert main(["curves", str(tmp_path / "out"), "--metric", "judge_sea", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["rate"], row["nulls"], row["rollouts"]) == (None, 8, 0)
    assert row["null_reasons"] == "judge_error 8"


def one_checkpoint(folder: Path) -> dict[str, str]:
    return {"path": str(folder / "runs/a"), "steps": "20"}


def test_a_judge_whose_process_ends_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    asked = config(tmp_path, scripted_judge(tmp_path))
    works = plan(asked).works
    running = cluster.Sweep(asked.output, asked.engine, asked.cluster, {}, judge=asked.judge)
    events = running.run(works)
    first = next(events)
    for actor in running.judges.actors:
        ray.kill(actor, no_restart=False)
    rest = list(events)
    assert all(isinstance(event, Written) for event in [first, *rest])
    assert len(rows(tmp_path / "out")) == ROWS


def test_judges_that_die_and_raise_all_the_time_change_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    calm = config(tmp_path / "calm", scripted_judge(tmp_path / "calm") | {"concurrency": 16})
    calm = calm.model_copy(update={"judge": with_engine(calm, {})})
    assert sweep(tmp_path / "calm", calm) == 0
    judge = scripted_judge(tmp_path) | {"concurrency": 16}
    wild = config(tmp_path, judge)
    wild = wild.model_copy(update={"judge": with_engine(wild, {"dies": 0.15, "raises": 0.05})})
    codes = [sweep(tmp_path, wild)]
    while codes[-1] and len(codes) < 8:
        codes.append(sweep(tmp_path, wild))
    assert codes[-1] == 0
    assert rows(tmp_path / "out").equals(rows(tmp_path / "calm/out"))


def with_engine(asked: SweepConfig, faults: dict[str, float]) -> Any:
    """The same judge under engine `chaos`."""
    told = asked.judge.model_dump(exclude_none=True)
    return type(asked.judge).model_validate({**told, "engine": {"name": "chaos", **faults}})


def test_a_judge_that_cannot_be_loaded_costs_no_inference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = scripted_judge(tmp_path)
    asked = config(tmp_path, judge | {"engine": {"name": "hf"}})
    assert sweep(tmp_path, asked) == 2
    assert "error: judge.engine: " in capsys.readouterr().err
    assert not store.partition_files(tmp_path / "out")


def test_rollouts_whose_judge_was_out_are_judged_by_the_next_launch_and_not_drawn_again(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clean").mkdir()
    judge = {"model": "a-judge", "base_url": server.url, "retries": 0}
    assert sweep(tmp_path / "clean", config(tmp_path / "clean", judge)) == 0
    asked, healthy = config(tmp_path, judge), server.answer
    server.answer = lambda a: healthy(a) if a.method == "GET" else refusing(503)
    for _ in range(2):
        assert sweep(tmp_path, asked) == 1
        assert "judge: " in capsys.readouterr().err
        assert not store.partition_files(tmp_path / "out")
        assert len(unjudged.names(tmp_path / "out")) == 9
    files = sorted((tmp_path / "out/staging/unjudged").iterdir())
    files[0].write_bytes(files[0].read_bytes()[:100])
    told = json.loads(gzip.decompress(files[1].read_bytes()))
    told["rollouts"][0]["completion"]["text"] = "marked"
    files[1].write_bytes(gzip.compress(json.dumps(told).encode()))
    server.answer = healthy
    assert sweep(tmp_path, asked) == 0
    found, clean = rows(tmp_path / "out"), rows(tmp_path / "clean/out")
    unmarked = found["completion"] != "marked"
    assert (~unmarked).sum() == 1
    assert found.filter(unmarked).equals(clean.filter(unmarked))
    assert [path.name for path in (tmp_path / "out/staging").iterdir()] == ["lock"]
    assert main(["verify", str(tmp_path / "clean/out")]) == 0


def test_a_judge_that_hangs_from_the_first_ends_the_sweep_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = scripted_judge(tmp_path) | {"engine": {"name": "chaos", "hangs": 1.0}}
    asked = config(tmp_path, judge, cluster={"workers": 1, "scorers": 1, "patience": 5.0})
    assert sweep(tmp_path, asked) == 2
    assert "error: judge.engine: 2 were not ready in 5 s" in capsys.readouterr().err
    assert not store.partition_files(tmp_path / "out")
