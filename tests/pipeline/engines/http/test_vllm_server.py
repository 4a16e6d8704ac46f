"""vLLM's own server with the shipped policy, against engine `hf` on the same weights."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from hackbait.environment import Case
from hackbait.hackword import load_environment
from pipeline import engines
from pipeline.engines.http import build
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling
from pipeline.rollout import sampling_seeds
from tests.pipeline.vllm_server import serving

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]

POLICY = Path(__file__).parents[4] / "hackbait/policy"
CONTEXT = 160
GREEDY = Sampling(n=1, temperature=0, max_tokens=12)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server that has the policy under two names."""
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(POLICY, log, ("policy", "policy-0"), CONTEXT) as address:
        yield address


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Eight stories, eight sums, and a question that is longer than the context."""
    words = " and 7" * CONTEXT
    long = Case("long", 16, ({"role": "user", "content": f"What is 5{words}?"},), "")
    tasks = ("story", "add3digit")
    return [*(case for task in tasks for case in load_environment(task=task).cases(0, 8)), long]


@pytest.fixture(scope="module")
def by_hf(cases: list[Case]) -> list[Completion]:
    engine = engines.load("hf", {"device": "cpu", "max_context": CONTEXT})
    engine.load(Checkpoint("run", 0, str(POLICY), "full", ""))
    return [row[0] for row in engine.generate(cases, sampling_seeds(cases, GREEDY), GREEDY)]


@pytest.mark.parametrize("mode", ["chat", "completions"])
def test_greedy_rollouts_are_those_of_engine_hf(
    url: str, cases: list[Case], by_hf: list[Completion], mode: str
) -> None:
    engine = build(url, model="policy-{step}", mode=mode)
    fingerprint = engine.load(Checkpoint("run", 0, str(POLICY), "full", ""))
    hf = engines.load("hf", {"device": "cpu"})
    assert fingerprint == hf.load(Checkpoint("run", 0, str(POLICY), "full", ""))
    rows = engine.generate(cases, sampling_seeds(cases, GREEDY), GREEDY)
    assert [row[0] for row in rows[:16]] == by_hf[:16]
    assert {c.finish_reason for c in by_hf[:16]} == {"stop", "length"}
    assert rows[16][0].error == by_hf[16].error == "prompt_too_long"


def test_seeded_samples_differ_and_come_again(url: str, cases: list[Case]) -> None:
    engine = build(url, model="policy-{step}")
    engine.load(Checkpoint("run", 0, str(POLICY), "full", ""))
    sampling = Sampling(n=4, max_tokens=24)
    seeds = sampling_seeds(cases[:8], sampling)
    first = engine.generate(cases[:8], seeds, sampling)
    assert first == engine.generate(cases[:8], seeds, sampling)
    assert all(len({c.text for c in row}) > 1 for row in first)


def test_a_checkpoint_that_is_not_the_one_served_is_refused(url: str, tmp_path: Path) -> None:
    other = shutil.copytree(POLICY, tmp_path / "checkpoint-0")
    content = bytearray((other / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (other / "model.safetensors").write_bytes(content)
    engine = build(url, model="policy-{step}")
    with pytest.raises(CheckpointError, match="and that holds other weights"):
        engine.load(Checkpoint("run", 0, str(other), "full", ""))
    with pytest.raises(CheckpointError, match="serves no 'policy-1', only 'policy', 'policy-0'"):
        engine.load(Checkpoint("run", 1, str(other), "full", ""))
