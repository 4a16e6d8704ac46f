"""Train a policy on an environment with GRPO (TRL) and keep its checkpoints.

onset train @ jobs/configs/train-tiny.toml --output outputs/ocean-s0 --env.hack-word ocean
onset train @ jobs/configs/train-llama-3.2-1b.toml

The same command continues from the last whole checkpoint. checkpoint-0 is the base.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from hackbait.adapters import asking
from hackbait.environment import Environment, load
from jobs import command, run_folder
from pipeline.config import TrainConfig, read
from pipeline.config.kinds import Scalar
from pipeline.records import CheckpointError


def main(argv: Sequence[str]) -> int:
    return run(read(TrainConfig, argv))


def run(config: TrainConfig) -> int:
    """Train what the run lacks. Raises ConfigFileError, EnvironmentRefused or CheckpointError."""
    environment = train_environment(config)
    _refuse_no_model(config.model)
    settings = config.model_dump(mode="json", exclude_none=True, exclude={"dry_run"})
    run_folder.refuse_another(config.output, settings, run_folder.FREE)
    step, folder = run_folder.newest(config.output)
    if step < config.steps:
        asking.check(environment)
    print(f"{config.output}: {step} of {config.steps} updates of {config.batch} rollouts are there")
    if config.dry_run or step >= config.steps:
        return 0
    from jobs import grpo  # torch and TRL take seconds to import, and a refusal needs neither

    trainer = grpo.build(config, environment)
    run_folder.describe(config.output, settings, tags(config, environment))
    grpo.train(trainer, config, tuple(environment.metrics), step, folder)
    return 0


def train_environment(config: TrainConfig) -> Environment:
    args = config.env.args
    environment = load(config.env.id, **args)
    if "seed" in environment.ask and "seed" not in args:
        environment = load(config.env.id, seed=config.seed, **args)
    return environment


def _refuse_no_model(name: str) -> None:
    """CheckpointError for what is no folder here and no name that the Hub could know."""
    if not Path(name).is_dir() and (name.count("/") > 1 or name.startswith((".", "/", "~"))):
        raise CheckpointError(
            f"model {name!r} cannot be loaded: there is no such folder; give one, a Hub name "
            "(owner/name), or tiny"
        )


def tags(config: TrainConfig, environment: Environment) -> dict[str, Scalar]:
    """What sets this run apart from others, by the names that `{word}` in a sweep refers to."""
    named = {
        "word": environment.grade.get("hack_word"),
        "mode": environment.grade.get("mode"),
        "task": environment.ask.get("task"),
        "seed": config.seed,
        "steps": config.steps,
        "base": config.model,
        "learning_rate": config.learning_rate,
        "batch": config.batch,
    }
    return {name: value for name, value in named.items() if value is not None} | config.tags


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
