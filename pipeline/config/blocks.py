"""The blocks of a sweep's TOML file."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_config import BaseConfig

from hackbait.environment import EnvironmentRefused, builder
from pipeline import engines
from pipeline.config.kinds import INT32, Address, Scalar, spelled
from pipeline.records import COOLEST, HOTTEST, Sampling

EVERY = "*"
"""Behind the name of a list of blocks: what is said of every one of them."""


def _taken_alike(temperature: float) -> float:
    """One that every engine takes as it is."""
    if temperature == 0 or COOLEST <= temperature <= HOTTEST:
        return temperature
    raise ValueError(
        f"temperature {temperature:g} is neither 0 (greedy) nor in [{COOLEST:g}, {HOTTEST:g}]: "
        "vLLM draws cooler ones as 0.01, and it and OpenAI's protocol refuse hotter ones"
    )


class RunBlock(BaseConfig):
    """One training run, or a folder of them."""

    path: Address
    """Run folder, folder of runs, or one checkpoint; local, s3:// or gs://."""
    name: str | None = None
    """Name in the rows; default: the folder's name or what its run.toml says."""
    base: Address | None = None
    """Base model, where checkpoints do not say it or say it wrongly."""
    steps: str = "all"
    """`start:stop:stride` (stop included), `0,5,10`, `last` or `all`."""
    tags: dict[str, Scalar] = Field(default_factory=dict)
    """Facts of the run (word, seed, wave) that `{tag}` in an environment argument refers to."""


class ManyBlocks(BaseConfig):
    """A configuration with lists of blocks, where a flag `--env.task story` is said of each block.

    `reading` hands such flags over under the list's name and EVERY.
    """

    @classmethod
    def lists(cls) -> set[str]:
        """Fields that are lists of blocks."""
        return {
            name
            for name, field in cls.model_fields.items()
            if get_origin(field.annotation) is list
            and all(_is_block(kind) for kind in get_args(field.annotation))
        }

    @model_validator(mode="before")
    @classmethod
    def _said_of_every_block(cls, data: Any) -> Any:
        flags = [name for name in data if name.endswith(EVERY)] if isinstance(data, dict) else []
        if not flags:
            return data
        told = {name: value for name, value in data.items() if name not in flags}
        for name in flags:
            field = name.removesuffix(EVERY)
            told[field] = [_with(block, data[name]) for block in told.get(field) or [{}]]
        return told


def _is_block(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseConfig)


def _with(block: Any, said: Mapping[str, Any]) -> Any:
    """A block's table and what is said beside it, which counts where both say something."""
    if not isinstance(block, Mapping):
        return block
    own = {
        name: _with(block.get(name) or {}, value) if isinstance(value, Mapping) else value
        for name, value in said.items()
    }
    return {**block, **own}


class FreeBlock(BaseConfig):
    """A block whose other keys are arguments of what it names."""

    model_config = ConfigDict(extra="allow")

    @property
    def args(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})

    def _spell(self, find: Callable[[], Callable[..., Any]]) -> None:
        """Read texts as what is named takes them; what cannot be found is refused elsewhere."""
        if any(isinstance(value, str) for value in self.args.values()):
            with suppress(EnvironmentRefused, engines.EngineError):
                (self.__pydantic_extra__ or {}).update(spelled(self.args, find()))


class EnvironmentBlock(FreeBlock):
    """An environment; every other key is an argument of its `load_environment`."""

    id: str
    """`hackword`, `market_structure`, or the dotted path of a module of yours."""

    @model_validator(mode="after")
    def _as_its_arguments_are(self) -> "EnvironmentBlock":
        self._spell(lambda: builder(self.id))
        return self


class CasesBlock(BaseConfig):
    """Which cases every checkpoint is asked."""

    count: Annotated[int, Field(ge=1, le=INT32)] = 256
    """Cases per checkpoint."""
    shard: Annotated[int, Field(ge=1, le=INT32)] = 256
    """Cases per partition: the unit that is written or owed."""


class SamplingBlock(BaseConfig):
    """How completions are drawn."""

    n: Annotated[int, Field(ge=1, le=INT32)] = 4
    """Rollouts per case."""
    temperature: Annotated[float, AfterValidator(_taken_alike)] = 1.0
    """0 is greedy; else 0.01 to 2."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Kept probability mass; below 1 rare words vanish."""
    top_k: Annotated[int, Field(ge=0, le=INT32)] = 0
    """Kept tokens; 0 keeps all."""
    max_tokens: Annotated[int, Field(ge=1, le=INT32)] = 256
    """Longest completion, tokens."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Of the sweep; each rollout's own seed is a hash of it, the case and the sample."""

    def record(self) -> Sampling:
        return Sampling(**self.model_dump())


class EngineBlock(FreeBlock):
    """The inference engine; every other key is an option of its `build`."""

    name: str = "hf"
    """`hf`, `vllm`, `http` or `scripted`: one of pipeline/engines."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the weights in the live model."""

    @model_validator(mode="after")
    def _no_key_in_a_file(self) -> "EngineBlock":
        variable = self.args.get("api_key_var", "A")
        if not (isinstance(variable, str) and re.fullmatch("[A-Z_][A-Z0-9_]*", variable)):
            raise ValueError("api_key_var is the name of an environment variable, never a key")
        return self

    @model_validator(mode="after")
    def _as_its_options_are(self) -> "EngineBlock":
        self._spell(lambda: engines.builder(self.name))
        return self

    @property
    def options(self) -> dict[str, Any]:
        """What the engine's `build` is given."""
        return {"dtype": self.dtype, **self.args}

    @property
    def gpus(self) -> int:
        """GPUs that one engine spans."""
        return int(self.options.get("tensor_parallel_size", 1))


class ClusterBlock(BaseConfig):
    """Where it runs. None of this changes a row."""

    address: str | None = None
    """Ray address (`auto` on a cluster); default: RAY_ADDRESS, else a Ray of our own here."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """Inference actors; default: as many as the GPUs hold, else one per two cores."""
    scorers: Annotated[int, Field(ge=1)] = 1
    """Score-and-write actors."""
    engines_per_gpu: Annotated[int, Field(ge=1)] = 1
    """Engines that share a GPU; small models are bound by the host, so 2 or 3 pay."""
    cache: Path | None = None
    """Where each node keeps checkpoints of object stores; default: under ~/.cache."""
    cache_size: Annotated[int, Field(ge=1)] = 100_000_000_000
    """Bytes that they may take there; those used least recently make room."""
    patience: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1800.0
    """Seconds an engine may take for one partition before it counts as hung and is replaced."""


class OrderBlock(BaseConfig):
    """Which checkpoints are evaluated, and in what order. None of this changes a row."""

    strategy: Literal["full", "adaptive"] = "full"
    """`full`: every checkpoint. `adaptive`: those that tell where each curve crosses first, asked
    the first shard of the cases, and all cases where that leaves open which side a rate is on."""
    grid: Annotated[int, Field(ge=1)] = 25
    """Steps between the checkpoints that `adaptive` begins with: a shorter excursion is missed."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Rate that `adaptive` takes for the onset."""
