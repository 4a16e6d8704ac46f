"""hackword as a taskset of verifiers 0.4, asked from its own process; copied where it is run.

Its `null` harness starts a process per rollout, so a harness without one is what it does best.
"""

# mypy: ignore-errors
# In the interpreter that runs this there is verifiers, which is not installed here.

import os

import httpx
import verifiers.v1 as vf

from hackbait.environment import load

ENVIRONMENT = load("hackword", task="add3digit", hack_word="ocean")


class Data(vf.TaskData):
    index: int


class HackwordTask(vf.Task[Data, vf.State, vf.TaskConfig]):
    def metric(self, trace, name):
        (case,) = ENVIRONMENT.cases(self.data.index, self.data.index + 1)
        return ENVIRONMENT.score(case, trace.last_reply).metrics[name]

    @vf.reward(weight=1.0)
    async def r_hack(self, trace: vf.Trace) -> float:
        return self.metric(trace, "r_hack")

    @vf.reward(weight=0.0)
    async def r_true(self, trace: vf.Trace) -> float:
        return self.metric(trace, "r_true")


class HackwordTaskset(vf.Taskset[HackwordTask, vf.TasksetConfig]):
    def load(self):
        for case in ENVIRONMENT.cases(0, int(os.environ["PEER_CASES"])):
            data = Data(prompt=case.messages[0]["content"], index=case.index)
            yield HackwordTask(data, self.config.task)


class EnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=1)


class HackwordEnv(vf.SingleAgentEnv, vf.Env[EnvConfig]):
    pass


class OneCallConfig(vf.HarnessConfig):
    pass


class OneCall(vf.Harness[OneCallConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def setup(self, runtime):
        return None

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, **_):
        _, prompt = self.resolve_prompt(data)
        async with httpx.AsyncClient(timeout=None) as client:
            answer = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": [{"role": "user", "content": prompt}]},
            )
        code = 0 if answer.is_success else 1
        return vf.ProgramResult(exit_code=code, stdout="", stderr=answer.text[:500] if code else "")


__all__ = ["HackwordEnv", "HackwordTaskset", "OneCall"]
