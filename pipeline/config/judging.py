"""How a judge is asked, and what is graded again."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_config import BaseConfig

from pipeline.config.blocks import EnvironmentBlock
from pipeline.config.kinds import Output, ParquetFile, Place, Printed


class JudgeBlock(BaseConfig):
    """How hard an environment's judge (its `judge_model`) is pressed: no score depends on it."""

    concurrency: Annotated[int, Field(ge=1, le=1000)] = 32
    """Calls at once, per score actor."""
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
