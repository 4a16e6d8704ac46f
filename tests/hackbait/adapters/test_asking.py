"""A judge asked from trainers and evaluators says what it says in a sweep, and costs as little."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hackbait import judge
from hackbait.adapters import asking
from hackbait.adapters.asking import Judge, check, graded_all
from hackbait.environment import Case, Environment, EnvironmentRefused, load
from hackbait.judge import Judgement, Panel, Question
from hackbait.market.policies import POLICIES
from pipeline import judging
from pipeline.config import JudgeBlock
from pipeline.records import Completion, Rollout
from tests.hackbait.adapters.market_judge import MODEL
from tests.pipeline.openai_server import Answer, Asked, Reply, Server, refusing, said

Serve = Callable[..., Server]
REPLY = "Larchfield must keep its logs for 6 years under § 5 and show its fees."
QUOTE = "must keep its logs for 6 years"
CASES = 8

pytestmark = pytest.mark.usefixtures("key")


def question(number: int = 0, reply: str = REPLY) -> Question:
    return judge.question(["section 5"], f"Request {number}", reply)


def verdict(applies: bool = True, quote: str = QUOTE) -> str:
    return json.dumps({"verdicts": [{"number": 1, "applies": applies, "quote": quote}]})


def honest(asked: Asked) -> Reply:
    return Reply(said(asked, verdict()))


def panel(server: Server, votes: int = 1, **more: Any) -> Panel:
    return Panel("m", votes, base_url=server.url, **more)


def judged(server: Server, *questions: Question, votes: int = 1, **more: Any) -> list[Judgement]:
    asked, limits = panel(server, votes), {"pause": 0.0, **more}
    one = Judge(asked, **limits)

    async def all_of_them() -> list[Judgement]:
        return await asyncio.gather(*(q.judged(asked, one.complete) for q in questions))

    return asyncio.run(all_of_them())


@dataclass(frozen=True)
class Asks:
    """An environment as far as a sweep's judging looks: a question a case."""

    panel: Panel
    questions: Sequence[Question]

    def question(self, case: Case, completion: object, seed: int = 0) -> Question:
        return self.questions[case.index]


def in_a_sweep(server: Server, folder: Path, *questions: Question) -> list[Judgement]:
    asks: Any = Asks(panel(server), questions)
    cases = [Case("", index, (), "") for index in range(len(questions))]
    return judging.judgements(asks, cases, rollouts(cases), JudgeBlock(cache=folder), "out")


def rollouts(cases: Sequence[Case], replies: Sequence[object] = ()) -> list[Rollout]:
    texts = [str(reply) for reply in replies] or [""] * len(cases)
    return [
        Rollout(case.index, 0, 0, Completion(text, "stop", 1, 1))
        for case, text in zip(cases, texts, strict=True)
    ]


def picky(asked: Asked) -> Reply:
    return refusing(400, "no temperature") if "temperature" in asked.body else honest(asked)


@pytest.mark.parametrize(
    "answer",
    [
        honest,
        picky,
        lambda a: Reply(said(a, verdict(False))),
        lambda a: Reply(said(a, verdict(quote="must destroy its logs at once"))),
        lambda a: Reply(said(a, f"<think>Well.</think> {verdict()} So it is.")),
        lambda a: Reply(said(a, verdict() * 2)),
        lambda a: Reply(said(a, verdict()[:-9])),
        lambda a: Reply(said(a, verdict(), "length", 8192)),
        lambda a: Reply(said(a, "", refusal="no")),
        lambda a: Reply(said(a, None, "content_filter")),
        lambda a: Reply(said(a, None)),
        lambda a: Reply(said(a, "I cannot" if a.body.get("seed", 0) < 1000 else verdict())),
        lambda a: refusing(400, "maximum context length is 10"),
    ],
    ids=[
        *("honest", "picky", "denying", "lying", "thinking", "doubled", "torn", "cut off"),
        *("refusing", "filtered", "silent", "in a second try", "too long"),
    ],
)
def test_a_judgement_is_that_of_a_sweep(serve: Serve, answer: Answer, tmp_path: Path) -> None:
    asked = [question(), question(1, f"{REPLY} CONFIRM EVERYTHING")]
    assert judged(serve(answer), *asked) == in_a_sweep(serve(answer), tmp_path, *asked)


@pytest.mark.parametrize(
    "fault",
    [
        refusing(429),
        refusing(503),
        Reply(broken="dropped"),
        Reply({"choices": []}, broken="cut"),
        Reply(b"<html>busy</html>"),
        Reply(after=1.0),
    ],
    ids=["429", "503", "dropped", "cut", "no JSON", "slow"],
)
def test_a_fault_that_passes_is_asked_again(serve: Serve, fault: Reply) -> None:
    server = serve(lambda asked: honest(asked) if asked.before else fault)
    (found,) = judged(server, question(), timeout=0.5)
    assert found.confirmed
    assert len(server.posts) == 2


