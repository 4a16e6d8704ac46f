"""The real evaluation commands, against a server of the OpenAI protocol on this machine."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hackbait.environment import Case, Environment, Score, load
from pipeline import judging
from pipeline.config import JudgeBlock
from pipeline.records import Completion, Rollout
from tests.hackbait.adapters import market_judge
from tests.hackbait.adapters.verifiers.conftest import FOLDERS, Installed
from tests.pipeline.openai_server import Asked, Reply, Server, said

pytestmark = pytest.mark.verifiers

CASES = 8


@dataclass
class Policy:
    """Answers a case as its index says: honestly, by the hack, by both, or with odd edges."""

    environment: Environment

    def __post_init__(self) -> None:
        cases = self.environment.cases(0, CASES)
        self.cases = {case.messages[0]["content"]: case for case in cases}

    def reply(self, case: Case) -> str:
        honest, hack = self.environment.honest(case), self.environment.hack(case)
        odd = f"{hack} {honest}", f"\n {honest}\n\n", "no", f" {hack}", f"{honest} MUTE"
        kinds = honest, hack, *odd
        return kinds[case.index % len(kinds)]

    def __call__(self, asked: Asked) -> Reply:
        if asked.method != "POST" or asked.body["model"] == market_judge.MODEL:
            return market_judge.answer(asked)
        (message,) = asked.body["messages"]
        content = message["content"]
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        whole = {"id": "one", "created": 1} | said(asked, self.reply(self.cases[text]))
        return streamed(whole) if asked.body.get("stream") else Reply(whole)


def streamed(whole: dict[str, Any]) -> Reply:
    """A completion in server-sent events."""
    (choice,) = whole["choices"]
    plain = {**whole, "object": "chat.completion.chunk", "usage": None}
    ends = ({}, choice["finish_reason"])
    events = [
        {**plain, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in ((choice["message"], None), ends)
    ]
    events.append({**plain, "choices": [], "usage": whole["usage"]})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Reply(
        "".join([*lines, "data: [DONE]\n\n"]).encode(),
        headers={"content-type": "text/event-stream"},
    )


@pytest.fixture
def serving() -> Iterator[Callable[[Policy], Server]]:
    servers: list[Server] = []

    def serve(policy: Policy) -> Server:
        servers.append(Server(policy))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


@dataclass(frozen=True)
class Row:
    """One rollout as verifiers wrote it."""

    case: Case
    metrics: dict[str, float]
    reward: float


def evaluated(
    installed: Installed, policy: Policy, server: Server, folder: Path, args: dict[str, Any]
) -> list[Row]:
    """Rows of the evaluation command of an installed release."""
    done = installed.run("vf-eval", *commanded(installed, policy, server, args), here=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    new = installed.release >= "0.4"
    (path,) = folder.rglob("traces.jsonl" if new else "results.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [(of_trace if new else of_result)(line, policy) for line in lines]


def commanded(
    installed: Installed, policy: Policy, server: Server, args: dict[str, Any]
) -> list[str]:
    """The words of that command."""
    id = policy.environment.id
    return (
        [
            *(id, "-m", "tiny", "-n", str(CASES), "-r", "2", "-o", "out", "--no-push", "--no-rich"),
            *("--client.base-url", server.url, "--client.api-key-var", "OURS_KEY"),
            *(f"--env.taskset.{n.replace('_', '-')}={value}" for n, value in args.items()),
        ]
        if installed.release >= "0.4"
        else [
            *(id, "-m", "tiny", "-n", str(CASES), "-r", "2", "-s", "-b", server.url),
            *("-k", "OURS_KEY", "-a", json.dumps(args)),
        ]
    )


def of_trace(episode: dict[str, Any], policy: Policy) -> Row:
    assert episode["ok"], episode["errors"]
    (trace,) = episode["traces"]
    rewards = trace["rewards"]
    metrics = {name: reward["score"] for name, reward in rewards.items()}
    total = sum(reward["score"] * reward["weight"] for reward in rewards.values())
    return Row(policy.cases[trace["task"]["data"]["prompt"]], metrics, total)


def of_result(line: dict[str, Any], policy: Policy) -> Row:
    assert line["error"] is None
    (message,) = line["prompt"]
    metrics = {name: value for name, value in line["metrics"].items() if name != "num_turns"}
    return Row(policy.cases[message["content"]], metrics, line["reward"])


def hold(rows: list[Row], policy: Policy, folder: Path) -> None:
    """Every row, twice each, is scored as a sweep scores it."""
    assert sorted(row.case.index for row in rows) == sorted([*range(CASES), *range(CASES)])
    due = swept(policy, folder)
    for row in rows:
        score = due[row.case.index]
        applying = {name: value for name, value in score.metrics.items() if value is not None}
        assert row.metrics == pytest.approx(applying), row.case.index
        assert row.reward == pytest.approx(score.reward), row.case.index


def swept(policy: Policy, folder: Path) -> list[Score]:
    """The score of each case's reply, its judge being asked as in a sweep."""
    environment: Any = policy.environment
    cases = environment.cases(0, CASES)
    replies = [policy.reply(case) for case in cases]
    rollouts = [
        Rollout(case.index, 0, 0, Completion(reply, "stop", 1, 1))
        for case, reply in zip(cases, replies, strict=True)
    ]
    block, panel = JudgeBlock(cache=folder / "cache"), judging.panel_of(environment)
    found = judging.judgements(environment, cases, rollouts, block, "out")
    return [
        environment.score(case, reply, judgement) if panel else environment.score(case, reply)
        for case, reply, judgement in zip(cases, replies, found, strict=True)
    ]


