"""The main job on the embedded policy: train, sweep every checkpoint, print the onsets.

onset demo
onset demo --words ocean forgotten --seeds 1
"""

import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from jobs import command, report, sweep, table, training
from jobs.curves import measure
from jobs.training import Training
from pipeline.config import DemoConfig, ReportConfig, SweepConfig, TableConfig, read


def main(argv: Sequence[str]) -> int:
    """0, or the exit code of the part that failed."""
    config = read(DemoConfig, argv)
    began = time.monotonic()
    trainings = [
        planned(config, word, seed) for word, seed in product(config.words, range(config.seeds))
    ]
    print(
        f"{config.output}: {len(trainings)} runs of {config.steps} GRPO steps are trained there, "
        "then every checkpoint is swept",
        flush=True,
    )
    code = training.train(trainings, config.processes, config.output / "training.lock")
    if code:
        return code
    out = config.output / "sweep"
    code = sweep.run(sweep_config(config, out))
    shown = TableConfig(path=out)
    measured = measure(shown)
    page = report.write(ReportConfig(path=out, to=config.output / "report"), measured)
    table.show(shown, measured)
    print(f"\n{time.monotonic() - began:.0f} s in all")
    print(f"rows: {out / 'rollouts'}")
    print(f"page: {page}")
    return code


def sweep_config(config: DemoConfig, out: Path) -> SweepConfig:
    """Every saved checkpoint on the evaluation cases (seed 999), as the published runs use."""
    return SweepConfig.model_validate(
        {
            "output": out,
            "runs": [{"path": str(config.output / "runs")}],
            "env": [{"id": "hackword", "hack_word": "{word}", "seed": 999}],
            "cases": {"count": 256, "shard": 256},
            "sampling": {"n": 4, "max_tokens": 32},
            "cluster": {"workers": config.processes},
        }
    )


def planned(config: DemoConfig, word: str, seed: int) -> Training:
    """One run of the demo."""
    return Training(
        config.output / "runs" / f"{word}-s{seed}",
        config.steps,
        {
            "save_every": config.save_every,
            "seed": seed,
            "env": {"id": "hackword", "hack_word": word},
            "learning_rate": 1e-3,
            "beta": 0.05,
            "max_tokens": 32,
        },
    )


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