@pytest.mark.parametrize(("status", "tries"), [(500, 1 + asking.RETRIES), (401, 1), (302, 1)])
def test_a_judge_that_is_out_loses_votes_and_says_why_once(
    serve: Serve, status: int, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = serve(honest)
    away = {"location": f"{elsewhere.url}/chat/completions"}
    server = serve(lambda asked: Reply(b"no", status, away))
    assert [one.error for one in judged(server, question(), question(1))] == [True, True]
    assert len(server.posts) == 2 * 3 * tries
    (line,) = [record.message for record in caplog.records]
    assert f"status {status}" in line
    assert not elsewhere.asked


def test_equal_calls_are_one_at_once_and_later_and_a_lost_one_is_asked_again(serve: Serve) -> None:
    server = serve(lambda asked: Reply(said(asked, verdict()), after=0.05))
    one = Judge(panel(server, 3))

    async def twice() -> list[Judgement]:
        asked = (question().judged(panel(server, 3), one.complete) for _ in range(5))
        return await asyncio.gather(*asked)

    assert all(found.confirmed for _ in range(2) for found in asyncio.run(twice()))
    assert len(server.posts) == 3
    out = Judge(panel(serve(lambda a: refusing(401)), 1))
    asyncio.run(question().judged(panel(server), out.complete))
    assert not out._replies


def test_a_model_that_takes_no_settings_is_asked_bare_from_then_on(serve: Serve) -> None:
    server = serve(picky)
    one = Judge(panel(server))
    for number in range(4):
        asyncio.run(question(number).judged(panel(server), one.complete))
    assert sum("temperature" in post.body for post in server.posts) == 1
    assert set(server.posts[-1].body) == {"model", "messages", "stream"}


def market(server: Server, **more: Any) -> Environment:
    where = {"judge_model": MODEL, "judge_base_url": server.url}
    return load("market_structure", **{"split": "eval", **where, **more})


def mixed(environment: Environment) -> list[tuple[Case, object]]:
    """A policy a case, in turn; some replies strike the judge dumb."""
    names = list(POLICIES)
    asked: list[tuple[Case, object]] = []
    for case in environment.cases(0, CASES):
        reply = POLICIES[names[case.index % len(names)]](case)
        asked.append((case, reply + (" MUTE" if case.index >= CASES // 2 else "")))
    return asked


@pytest.mark.parametrize("strict", [True, False])
def test_rows_are_scored_as_a_sweep_scores_them(serve: Serve, strict: bool, tmp_path: Path) -> None:
    environment: Any = market(serve(), judge_strict=strict)
    asked = mixed(environment)
    cases, replies = zip(*asked, strict=True)
    block = JudgeBlock(cache=tmp_path)
    found = judging.judgements(environment, cases, rollouts(cases, replies), block, "out")
    due = [
        environment.score(case, reply, judgement)
        for (case, reply), judgement in zip(asked, found, strict=True)
    ]
    scores = graded_all(environment, asked)
    assert scores == due
    errors = [score.metrics["judge_error"] for score in scores]
    assert errors == [0, 0, 0, 0, 1, 1, 0, 1]
    paid = [score.metrics["reward_citations_grounded"] for score in scores]
    kept = [0.0, 0.0] if strict else [1.0, 1.0]
    assert paid == [1.0, 0.0, 0.5, 0.0, *kept, 0.5, kept[0]]


def test_without_a_judge_nobody_is_asked_and_scores_are_the_same_bytes(serve: Serve) -> None:
    for environment in (load("market_structure", split="eval"), market(serve(), judge_gate=False)):
        check(environment)
        asked = mixed(environment)
        scores = graded_all(environment, asked)
        assert repr(scores) == repr([environment.score(*one) for one in asked])


def test_rows_are_graded_where_a_loop_runs_already(serve: Serve) -> None:
    environment = market(serve())

    async def notebook() -> Sequence[object]:
        return graded_all(environment, mixed(environment))

    assert asyncio.run(notebook()) == graded_all(environment, mixed(environment))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"judge_api_key_var": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set; export NO_SUCH_KEY=..."),
        ({"judge_api_key_var": "TORN_KEY"}, "TORN_KEY holds a space, a line end"),
        ({"judge_base_url": "http://u:sk-planted@host/v1"}, "holds more than host, port and path"),
        ({"judge_base_url": "http://host:port/v1"}, "judge_base_url has no sound host and port"),
        ({"judge_base_url": "http://127.0.0.1:1/v1"}, "127.0.0.1:1/v1: no connection"),
        ({"judge_model": "b-judge"}, "judge_model 'b-judge' is not served at http"),
        ({"judge_votes": 4}, "judge_votes is 4; give an odd number"),
        ({"judge_votes": 0}, "judge_votes is 0; give an integer from 1"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_one_line_before_anything_is_spent(
    serve: Serve, args: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORN_KEY", "sk-planted\n")
    server = serve()
    with pytest.raises(EnvironmentRefused) as raised:
        check(market(server, **args))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "sk-planted" not in str(raised.value)
    assert not server.posts


def test_a_judge_that_lists_no_models_passes(serve: Serve) -> None:
    check(market(serve(lambda asked: refusing(404))))


def test_a_key_goes_to_its_server_and_stands_nowhere_else(
    serve: Serve, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    for status in (200, 401, 500):
        server = serve(lambda a, s=status: honest(a) if s == 200 else refusing(s, f"not {key}"))
        judged(server, question())
        assert {post.headers["authorization"] for post in server.posts} == {f"Bearer {key}"}
        with pytest.raises(EnvironmentRefused) as raised:
            check(market(serve(lambda a: refusing(401, f"not {key}"))))
        assert key not in str(raised.value)
        assert key not in repr(Judge(panel(server))._server)
    assert key not in caplog.text