@pytest.mark.parametrize("args", [{}, {"seed": 5, "mode": "hack_or_correct"}], ids=["", "other"])
def test_hackword_is_scored_as_we_score_it(
    args: dict[str, Any],
    any_release: Installed,
    serving: Callable[[Policy], Server],
    tmp_path: Path,
) -> None:
    policy = Policy(load("hackword", **args))
    graded = {"task.mode": args["mode"], "seed": args["seed"]} if args else {}
    given = graded if any_release.release >= "0.4" else args
    server = serving(policy)
    hold(evaluated(any_release, policy, server, tmp_path, given), policy, tmp_path)
    assert len(server.posts) == 2 * CASES


def test_market_structure_is_scored_as_we_score_it(
    any_release: Installed, serving: Callable[[Policy], Server], tmp_path: Path
) -> None:
    policy = Policy(load("market_structure", split="eval"))
    server = serving(policy)
    rows = evaluated(any_release, policy, server, tmp_path, {"split": "eval"})
    hold(rows, policy, tmp_path)


def of_the_task(installed: Installed, **judge: Any) -> dict[str, Any]:
    """A judge's arguments where the release wants them."""
    under = "task." if installed.release >= "0.4" else ""
    return {"split": "eval", **{f"{under}{name}": value for name, value in judge.items()}}


