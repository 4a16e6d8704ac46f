"""What a sweep would run, and for how long: one partition is generated to find out.

onset plan @ sweep.toml
onset plan @ sweep.toml --no-probe
"""

import sys
import time
from collections.abc import Sequence

from jobs import command, terminal
from pipeline import engines, store
from pipeline.cache import Near
from pipeline.config import PlanConfig, read
from pipeline.mixture import refuse_other_sweep
from pipeline.plan import Plan, build, owed, plan
from pipeline.records import Work
from pipeline.rollout import generate, score


def main(argv: Sequence[str]) -> int:
    """Print the plan; 0."""
    config = read(PlanConfig, argv)
    wanted = plan(config)
    refuse_other_sweep(config, wanted)
    works = owed(wanted.works, store.done(config.output, wanted.partitions))
    rows = [_row(wanted, works, run.name) for run in wanted.runs]
    total: dict[str, float] = {
        "rollouts to generate": wanted.rollouts(works),
        "tokens at most": wanted.rollouts(works) * config.sampling.max_tokens,
    }
    if config.probe and works:
        total |= _probe(config, works)
    if config.json:
        terminal.as_json([{"runs": rows, **total}])
        return 0
    for note in wanted.notes:
        terminal.line(f"note: {note}")
    if config.order.strategy == "adaptive":
        terminal.line(
            "note: an adaptive sweep runs a part of this; sweep --dry-run says how it goes"
        )
    terminal.table(rows, list(rows[0]))
    for name, value in total.items():
        print(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:.4g}")
    return 0


def _row(wanted: Plan, works: Sequence[Work], name: str) -> dict[str, object]:
    steps = [c.step for run in wanted.runs if run.name == name for c in run.checkpoints]
    mine = [p for p in wanted.partitions if p.run == name]
    left = [p for work in works for p in work.partitions if p.run == name]
    return {
        "run": name,
        "checkpoints": len(steps),
        "steps": f"{min(steps)}..{max(steps)}",
        "partitions": len(mine),
        "done": len(mine) - len(left),
        "owed": len(left),
        "skipped": sum(found.run == name for found in wanted.skipped),
    }


def _probe(config: PlanConfig, works: Sequence[Work]) -> dict[str, float]:
    """Measure the first owed partition in this process, and carry its speed over to the rest."""
    work = works[0]
    engine = engines.load(config.engine.name, config.engine.options)
    environment = build(work.environment)
    cases = environment.cases(work.shard.start, work.shard.stop)
    checkpoint = Near(config.cluster.cache, config.cluster.cache_size).bring(work.checkpoint)
    engine.load(checkpoint)
    generate(engine, cases[:1], work.sampling)
    began = time.perf_counter()
    engine.load(checkpoint)
    rollouts = generate(engine, cases, work.sampling)
    score(environment, cases, rollouts)
    seconds = (time.perf_counter() - began) / max(1, len(rollouts))
    tokens = sum(r.completion.completion_tokens or 0 for r in rollouts) / max(1, len(rollouts))
    left = sum((w.shard.stop - w.shard.start) * w.sampling.n for w in works)
    return {
        "probed ms per rollout": 1e3 * seconds,
        "probed tokens per rollout": tokens,
        "tokens expected": tokens * left,
        "hours on one worker": seconds * left / 3600,
        "hours": seconds * left / 3600 / (config.cluster.workers or 1),
    }


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
