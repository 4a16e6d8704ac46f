"""What is compared, and what a comparison is planned for."""

from typing import Annotated

from pydantic import Field

from pipeline.config.kinds import ParquetFile, Place, Printed


class CompareConfig(Printed):
    """Words against each other, base rate against onset, and both against what was published."""

    path: Annotated[list[Place], Field(min_length=1)]
    """Output folders of sweeps, or .csv files of another tool, compared as one."""
    metric: str | None = None
    """Default: what the environment pays for."""
    env: str | None = None
    """Environment, where an output holds several."""
    only: dict[str, str] = Field(default_factory=dict)
    """Runs with this value of a field or tag: `--only.mode hack_only`."""
    by: str = "hack_word"
    """Field or tag by which runs are grouped; the tag `word` does for hack_word."""
    wave: str = "wave"
    """Tag of runs that were trained together."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Rate that counts as onset, absolute."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Of all pairs together, and of the association."""
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of a checkpoint's rollouts that may be lost; a rate that lost more is refused."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the drawn relabellings, where there are too many to count."""
    save: ParquetFile | None = None
    """Write the pairs there, a name that ends in .parquet."""


class PowerConfig(Printed):
    """What a design can resolve, before any run is trained."""

    words: Annotated[int, Field(ge=2, le=1000)] = 3
    """Words that are all compared."""
    runs: Annotated[list[Annotated[int, Field(ge=1, le=100)]], Field(min_length=1)] = Field(
        default_factory=lambda: [3, 4, 5, 6, 8, 10, 12, 16, 20]
    )
    """Runs a word."""
    shift: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    """Difference of two words' onsets, in standard deviations between seeds."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    prompts: Annotated[int, Field(ge=1)] = 256
    """Distinct prompts a checkpoint."""
    samples: Annotated[int, Field(ge=1)] = 4
    """Rollouts a prompt."""
    icc: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Likeness of a prompt's rollouts; a sweep tells its own by deff = 1 + (samples - 1) icc."""
    slope: Annotated[float, Field(ge=0.002, le=10)] = 0.15
    """Rise of the rate a step where it is one half."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the simulation."""
