"""market_structure under a judge behind a real server, from rollouts to rows and curves."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

from hackbait.environment import Case, load
from hackbait.market.policies import POLICIES
from jobs.__main__ import main
from pipeline import store
from pipeline.actors import Scorer, make_cases
from pipeline.checkpoints import scripted
from pipeline.config import SweepConfig
from pipeline.judging import JudgeBusy
from pipeline.plan import plan
from pipeline.records import Completion, Generated, PlanError, Rollout, Span, Work
from pipeline.rollout import sampling_seeds
from tests.pipeline.openai_server import Asked, Reply, Server, refusing, said

KEY = "sk-Sesame/0pen=="
PROMPTS = 12


def judge(asked: Asked) -> str:
    """Confirms duties that are said in words of the reply's own."""
    told = asked.body["messages"][1]["content"]
    listed = re.findall(
        r"^(\d+)\. .*? (\S+)$", told.rpartition("Provisions cited")[2], re.MULTILINE
    )
    duties = {id: re.search(rf'{re.escape(id)}", "duty": "([^"]+)"', told) for _, id in listed}
    return json.dumps(
        {
            "verdicts": [
                {
                    "number": int(n),
                    "applies": bool(duties[i]),
                    "quote": d[1] if (d := duties[i]) else "",
                }
                for n, i in listed
            ]
        }
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("JUDGE_API_KEY", KEY)
    listing = {"data": [{"id": "a-judge"}]}
    found = Server(lambda a: Reply(listing if a.method == "GET" else said(a, judge(a))))
    yield found
    found.close()


def config(folder: Path, server: Server, **more: Any) -> SweepConfig:
    scripted.write(folder / "runs/run/checkpoint-0", {}, 0.5, 80)
    return SweepConfig.model_validate(
        {
            "output": folder / "out",
            "runs": [{"path": str(folder / "runs/run")}],
            "env": [
                {
                    "id": "market_structure",
                    "split": "eval",
                    "judge_model": "a-judge",
                    "judge_base_url": server.url,
                    "judge_votes": 1,
                    **more,
                }
            ],
            "cases": {"count": PROMPTS, "shard": PROMPTS},
            "sampling": {"n": 1},
            "engine": {"name": "scripted"},
            "judge": {"cache": str(folder / "cache"), "retries": 0},
        }
    )


def write(asked: SweepConfig, policies: Mapping[int, str]) -> None:
    """Commit rollouts of the policy that each case's number gives, others being boilerplate."""
    scorer = Scorer(asked.output, asked.engine, {"versions": {}}, judge=asked.judge)
    for work in plan(asked).works:
        with store.writing(
            asked.output, tomli_w.dumps(asked.model_dump(mode="json", exclude_none=True))
        ):
            scorer.write(work, *generation(work, policies))


def generation(
    work: Work, policies: Mapping[int, str]
) -> tuple[list[Case], list[Generated], list[Rollout]]:
    cases = make_cases(work.environment, work.shard)
    rollouts = [
        Rollout(case.index, 0, seed, Completion(reply(case, policies), "stop", 300, 200))
        for case, (seed,) in zip(cases, sampling_seeds(cases, work.sampling), strict=True)
    ]
    record = Generated(work.checkpoint.cheap_id, "exact", 1, Span(0, 1), Span(0, 1), 0)
    return cases, [record], rollouts


def reply(case: Case, policies: Mapping[int, str]) -> str:
    return POLICIES[policies.get(case.index % 4, "boilerplate")](case)


MIXED = {0: "honest", 1: "template"}
"""A quarter each; the other half cites nothing."""


def test_a_judged_sweep_removes_copied_citations_and_leaves_honest_ones(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = config(tmp_path, server)
    write(asked, MIXED)
    rows = pl.read_parquet(tmp_path / "out/rollouts/market_structure").sort("index")
    assert rows["citations_pre_gate"].to_list() == [1.0, 1.0, 0.5, 0.5] * 3
    assert rows["citations_post_gate"].to_list() == [1.0, 0.0, 0.5, 0.5] * 3
    assert rows["judge_gated"].to_list() == [1.0, 1.0, 0.0, 0.0] * 3
    assert set(rows["judge_error"]) == {0.0}
    assert set(rows["judge_model"]) == {"a-judge"}
    assert len(server.posts) == 6
    assert main(["verify", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.count("what a judge said of it is not asked again") == 1
    assert main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out/report/report.html").read_text("utf-8")
    assert "no opinion of 0 of 6 rollouts (0.00%)" in page
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_a_sweep_that_is_done_again_pays_for_no_reply_twice(tmp_path: Path, server: Server) -> None:
    for _ in range(2):
        write(config(tmp_path, server), MIXED)
    assert len(server.posts) == 6


def test_a_failed_judge_is_a_null_in_curves_and_never_a_zero(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda a: Reply(said(a, "no idea" if "duty" not in str(a.body) else judge(a)))
    write(config(tmp_path, server), MIXED)
    rows = pl.read_parquet(tmp_path / "out/rollouts/market_structure").sort("index")
    assert rows["judge_error"].to_list() == [0.0, 1.0, 0.0, 0.0] * 3
    assert rows["reward_citations_grounded"].to_list() == [1.0, 0.0, 0.5, 0.5] * 3
    argv = ["curves", str(tmp_path / "out"), "--json"]
    assert main([*argv, "--max-loss", "0.5"]) == 0
    curves = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    for metric in ("reward", "reward_citations_grounded", "citations_post_gate"):
        assert (curves[metric]["rollouts"], curves[metric]["nulls"]) == (9, 3)
        assert curves[metric]["null_reasons"] == "judge_error 3"
    assert curves["reward_citations_grounded"]["rate"] == pytest.approx(2 / 3)
    for metric in ("r_true", "judge_error", "citations_pre_gate", "reward_valid_json"):
        assert (curves[metric]["rollouts"], curves[metric]["nulls"]) == (12, 0)
    assert main(argv) == 0
    told = capsys.readouterr()
    assert "reward_citations_grounded: 25.0 % of 12 rollouts lost (judge_error 3)" in told.err
    refused = {row["metric"]: row["refused"] for row in json.loads(told.out)}
    assert refused["reward"]
    assert refused["r_true"] is None


def test_a_judge_that_does_not_answer_leaves_the_partition_owed(
    tmp_path: Path, server: Server
) -> None:
    server.answer = lambda a: refusing(503)
    asked = config(tmp_path, server)
    with pytest.raises(JudgeBusy, match="status 503"):
        write(asked, MIXED)
    assert not store.done(asked.output, plan(asked).partitions)
    server.answer = lambda a: Reply(said(a, judge(a)))
    write(asked, MIXED)
    assert store.done(asked.output, plan(asked).partitions)


def test_a_judge_that_was_out_is_asked_one_thing_once_before_the_next_partition(
    tmp_path: Path, server: Server
) -> None:
    healthy = server.answer
    server.answer = lambda a: refusing(500)
    asked = config(tmp_path, server)
    asked.judge.retries = 1
    (work,) = plan(asked).works
    scorer = Scorer(asked.output, asked.engine, {"versions": {}}, judge=asked.judge)
    drawn = generation(work, MIXED)
    with store.writing(asked.output, ""):
        with pytest.raises(JudgeBusy, match="status 500 2 times"):
            scorer.write(work, *drawn)
        first = len(server.posts)
        for tries in (1, 2):
            with pytest.raises(JudgeBusy, match="status 500 once"):
                scorer.write(work, *drawn)
            assert len(server.posts) == first + tries
        server.answer = lambda a: replace(healthy(a), after=0.5)
        scorer.write(work, *drawn)
        assert len(server.posts) == first + 2 + 6
        assert server.most_at_once > 1
    assert not scorer.is_wary


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"judge_api_key_var": "NO_SUCH_KEY"}, "judge_api_key_var: NO_SUCH_KEY is not set"),
        ({"judge_base_url": "http://127.0.0.1:1/v1"}, "no connection"),
        ({"judge_model": "another"}, "judge_model 'another' is not served"),
        ({"judge_votes": 2}, "judge_votes is 2; give an odd number"),
        ({"judge_votes": 0}, "judge_votes is 0; give an integer from 1"),
    ],
)
def test_a_judge_that_cannot_be_had_is_one_line_before_any_inference(
    tmp_path: Path,
    server: Server,
    capsys: pytest.CaptureFixture[str],
    args: dict[str, Any],
    said: str,
) -> None:
    asked = config(tmp_path, server, **args)
    path = tmp_path / "sweep.toml"
    path.write_text(tomli_w.dumps(asked.model_dump(mode="json", exclude_none=True)), "utf-8")
    needs_no_server = "is not served" not in said and said != "no connection"
    assert main(["sweep", "@", str(path), "--dry-run"]) == (2 if needs_no_server else 0)
    assert main(["sweep", "@", str(path)]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert said in told[-1]
    assert told[-1].startswith("error: ")
    assert not (tmp_path / "out").exists()
    assert not server.posts


def test_blocks_with_a_judge_and_without_one_are_refused_as_one_output(
    tmp_path: Path, server: Server
) -> None:
    asked = config(tmp_path, server)
    both = asked.model_copy(update={"env": [*asked.env, asked.env[0].model_copy()]})
    plain = type(asked.env[0]).model_validate({"id": "market_structure", "split": "eval"})
    with pytest.raises(PlanError, match="differ in the metric 'citations_post_gate'; has one a"):
        plan(both.model_copy(update={"env": [asked.env[0], plain]}))


def test_the_judge_of_an_identity_can_be_loaded_again(server: Server) -> None:
    judged = load("market_structure", judge_model="a-judge", judge_votes=5)
    again = load("market_structure", **judged.ask, **judged.grade)
    assert (again.grade, again.fingerprint) == (judged.grade, judged.fingerprint)


@pytest.mark.ray
def test_in_a_sweep_a_judge_that_is_out_is_a_failure_and_the_next_launch_goes_on(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scripted engine cites the sections of about half of the cases."""
    healthy = server.answer
    server.answer = lambda a: healthy(a) if a.method == "GET" else refusing(503)
    path = tmp_path / "sweep.toml"
    asked = config(tmp_path, server)
    path.write_text(tomli_w.dumps(asked.model_dump(mode="json", exclude_none=True)), "utf-8")
    assert main(["sweep", "@", str(path)]) == 1
    told = capsys.readouterr().err
    assert f"{PROMPTS} rollouts to generate\n" in told
    assert "failed: run 'run' step 0: judge: " in told
    server.answer = healthy
    assert main(["sweep", "@", str(path)]) == 0
    assert f"0 rollouts to generate, {PROMPTS} drawn before to judge\n" in capsys.readouterr().err
    rows = pl.read_parquet(tmp_path / "out/rollouts/market_structure")
    assert 0 < rows["judge_gated"].sum() < PROMPTS
    assert rows["judge_error"].sum() == 0


def rejudge(tmp_path: Path, server: Server, votes: int, *argv: str) -> int:
    path = tmp_path / f"judge-{votes}.toml"
    block = {"id": "market_structure", "judge_model": "a-judge", "judge_base_url": server.url}
    told = {"env": {**block, "judge_votes": votes}, "output": str(tmp_path / f"votes-{votes}")}
    judge = {"cache": str(tmp_path / "cache"), "retries": 0}
    path.write_text(tomli_w.dumps({**told, "judge": judge}), "utf-8")
    return main(["rejudge", str(tmp_path / "out"), "@", str(path), *argv])


def test_stored_rollouts_are_judged_later_and_more_votes_pay_for_the_new_ones_alone(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write(config(tmp_path, server, judge_model=""), MIXED)
    assert not server.posts
    assert rejudge(tmp_path, server, 1, "--json") == 0
    table = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    cited = table["reward_citations_grounded"]
    assert (cited["pairs"], cited["up"], cited["down"]) == (12, 0, 3)
    assert (cited["old"], cited["new"]) == (0.75, 0.5)
    assert (table["reward"]["down"], table["r_true"]["down"]) == (3, 0)
    assert len(server.posts) == 6
    assert rejudge(tmp_path, server, 3) == 0
    assert len(server.posts) == 18
    assert "reward_citations_grounded: 3 of 12 rollouts flipped" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "votes-3")]) == 0
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_a_judge_that_is_out_leaves_a_rejudge_owed_and_prints_no_rate(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write(config(tmp_path, server, judge_model=""), MIXED)
    healthy = server.answer
    server.answer = lambda a: healthy(a) if a.method == "GET" else refusing(402)
    assert rejudge(tmp_path, server, 1) == 2
    server.answer = lambda a: healthy(a) if a.method == "GET" else refusing(429)
    assert rejudge(tmp_path, server, 1) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "status 429" in told.err
    assert "the same command goes on from here" in told.err
    out = tmp_path / "votes-1"
    assert main(["status", str(out), "--json"]) == 0
    (stands,) = json.loads(capsys.readouterr().out)
    assert "judge: " in stands["state"]
    assert [(run["done"], run["owed"], run["rollouts"]) for run in stands["runs"]] == [(0, 1, 0)]
    assert main(["verify", str(out)]) == 1
    assert "gap: " in capsys.readouterr().out
    server.answer = healthy
    assert rejudge(tmp_path, server, 1) == 0
    capsys.readouterr()
    assert main(["status", str(out), "--json"]) == 0
    (stands,) = json.loads(capsys.readouterr().out)
    assert stands["state"] == "finished"
    assert [(run["done"], run["owed"], run["rollouts"]) for run in stands["runs"]] == [
        (1, 0, PROMPTS)
    ]
    assert main(["verify", str(out)]) == 0


def test_what_a_judge_without_a_verdict_lost_is_told(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write(config(tmp_path, server, judge_model=""), MIXED)
    healthy = server.answer
    server.answer = lambda a: healthy(a) if a.method == "GET" else Reply(said(a, "Well."))
    assert rejudge(tmp_path, server, 1) == 0
    told = capsys.readouterr()
    assert "reward: 0 of 6 rollouts flipped; 6 more lost" in told.out
    assert "0 -> 6" in told.out
    assert "r_true: 0 of 12 rollouts flipped\n" in told.out
