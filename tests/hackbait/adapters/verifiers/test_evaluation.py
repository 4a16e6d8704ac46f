"""The real evaluation commands, against a server of the OpenAI protocol on this machine."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hackbait.environment import Case, Environment, load
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
        kinds = honest, hack, f"{hack} {honest}", f"\n {honest}\n\n", "no", f" {hack}"
        return kinds[case.index % len(kinds)]

    def __call__(self, asked: Asked) -> Reply:
        if asked.method != "POST":
            return Reply({"object": "list", "data": []})
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
    id = policy.environment.id
    new = installed.release >= "0.4"
    command = (
        [
            *(id, "-m", "tiny", "-n", str(CASES), "-r", "2", "-o", "out", "--no-push", "--no-rich"),
            *("--client.base-url", server.url, "--client.api-key-var", "OURS_KEY"),
            *(f"--env.taskset.{name}={value}" for name, value in args.items()),
        ]
        if new
        else [
            *(id, "-m", "tiny", "-n", str(CASES), "-r", "2", "-s", "-b", server.url),
            *("-k", "OURS_KEY", "-a", json.dumps(args)),
        ]
    )
    done = installed.run("vf-eval", *command, here=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = folder.rglob("traces.jsonl" if new else "results.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [(of_trace if new else of_result)(line, policy) for line in lines]


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


def hold(rows: list[Row], policy: Policy) -> None:
    """Every row, twice each, is scored as we score it."""
    assert sorted(row.case.index for row in rows) == sorted([*range(CASES), *range(CASES)])
    for row in rows:
        due = policy.environment.score(row.case, policy.reply(row.case))
        applying = {name: value for name, value in due.metrics.items() if value is not None}
        assert row.metrics == pytest.approx(applying), row.case.index
        assert row.reward == pytest.approx(due.reward), row.case.index


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
    hold(evaluated(any_release, policy, server, tmp_path, given), policy)
    assert len(server.posts) == 2 * CASES


def test_market_structure_is_scored_as_we_score_it(
    any_release: Installed, serving: Callable[[Policy], Server], tmp_path: Path
) -> None:
    policy = Policy(load("market_structure", split="eval"))
    server = serving(policy)
    hold(evaluated(any_release, policy, server, tmp_path, {"split": "eval"}), policy)


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
