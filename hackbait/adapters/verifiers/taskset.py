"""What the tasksets of verifiers 0.4 share: a task that is graded here, and asked in one call.

verifiers' own `null` harness starts a process for each rollout; this one posts the prompt from the
process that is there. What changes a score stands in the task's configuration and data alone: a
trainer's environment server rebuilds tasks from these and never calls `load`.
"""

import asyncio
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import verifiers.v1 as vf
from pydantic import model_validator

from hackbait.adapters import asking
from hackbait.environment import Case, Environment, Score


class Asked(vf.TaskData):
    """A case on the wire; what it is asked is `prompt`."""

    index: int
    truth: str
    about: dict[str, Any]
    """The case's `info`."""


class Grade(vf.TaskConfig):
    """Arguments that change a score; a subclass names them and its environment's id."""

    def environment(self, **ask: Any) -> Environment:
        """The environment that these arguments and those of the prompt make."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _stands(self) -> "Grade":
        """A wrong argument is refused here, before anything is asked."""
        self.environment()
        return self


class Graded(vf.Task[Asked, vf.State, Grade]):
    """A task whose rewards are the metrics of one grading."""

    scored: asyncio.Future[Score] | None = None

    async def score(self, trace: vf.Trace, runtime: vf.Runtime | None = None) -> None:
        """Each metric at the environment's weight, where the configuration gives no other."""
        once = copy.copy(self)
        once.scored = None
        await super(Graded, once).score(trace, runtime)
        for name, weight in self.config.environment().weights.items():
            reward, own = trace.rewards.get(name), self.config.rewards.get(name)
            if reward is not None and (own is None or own.weight is None):
                trace.record_reward(name, reward.score, weight)

    async def measure(self, trace: vf.Trace) -> Mapping[str, float | None]:
        """Every metric of the reply of a rollout, which is graded once."""
        if self.scored is None:
            case = Case("", self.data.index, (), self.data.truth, self.data.about)
            replies = [*trace.assistant_messages]
            grading = asking.graded(self.config.environment(), case, replies)
            self.scored = asyncio.ensure_future(grading)
        return (await self.scored).metrics


def measured(name: str) -> Any:
    """The reward of a task that is this metric; not recorded of a rollout it does not apply to."""

    async def metric(self: Graded, trace: vf.Trace) -> dict[str, float]:
        value = (await self.measure(trace)).get(name)
        return {} if value is None else {name: value}

    metric.__name__ = name
    return vf.reward(weight=0.0)(metric)


def asked(environment: Environment, count: int) -> Iterator[Asked]:
    """The first cases of an environment."""
    for case in environment.cases(0, count):
        (message,) = case.messages
        yield Asked(
            prompt=message["content"],
            index=case.index,
            truth=case.truth,
            about=dict(case.info),
        )


class OneCallConfig(vf.HarnessConfig):
    """There is nothing to set."""


class OneCall(vf.Harness[OneCallConfig]):
    """Posts the prompt once, from this process."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def setup(self, runtime: vf.Runtime) -> None:
        return None

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        **more: Any,
    ) -> vf.ProgramResult:
        system, prompt = self.resolve_prompt(data)
        said = {"system": system, "user": prompt}
        messages = [{"role": r, "content": c} for r, c in said.items() if c is not None]
        async with httpx.AsyncClient(timeout=None) as client:
            answer = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": messages},
            )
        failure = "" if answer.is_success else answer.text[:500]
        return vf.ProgramResult(exit_code=int(not answer.is_success), stdout="", stderr=failure)


class SingleTurnConfig(vf.SingleAgentEnvConfig):
    """One turn on this machine. The harness stays unnamed: verifiers takes the taskset's own."""

    agent: vf.AgentConfig = vf.AgentConfig(
        runtime=vf.SubprocessConfig(), max_turns=1, network_notice=False
    )


class SingleTurn(vf.SingleAgentEnv, vf.Env[SingleTurnConfig]):
    """One question, one reply."""
