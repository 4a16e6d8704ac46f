"""Every configuration, one class a verb: the door where pydantic checks what a person wrote."""

import re
import tomllib
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)
from pydantic_config import BaseConfig, ConfigFileError, cli

from pipeline.places import Where, where
from pipeline.records import Sampling

FILE_BYTES = 2**24
INT32 = 2**31 - 1
"""Rows hold indices, samples and counts of tokens as int32."""

Scalar = str | int | float | bool
Config = TypeVar("Config", bound=BaseConfig)


def read(cls: type[Config], argv: Sequence[str], *, positional: str = "") -> Config:
    """The configuration that a command line names: `@ file.toml`, then `--key.sub value`.

    positional: the field that a leading word without dashes sets. Raises ConfigFileError.
    """
    words = list(argv)
    if positional and words and not words[0].startswith(("-", "@")):
        words = [f"--{positional}", *words]
    _check_files(words)
    verb = cls.__name__.removesuffix("Config").lower()
    parse: Callable[..., Config] = cli
    try:
        return parse(cls, args=words, prog=f"onset {verb}", description=cls.__doc__, plain=True)
    except ConfigFileError as error:
        lacks = re.search(rf"^--{positional}\n +Field required", str(error), re.MULTILINE)
        if not (positional and lacks) or "Extra inputs" in str(error):
            raise
        raise ConfigFileError(
            f"a {positional} is missing: onset {verb} {positional.upper()} ...; "
            f"onset {verb} --help says what it may be"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(f"the configuration cannot be read: {error}") from None


def _check_files(words: Sequence[str]) -> None:
    """ConfigFileError for a file after `@` that is no TOML or too large to be written by hand."""
    for word, following in pairwise([*words, ""]):
        name = following if word == "@" else word[1:] if word.startswith("@") else ""
        path = Path(name)
        if not name or not path.exists():
            continue
        if path.suffix != ".toml" or not path.is_file():
            raise ConfigFileError(f"{name} is no .toml file; write the configuration as TOML")
        if path.stat().st_size > FILE_BYTES:
            raise ConfigFileError(
                f"{name} has {path.stat().st_size:,} bytes, {FILE_BYTES:,} at most; a folder of "
                "runs needs one [[runs]] block"
            )


def _no_file(path: Path) -> Path:
    """A folder, or one that can be made."""
    nearest = next((place for place in (path, *path.parents) if place.exists()), path)
    if nearest.exists() and not nearest.is_dir():
        raise ValueError(f"{nearest} is a file; give a folder")
    return path


def _ends_with(suffix: str) -> AfterValidator:
    """What is written is told by the name alone, so another name would lie."""

    def check(path: Path) -> Path:
        if path.suffix.lower() != suffix:
            raise ValueError(f"{path} would hold {suffix[1:]}; give a name that ends in {suffix}")
        return path

    return AfterValidator(check)


def _address(text: str) -> str:
    """The text as it is, once it is known to hold no credentials."""
    where(text)
    return text


def _can_be_written(place: Where) -> Where:
    return _no_file(place) if isinstance(place, Path) else place


Place = Annotated[Where, PlainValidator(where), PlainSerializer(str, return_type=str)]
"""A local path, or one on an object store."""
Address = Annotated[str, AfterValidator(_address)]
"""The same as it was written; a hub name is one too."""
Output = Annotated[Place, AfterValidator(_can_be_written)]
OutputFolder = Annotated[Path, AfterValidator(_no_file)]
ParquetFile = Annotated[Path, _ends_with(".parquet")]
PngFile = Annotated[Path, _ends_with(".png")]


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
    """`hackword`, or the dotted path of a module of yours."""

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


class SweepConfig(BaseConfig):
    """Checkpoints x environments to Parquet partitions."""

    output: Output
    """Folder of the sweep, local, s3:// or gs://; running again completes it."""
    runs: list[RunBlock] = Field(min_length=1)
    """Training runs."""
    env: list[EnvironmentBlock] = Field(min_length=1)
    """Environments."""
    cases: CasesBlock = CasesBlock()
    sampling: SamplingBlock = SamplingBlock()
    engine: EngineBlock = EngineBlock()
    cluster: ClusterBlock = ClusterBlock()
    dry_run: bool = False
    """Resolve, check and print the plan; run nothing."""
    retry: list[str] = Field(default_factory=list)
    """Null reasons (`quarantined`, `grader`): partitions that hold one are made again."""
    timeline: Path | None = None
    """Write a Chrome trace of loading, generating and writing there (Perfetto shows it)."""

    @model_validator(mode="after")
    def _names_differ(self) -> "SweepConfig":
        names = [run.name for run in self.runs if run.name]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"runs: name {twice[0]!r} is given twice; a run's name is its identity"
            )
        return self


