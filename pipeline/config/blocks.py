"""The blocks of a sweep's TOML file."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_config import BaseConfig

from pipeline.config.kinds import INT32, Address, Scalar
from pipeline.records import Sampling


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


class EnvironmentBlock(BaseConfig):
    """An environment; every other key is an argument of its `load_environment`."""

    model_config = ConfigDict(extra="allow")

    id: str
    """`hackword`, `market_structure`, or the dotted path of a module of yours."""

    @property
    def args(self) -> dict[str, Scalar]:
        return dict(self.__pydantic_extra__ or {})


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
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """0 is greedy."""
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


class EngineBlock(BaseConfig):
    """The inference engine; every other key is an option of its `build`."""

    model_config = ConfigDict(extra="allow")

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

    @property
    def args(self) -> dict[str, Any]:
        """Options besides dtype; a flag's text becomes the number or truth value it spells."""
        extra = self.__pydantic_extra__ or {}
        return {name: _spelled(value) for name, value in extra.items()}

    @property
    def options(self) -> dict[str, Any]:
        """What the engine's `build` is given."""
        return {"dtype": self.dtype, **self.args}

    @property
    def gpus(self) -> int:
        """GPUs that one engine spans."""
        return int(self.options.get("tensor_parallel_size", 1))


def _spelled(value: Any) -> Any:
    """`16`, `0.5` and `true` of a command line as what a TOML file would have said."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value.lower()}")["value"]
    except (ValueError, RecursionError):
        return value


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
