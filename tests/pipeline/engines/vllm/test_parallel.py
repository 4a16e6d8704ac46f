"""One engine over two worker processes: what crosses from process to process does so whole."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from hackbait.environment import load
from pipeline import engines
from pipeline.records import Checkpoint, Sampling
from pipeline.rollout import generate

pytestmark = pytest.mark.vllm

SWEEP = """
import json, sys
from hackbait.environment import load
from pipeline import engines
from pipeline.records import Checkpoint, Sampling
from pipeline.rollout import generate

engine = engines.load("vllm", {"tensor_parallel_size": 2, "kv_cache": 2**24})
cases = load("hackword", task="add3digit").cases(0, 8)
greedy = Sampling(n=1, temperature=0, max_tokens=12)
texts = []
for path in sys.argv[1:]:
    engine.load(Checkpoint("run", 0, path, "full", ""))
    texts.append([rollout.completion.text for rollout in generate(engine, cases, greedy)])
print(json.dumps(texts))
"""


def test_checkpoints_are_swapped_in_two_worker_processes_alike(
    new_checkpoint: Callable[..., Checkpoint],
) -> None:
    first, second = (new_checkpoint(seed=seed, num_key_value_heads=2) for seed in range(2))
    turns = [first, second, first]
    command = [sys.executable, "-c", SWEEP, *(checkpoint.path for checkpoint in turns)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300)
    hf = engines.load("hf", {})
    cases = load("hackword", task="add3digit").cases(0, 8)
    expected = []
    for checkpoint in turns:
        hf.load(checkpoint)
        rows = generate(hf, cases, Sampling(n=1, temperature=0, max_tokens=12))
        expected.append([rollout.completion.text for rollout in rows])
    assert expected[0] != expected[1]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