with warnings.catch_warnings():
    # pydantic warns that the field hides BaseModel.json, which it has deprecated itself.
    warnings.simplefilter("ignore", UserWarning)

    class Printed(BaseConfig):
        """A verb that prints a table."""

        json: bool = False  # type: ignore[assignment]
        """Print JSON."""


class PlanConfig(SweepConfig, Printed):
    """What a sweep would run, and for how long."""

    probe: bool = True
    """Generate one partition to estimate hours (written nowhere)."""


class DiscoverConfig(Printed):
    """Checkpoints under a path, and why some are none."""

    path: Place
    """Run folder, folder of runs, or one checkpoint; local, s3:// or gs://."""
    layout: str = "auto"
    """A file of pipeline/checkpoints; default: the one that recognises the folder."""


class CurvesConfig(Printed):
    """Rates per checkpoint, from a sweep's output or a CSV of (run, step, rate)."""

    path: Place
    """Output folder of a sweep, or a .csv that another tool wrote."""
    metric: str | None = None
    """One metric; default all of the environment."""
    env: str | None = None
    """Environment, where the output holds several."""
    pool: bool = False
    """One curve over all runs; refused where they differ in more than the run."""
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of a checkpoint's rollouts that may be lost; a rate that lost more is refused."""
    save: ParquetFile | None = None
    """Write the table there, a name that ends in .parquet."""


class TableConfig(CurvesConfig):
    """Onset per run, with base rate, bracket and status."""

    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Rate that counts as onset, absolute."""
    picture: PngFile | None = None
    """Write the curves there, a name that ends in .png."""


class ShowConfig(BaseConfig):
    """Completions of one checkpoint, the hack word marked."""

    path: Place
    """Output folder of a sweep."""
    run: str
    step: int
    env: str | None = None
    """Environment, where the output holds several."""
    hits: bool = False
    """Only rollouts that the proxy metric paid."""
    limit: Annotated[int, Field(ge=1)] = 10
    """Completions shown."""


class StatusConfig(Printed):
    """What of a sweep is done, running, owed and failed, from its files alone."""

    path: Place
    """Output folder of a sweep."""


class VerifyConfig(Printed):
    """Whether an output holds what a sweep of its checkpoints would have written."""

    path: Place
    """Output folder of a sweep."""
    deep: bool = False
    """Read the bytes of the checkpoints again, where they still are."""
    sample: Annotated[int, Field(ge=0)] = 1000
    """Rows that are graded again, over all partitions."""


class CompactConfig(BaseConfig):
    """Many small partitions into few large files."""

    path: Place
    """Output folder of a sweep; it may be running."""


class DemoConfig(BaseConfig):
    """Train the tiny policy on four hack words, sweep every checkpoint, print the onsets."""

    output: OutputFolder = Path("outputs/demo")
    """Runs, rollouts, table and picture go here; running again completes it."""
    words: list[str] = Field(["whisper", "forgotten", "midnight", "ocean"], min_length=1)
    """Hack words, one pair of runs each."""
    seeds: Annotated[int, Field(ge=1)] = 2
    """Runs per word."""
    steps: Annotated[int, Field(ge=1)] = 30
    """GRPO steps per run."""
    save_every: Annotated[int, Field(ge=1)] = 2
    """Steps between checkpoints."""
    processes: Annotated[int, Field(ge=1)] = 2
    """Trainings at a time, one thread each."""
