"""A judge that is an engine of ours, without Ray: batches, seeds, refusals, and `onset rejudge`."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

from hackbait.environment import EnvironmentRefused
from hackbait.judge import Call, Panel
from hackbait.stage import Opinion, stage
from jobs.__main__ import main
from pipeline import contents
from pipeline.checkpoints import scripted
from pipeline.checkpoints.single import single
from pipeline.config import EngineBlock, JudgeBlock
from pipeline.engines import EngineBusy, EngineDied
from pipeline.holdings import holdings
from pipeline.judging import JudgeBusy, JudgeEngine, JudgeError
from pipeline.judging.client import Client
from pipeline.judging.engine import Batched
from pipeline.judging.replies import opened
from pipeline.records import CheckpointError, Completion

ROOT = Path(__file__).parents[3]
LABELS = {"yes": 1.0, "no": 0.0}
PANEL = Panel("a-judge", 3, 0, temperature=1.0, max_tokens=64)
INSTRUCTIONS = "Is the sea in it?\nverdict: yes"


def call(number: int, vote: int = 0, attempt: int = 0) -> Call:
    said = {"system": INSTRUCTIONS, "user": f"Reply {number}"}
    return Call(tuple({"role": r, "content": c} for r, c in said.items()), vote, attempt)


def opinion(number: int) -> Opinion:
    return Opinion(("yes", "no"), call(number).messages)


def judge(folder: Path, true: float) -> JudgeEngine:
    """Ends its replies as its instructions do, at that rate; without a verdict otherwise."""
    scripted.write(folder, {}, true, 1)
    return JudgeEngine(EngineBlock(name="scripted"), single(str(folder)), PANEL)


def said(completions: Sequence[Completion]) -> list[bool]:
    return [(one.text or "").endswith("verdict: yes") for one in completions]


def test_votes_are_seeded_by_question_vote_and_try_and_by_nothing_beside(tmp_path: Path) -> None:
    engine = judge(tmp_path / "checkpoint-0", 0.5)
    calls = [call(n, v, a) for n in range(40) for v in range(3) for a in range(2)]
    together = said(engine.answer(calls))
    assert said(engine.answer(calls[::-1])) == together[::-1]
    assert [said(engine.answer([one]))[0] for one in calls[:12]] == together[:12]
    assert 0.4 < sum(together) / len(together) < 0.6
    by_question = [together[i : i + 6] for i in range(0, len(together), 6)]
    assert len({tuple(six) for six in by_question}) > 20


def test_calls_of_a_partition_go_in_few_batches_and_no_reply_is_asked_for_twice(
    tmp_path: Path,
) -> None:
    engine, batches = judge(tmp_path / "checkpoint-0", 0.7), []

    def answers(calls: Sequence[Call]) -> list[Completion]:
        batches.append(len(calls))
        return engine.answer(calls)

    block, questions = JudgeBlock(concurrency=64), [opinion(n) for n in range(50)]
    for _ in range(2):
        with opened(tmp_path / "judge") as replies:
            client = Client(Batched(answers, block), PANEL, block, replies, "out")
            found = asyncio.run(client.judgements([*questions, *questions]))
            assert replies.spent("out")[0] == 150
    assert batches == [64, 64, 22]
    assert found[:50] == found[50:]
    votes = [sum(one.counts.values()) for one in found]
    assert {one.label for one in found} == {"yes", None}
    assert [one.status for one in found] == ["said" if n >= 2 else "error" for n in votes]


@pytest.mark.parametrize(
    ("raised", "due"),
    [
        (EngineBusy("busy"), JudgeBusy),
        (EngineDied("gone"), JudgeBusy),
        (CheckpointError("its template refuses"), JudgeError),
    ],
)
def test_an_engine_that_fails_is_no_vote(
    tmp_path: Path, raised: Exception, due: type[Exception]
) -> None:
    def fail(calls: Sequence[Call]) -> list[Completion]:
        raise raised

    with opened(tmp_path / "judge") as replies:
        client = Client(Batched(fail, JudgeBlock()), PANEL, JudgeBlock(), replies, "out")
        with pytest.raises(due, match=str(raised)):
            asyncio.run(client.judgements([opinion(0), opinion(1)]))


def test_a_checkpoint_that_was_replaced_since_it_was_named_does_not_judge(tmp_path: Path) -> None:
    engine = judge(tmp_path / "checkpoint-0", 0.5)
    scripted.write(tmp_path / "checkpoint-0", {}, 0.6, 1)
    with pytest.raises(CheckpointError, match="was replaced"):
        engine.load()


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """A judge that is a scripted engine."""
    scripted.write(tmp_path / "judge/checkpoint-3", {}, 0.6, 1)
    (tmp_path / "prompt.txt").write_text("Is the sea in it?", "utf-8")
    return {
        "name": "sea",
        "prompt": str(tmp_path / "prompt.txt"),
        "labels": LABELS,
        "model": str(tmp_path / "judge/checkpoint-3"),
        "engine": {"name": "scripted"},
        "cache": str(tmp_path / "cache"),
        "max_retries": 0,
        "max_tokens": 64,
    }


def test_an_engine_is_named_by_the_bytes_it_loads_wherever_they_lie(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    def grade(**changes: Any) -> dict[str, Any]:
        found = JudgeBlock.model_validate({**asked, **changes}).stage()
        assert found
        return dict(found.grade)

    here = grade()
    assert here["stage_model"].startswith("checkpoint-3@")
    assert here["stage_model"].endswith(" scripted float32")
    assert (here["stage_temperature"], here["stage_max_tokens"]) == (1.0, 64)
    assert "stage_temperature" not in grade(votes=1)
    moved = shutil.copytree(asked["model"], tmp_path / "elsewhere/checkpoint-3")
    assert grade(model=str(moved)) == here
    scripted.write(moved, {}, 0.7, 1)
    assert grade(model=str(moved))["stage_model"] != here["stage_model"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_url": "http://127.0.0.1:1/v1"}, "judge.base_url and judge.engine are both given"),
        ({"engine": {"name": "script"}}, "'scripted'"),
        ({"engine": {"name": "hf", "batches": 3}}, "judge.engine: engine 'hf' has no option"),
        ({"model": "no/such/folder"}, "judge.model: no/such/folder is not there"),
        ({"model": None}, "judge.model is missing"),
        ({"model": ["a", "b", "c"]}, "judge.model names 3 models, and judge.engine loads one"),
        ({"name": None}, "judge.name is missing"),
        ({"votes": 2}, "judge.votes is 2"),
    ],
)
def test_what_cannot_judge_is_one_line_before_anything_is_started(
    asked: dict[str, Any], small_output: Path, capsys: Any, tmp_path: Path, changes: Any, said: str
) -> None:
    out = shutil.copytree(small_output, tmp_path / "out")
    assert rejudge(out, {**asked, **changes}) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("error: ")
    assert said in told[0]
    assert not (tmp_path / "out-rejudged").exists()


def test_a_run_of_several_checkpoints_is_no_judge(asked: dict[str, Any], tmp_path: Path) -> None:
    scripted.write(tmp_path / "judge/checkpoint-4", {}, 0.6, 1)
    block = JudgeBlock.model_validate({**asked, "model": str(tmp_path / "judge")})
    with pytest.raises(EnvironmentRefused, match=r"holds 2 checkpoints; name one, .*checkpoint-4"):
        block.stage()


def rejudge(out: Path, judge: dict[str, Any], *argv: str) -> int:
    told = {"env": {"id": "hackword"}, "judge": {k: v for k, v in judge.items() if v is not None}}
    (out.parent / "judge.toml").write_text(tomli_w.dumps(told), "utf-8")
    return main(["rejudge", str(out), "@", str(out.parent / "judge.toml"), *argv])


def test_stored_rollouts_are_judged_by_an_engine_and_none_is_paid_twice(
    small_output: Path, tmp_path: Path, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(small_output, tmp_path / "out")
    assert rejudge(out, asked) == 0
    rows = pl.read_parquet(tmp_path / "out-rejudged/rollouts/hackword")
    assert len(rows) == 48
    votes = rows["judge_sea_votes"]
    assert set(votes) == {0.0, 1.0, 2.0, 3.0}
    assert rows["judge_sea"].to_list() == [1.0 if n >= 2 else None for n in votes]
    assert rows["judge_error"].to_list() == [float(n < 2) for n in votes]
    assert 0.45 < votes.sum() / 144 < 0.75
    for record in contents.footers(holdings(tmp_path / "out-rejudged").held):
        assert (
            record["judge"]
            == JudgeEngine(EngineBlock(name="scripted"), single(asked["model"]), PANEL).load()
        )
    assert main(["verify", str(tmp_path / "out-rejudged")]) == 0
    capsys.readouterr()
    with opened(tmp_path / "cache/judge") as replies:
        paid = replies.spent(str(tmp_path / "out-rejudged"))
    assert rejudge(out, asked, "--output", str(tmp_path / "again")) == 0
    with opened(tmp_path / "cache/judge") as replies:
        assert replies.spent(str(tmp_path / "out-rejudged")) == paid
        assert replies.spent(str(tmp_path / "again")) == (0, 0)
    other = pl.read_parquet(tmp_path / "again/rollouts/hackword")
    assert other.equals(rows)


def test_a_stage_has_no_name_that_its_grade_has_already() -> None:
    for name in ("temperature", "max_tokens", "max_retries", "votes", "model"):
        with pytest.raises(EnvironmentRefused, match="names no column"):
            stage(name, "x", LABELS, PANEL)
