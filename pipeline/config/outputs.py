"""What is read from a sweep's output."""

from typing import Annotated

from pydantic import Field
from pydantic_config import BaseConfig

from pipeline.config.kinds import ParquetFile, Place, PngFile, Printed


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
    plot: bool = False
    """Draw the curves in the terminal."""


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
