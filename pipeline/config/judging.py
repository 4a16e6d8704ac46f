"""How a judge is asked, and what is graded again."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_config import BaseConfig

from hackbait.environment import EnvironmentRefused
from hackbait.judge import REPLY_TOKENS, Panel, panel
from hackbait.stage import Stage, stage
from hackbait.triage import triage
from pipeline.checkpoints import LayoutError
from pipeline.checkpoints.single import single
from pipeline.config.blocks import EngineBlock, EnvironmentBlock
from pipeline.config.kinds import INT32, Output, ParquetFile, Place, Printed, as_json
from pipeline.engines import EngineError, check_options
from pipeline.records import Checkpoint, CheckpointError

ID_DIGITS = 16

Models = str | Annotated[list[str], Field(min_length=1)]


class JudgeBlock(BaseConfig):
    """How hard an environment's judge (its `judge_model`) is pressed: no score depends on it.

    And what a judge stage asks of every rollout, and whom: a server, or an engine of the sweep.
    """

    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Calls at once, per score actor; default 32, and 256 for an engine."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Calls begun per second, per score actor; default: as many as `concurrency` lets."""
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    """Seconds for one try."""
    retries: Annotated[int, Field(ge=0)] = 8
    """More tries of a call after 408, 409, 429, 5xx, time-out or a lost connection."""
    calls: Annotated[int, Field(ge=1)] | None = None
    """Most calls that this output may pay for, tries that failed included."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens, read and written, from which on no more calls begin."""
    cache: Path | None = None
    """Folder that keeps every reply, so that none is paid twice; default: under ~/.cache."""
    name: str | None = None
    """Of a judge stage over every rollout: its metric is `judge_NAME`; default: there is none."""
    prompt: Path | None = None
    """File that says what the stage judges; request, reply and labels are added to it."""
    labels: dict[str, float] = Field(default_factory=dict)
    """Labels of the stage, each with what it counts in the metric: {yes = 1, no = 0}."""
    model: Annotated[Models | None, BeforeValidator(as_json)] = None
    """Judge of the stage; an odd number of them have a vote each; of an engine the checkpoint."""
    base_url: str | None = None
    """Where it is asked, as http://127.0.0.1:8000/v1."""
    engine: EngineBlock | None = None
    """In its place: an engine beside those of the sweep, with name and options as `[engine]`."""
    workers: Annotated[int, Field(ge=1)] = 1
    """Judge engines of a sweep; `rejudge` has one."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Of a GPU, that each of them has."""
    api_key_var: str = "JUDGE_API_KEY"
    """Environment variable that holds the key."""
    votes: int = 3
    """Calls a rollout whose majority decides; odd."""
    max_retries: int = 2
    """More tries of a vote whose reply cannot be read."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Of the stage's votes; default 0, and 1 for several of an engine, which at 0 are all equal."""
    max_tokens: Annotated[int, Field(ge=1, le=INT32)] = REPLY_TOKENS
    """Longest reply of the stage, tokens; with the request it has to fit the judge's context."""
    by: str | None = None
    """Cheap binary metric by whose values `sample` and `settled` go; default: the proxy."""
    sample: Annotated[float | dict[str, float], BeforeValidator(as_json)] = 1.0
    """Share of the rollouts that the stage judges, drawn at random: 0.1, or {0 = 0.05, 1 = 0.5}."""
    settled: dict[str, str] = Field(default_factory=dict)
    """Label that a value of `by` settles without a call: {0 = "no"}."""

    @property
    def engines(self) -> int:
        """Judge engines of a sweep; 0 where a server judges, or nobody."""
        return self.workers if self.engine else 0

    def stage(self) -> Stage | None:
        """The stage, if there is one. Raises EnvironmentRefused."""
        told = {"name": self.name, "prompt": self.prompt, "labels": self.labels or None}
        spared = self.by, None if self.sample == 1 else self.sample, self.settled or None
        asked = *told.values(), self.model, self.engine, *spared
        if not any(value is not None for value in asked):
            return None
        for name, value in told.items():
            if value is None:
                raise EnvironmentRefused(f"judge.{name} is missing: a stage has all of them")
        try:
            text = Path(self.prompt or "").read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise EnvironmentRefused(
                f"judge.prompt {str(self.prompt)!r}: {why}; give a text file"
            ) from None
        rule = triage(self.by, self.sample, self.settled, list(self.labels))
        return stage(self.name or "", text, self.labels, self._panel(), rule)

    def checkpoint(self) -> Checkpoint:
        """What the engine is to load. EnvironmentRefused."""
        if isinstance(self.model, list):
            raise EnvironmentRefused(
                f"judge.model names {len(self.model)} models, and judge.engine loads one; give the "
                "folder of one checkpoint"
            )
        if self.model is None:
            raise EnvironmentRefused("judge.model is missing; give the folder of one checkpoint")
        try:
            return single(self.model)
        except (LayoutError, CheckpointError) as error:
            raise EnvironmentRefused(f"judge.model: {error}") from None

    def _panel(self) -> Panel:
        several = self.model if isinstance(self.model, list) else []
        first = several[0] if isinstance(self.model, list) else self.model
        model = self._name(self.engine) if self.engine else first
        usual = 1.0 if self.engine and self.votes > 1 else 0.0
        return replace(
            panel(model, self.votes, self.max_retries, prefix="judge."),
            base_url=self.base_url,
            api_key_var=self.api_key_var,
            temperature=usual if self.temperature is None else self.temperature,
            max_tokens=self.max_tokens,
            others=tuple(several[1:]),
        )

    def _name(self, engine: EngineBlock) -> str:
        """Of an engine's checkpoint by its bytes, wherever it lies, and of what runs it."""
        if self.base_url is not None:
            raise EnvironmentRefused(
                "judge.base_url and judge.engine are both given; a judge is a server or an engine"
            )
        try:
            check_options(engine.name, engine.options)
        except EngineError as error:
            raise EnvironmentRefused(f"judge.engine: {error}") from None
        found = self.checkpoint()
        return f"{Path(found.path).name}@{found.cheap_id[:ID_DIGITS]} {engine.name} {engine.dtype}"


class RejudgeConfig(Printed):
    """Stored rollouts graded again, by another grader, word or judge, without inference."""

    path: Place
    """Output folder of a sweep."""
    env: EnvironmentBlock
    """Its environment, and the arguments of its grade that change; the others stay."""
    output: Output | None = None
    """Where the new scores go; default: beside the old, `-rejudged` behind its name."""
    judge: JudgeBlock = JudgeBlock()
    metric: str | None = None
    """The one that is shown; default the proxy and every one that changed."""
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of a checkpoint's rollouts that may be lost; a rate that lost more is refused."""
    dry_run: bool = False
    """Resolve, check and say what would be graded; ask no judge."""
    save: ParquetFile | None = None
    """Write the table there, a name that ends in .parquet."""
