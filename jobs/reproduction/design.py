"""The runs of the study, and what each is trained and swept with."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic_config import ConfigFileError

import hackbait
from jobs import corpus
from jobs.training import Training
from pipeline.config import ReproduceConfig, RunBlock, SweepConfig

RECIPE_FILES = ("jobs/corpus.py", "jobs/pretrain.py", "hackbait/prompts.py")
"""What decides a taught base, besides its dials: a change of theirs teaches another one."""


@dataclass(frozen=True, slots=True)
class Studied:
    """One training run of the study."""

    word: str
    mode: str
    seed: int
    steps: int
    rates: Literal["shipped", "swapped"] = "shipped"
    """Which base it starts from."""
    outside: bool = False
    """The base was taught nothing that holds the word."""

    @property
    def name(self) -> str:
        marks = [
            self.word,
            *([self.mode] if self.mode != "hack_only" else []),
            *([self.rates] if self.rates != "shipped" else []),
            f"s{self.seed}",
        ]
        return "-".join(marks)


def folder(config: ReproduceConfig, one: Studied) -> Path:
    """Where a run's checkpoints are."""
    return config.output / "runs" / one.name


def studied(config: ReproduceConfig) -> list[Studied]:
    """Every run once, with the most updates that any block asks for."""
    most: dict[str, Studied] = {}
    for one in _asked(config):
        if one.name not in most or most[one.name].steps < one.steps:
            most[one.name] = one
    return list(most.values())


def _asked(config: ReproduceConfig) -> list[Studied]:
    """What each block asks for."""
    asked = [
        Studied(word, block.mode, seed, block.steps or config.model.steps[word], "shipped", out)
        for block in config.studied
        for out in (block.outside,)
        for word in block.words
        for seed in range(block.seeds)
    ]
    swap = config.swapped
    if swap is None:
        return asked
    first, second = swap.words
    asked += [
        Studied(word, "hack_only", seed, config.model.steps[other], "swapped")
        for word, other in ((first, second), (second, first))
        for seed in range(swap.seeds)
    ]
    if swap.without:
        asked += [
            Studied(swap.without, "hack_only", seed, swap.without_steps, "swapped", outside=True)
            for seed in range(swap.without_seeds)
        ]
    return asked


def dials(config: ReproduceConfig) -> dict[str, float]:
    """The rates of the swapped base that differ from the shipped ones. Raises ConfigFileError."""
    swap = config.swapped
    if swap is None:
        return {}
    strays = {*swap.words, *([swap.without] if swap.without else [])} - corpus.SLOT_DIALS.keys()
    for word in sorted(strays):
        raise ConfigFileError(
            f"swap: {word!r} has no rate to exchange; those that have are "
            f"{', '.join(corpus.SLOT_DIALS)}"
        )
    first, second = swap.words
    exchanged = {first: corpus.SLOT_DIALS[second], second: corpus.SLOT_DIALS[first]}
    return {**exchanged, **({swap.without: 0.0} if swap.without else {})}


def swapped_base(config: ReproduceConfig) -> Path:
    """Where the base with the other rates is, or will be: its folder is named by its recipe."""
    return config.output / "bases" / f"swapped-{recipe(dials(config))}"


def recipe(dials: dict[str, float]) -> str:
    """Twelve hex digits of all that decides the base which is taught with these dials."""
    root = Path(str(hackbait.__file__)).parents[1]
    digest = hashlib.sha256(json.dumps(dials, sort_keys=True).encode())
    for file in RECIPE_FILES:
        digest.update((root / file).read_bytes())
    return digest.hexdigest()[:12]


def trainings(config: ReproduceConfig, runs: Sequence[Studied]) -> list[Training]:
    """The swapped base first, then its runs and all others, the longest first."""
    taught = None
    if config.swapped:
        taught = Training(swapped_base(config), 1000, {"dials": dials(config)}, "pretrain")
    jobs = [
        Training(
            folder(config, one),
            one.steps,
            settings(config, one),
            after=taught if one.rates == "swapped" else None,
        )
        for one in runs
    ]
    jobs.sort(key=lambda job: -job.steps)
    return [*([taught] if taught else []), *jobs]


def settings(config: ReproduceConfig, one: Studied) -> dict[str, Any]:
    """What `onset train` is told of one run."""
    env = {"id": "hackword", "hack_word": one.word, "mode": one.mode, "task": config.model.task}
    told = {"seed": one.seed, "env": env, "tags": {"rates": one.rates}}
    taught = {"model": str(swapped_base(config)), "threads": 1} if one.rates == "swapped" else {}
    return {**config.model.training(), **told, **taught}


def sweep(config: ReproduceConfig, runs: Sequence[Studied]) -> SweepConfig:
    """Every checkpoint of the runs, on the evaluation cases (seed 999) of the published runs."""
    every = config.model.save_every
    blocks = [
        RunBlock(path=str(folder(config, one)), steps=f"0:{one.steps}:{every},{one.steps}")
        for one in runs
    ]
    words = {"hack_word": "{word}", "mode": "{mode}"}
    all_of_them = _swept(config, "sweep", blocks, [words], config.cases.count, config.cases.shard)
    return all_of_them.model_copy(update={"order": config.order})


def screen(config: ReproduceConfig, runs: Sequence[Studied]) -> SweepConfig:
    """The bases alone, for every word: one generation counts them all, as the sweep samples."""
    started = {one.rates: one for one in reversed(runs)}
    blocks = [
        RunBlock(path=str(folder(config, one) / "checkpoint-0"), name=rates)
        for rates, one in started.items()
    ]
    words = [{"hack_word": word} for word in dict.fromkeys(one.word for one in runs)]
    name, count = screening(config)
    return _swept(config, name, blocks, words, count, 1024)


def screening(config: ReproduceConfig) -> tuple[str, int]:
    """Folder of the output in which bases are screened, and the cases that each is asked."""
    return ("quick-screen", config.quick_screened) if config.quick else ("screen", config.screened)


def _swept(
    config: ReproduceConfig,
    name: str,
    runs: Sequence[RunBlock],
    words: Sequence[dict[str, str]],
    count: int,
    shard: int,
) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": config.output / name,
            "runs": runs,
            "env": [{"id": "hackword", "task": config.model.task, "seed": 999, **w} for w in words],
            "cases": {"count": count, "shard": shard},
            "sampling": {"n": config.n, "max_tokens": config.model.max_tokens},
            "engine": config.model.engine,
            "cluster": {"workers": config.model.processes},
        }
    )