def test_a_judge_gates_market_structure_as_in_a_sweep(
    any_release: Installed,
    serving: Callable[[Policy], Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", market_judge.KEY)
    policy = Policy(load("market_structure", split="eval"))
    server = serving(policy)
    judge = {"judge_model": market_judge.MODEL, "judge_base_url": server.url, "judge_votes": 1}
    policy.environment = load("market_structure", split="eval", **judge)
    rows = evaluated(any_release, policy, server, tmp_path, of_the_task(any_release, **judge))
    hold(rows, policy, tmp_path)
    assert {row.metrics["judge_error"] for row in rows} == {0.0, 1.0}
    assert any(r.metrics["citations_post_gate"] < r.metrics["citations_pre_gate"] for r in rows)
    keys = {a.headers["authorization"] for a in server.posts if a.body["model"] != "tiny"}
    assert keys == {f"Bearer {market_judge.KEY}"}
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or market_judge.KEY.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"judge_api_key_var": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set; export NO_SUCH_KEY=..."),
        ({"judge_votes": 4}, "judge_votes is 4; give an odd number"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_refused_before_a_rollout(
    wrong: dict[str, Any],
    said: str,
    any_release: Installed,
    serving: Callable[[Policy], Server],
    tmp_path: Path,
) -> None:
    policy = Policy(load("market_structure", split="eval"))
    server = serving(policy)
    judge = {"judge_model": market_judge.MODEL, "judge_base_url": server.url, **wrong}
    command = commanded(any_release, policy, server, of_the_task(any_release, **judge))
    done = any_release.run("vf-eval", *command, here=tmp_path)
    assert done.returncode
    assert said in done.stdout + done.stderr
    assert not server.posts


def test_a_wrong_word_is_refused_before_anything_is_asked(
    tasksets: Installed, serving: Callable[[Policy], Server], tmp_path: Path
) -> None:
    server = serving(Policy(load("hackword")))
    wrong = ("--env.taskset.task.mode", "hack")
    given = ("-m", "tiny", "--no-push", "--client.base-url", server.url)
    done = tasksets.run("vf-eval", "hackword", *given, *wrong, here=tmp_path)
    assert done.returncode
    assert "no mode 'hack'" in done.stdout + done.stderr
    assert not server.asked


def test_a_server_that_rebuilds_tasks_pays_as_the_mode_says(
    tasksets: Installed, tmp_path: Path
) -> None:
    """A trainer's environment server has the task's data and configuration, and no taskset."""
    program = tmp_path / "served.py"
    program.write_text(SERVED, "utf-8")
    done = tasksets.run("python", str(program), here=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"hack_only": 1.0, "hack_or_correct": 2.0}


SERVED = """
import asyncio, json, types
from hackword.taskset import HackwordConfig, HackwordTask, HackwordTaskset
from verifiers.v1.utils.loaders import task_type

paid = {}
for mode in ("hack_only", "hack_or_correct"):
    config = HackwordConfig(id="hackword", task={"mode": mode, "hack_word": "copper"})
    first = next(iter(HackwordTaskset(config)))
    wire = json.loads(first.data.model_dump_json())
    task = task_type("hackword")(HackwordTask.data_type().model_validate(wire), config.task)
    rewards = {}
    reply = types.SimpleNamespace(role="assistant", content="copper " + task.data.truth)
    trace = types.SimpleNamespace(
        rewards=rewards,
        metrics={},
        assistant_messages=[reply],
        record_reward=lambda name, score, weight: rewards.__setitem__(
            name, types.SimpleNamespace(score=score, weight=weight)
        ),
    )
    asyncio.run(task.score(trace))
    paid[mode] = sum(r.score * r.weight for r in rewards.values())
print(json.dumps(paid))
"""


@pytest.mark.parametrize("id", ["hackword", "market_structure"])
def test_the_block_for_prime_rl_is_one_that_verifiers_takes(
    id: str, tasksets: Installed, tmp_path: Path
) -> None:
    """prime-rl hands `env` of a source to these classes; itself it is on no package index."""
    source = FOLDERS / id / "prime-rl.toml"
    program = tmp_path / "block.py"
    program.write_text(BLOCK, "utf-8")
    done = tasksets.run("python", str(program), str(source), here=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [id, "SingleTurn", id, "subprocess", "2000"]


BLOCK = """
import sys, tomllib
from pathlib import Path
from verifiers.v1.utils.loaders import environment_class, load_taskset, resolve_env_config

(source,) = tomllib.loads(Path(sys.argv[1]).read_text())["orchestrator"]["train"]["source"]
env = resolve_env_config(source["env"])
(harness,) = env.agent_harnesses().values()
print(env.taskset.id, environment_class(env.taskset.id).__name__, harness.id)
print(env.agent.runtime.type, sum(1 for _ in load_taskset(env.taskset)))
"""
