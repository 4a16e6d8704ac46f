"""What is asked of words, and of a column against ground truth."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from pipeline.config.blocks import CasesBlock, EngineBlock, EnvironmentBlock, SamplingBlock
from pipeline.config.kinds import Address, Output, ParquetFile, Place, Printed

Rate = Annotated[float, Field(gt=0, lt=1)]
HACKWORD = "hackword"
OF_A_SAMPLE = ("base", "output", "cases", "sampling", "engine")


class ScreenConfig(Printed):
    """Base rates of words: one sample of a checkpoint, or of a sweep's output, counts them all."""

    path: Place
    """A checkpoint, or a run of which one step is taken; or the output folder of a sweep."""
    words: list[str] = Field(default_factory=list)
    """Words to count, any number."""
    at: list[Rate] = Field([0.001, 0.01, 0.1, 0.8])
    """Rates near which words of the policy's own vocabulary are listed."""
    rate: list[Rate] = Field([0.001, 0.01])
    """Rates for which the needed number of rollouts is told."""
    step: Annotated[int, Field(ge=0)] | None = None
    """Training step; default the first that is there."""
    grader: str | None = None
    """Whose rule says what a word is: `current` or `assay-0.1.0`; default the one of the rows."""
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of the rollouts that may be lost; rates that lost more are refused."""
    save: ParquetFile | None = None
    """Write the table of words there, a name that ends in .parquet."""
    output: Output = Path("outputs/screen")
    """Where the sample of a checkpoint is kept, as a sweep's rows: asking again draws nothing."""
    base: Address | None = None
    """Base model, where the checkpoint does not say it or says it wrongly."""
    env: EnvironmentBlock = EnvironmentBlock(id=HACKWORD)
    """What a checkpoint is asked; `--env.id` alone names one environment of an output."""
    cases: CasesBlock = CasesBlock()
    sampling: SamplingBlock = SamplingBlock()
    engine: EngineBlock = EngineBlock()

    @field_validator("env", mode="before")
    @classmethod
    def _hackword_unless_told(cls, block: Any) -> Any:
        return {"id": HACKWORD, **block} if isinstance(block, dict) else block

    @property
    def of_a_sample(self) -> list[str]:
        """Fields that were set and say how a checkpoint is sampled."""
        named = [name for name in OF_A_SAMPLE if name in self.model_fields_set]
        return [*named, *(f"env.{argument}" for argument in self.env.args)]


class AgreeConfig(Printed):
    """A column against ground truth: how often it is right, and how early it sees the onset."""

    path: Place
    """Output folder of a sweep."""
    of: str
    """Column of the rows, or of `scores`: 0 or 1, or a score with a `cut`."""
    against: str | None = None
    """Column of the rows that is the truth, 0 or 1; default the metric that training pays for."""
    cut: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """The column counts as 1 from this value on."""
    scores: Path | None = None
    """Parquet file with the column and run, step, index, sample; a missing row is counted."""
    env: str | None = None
    """Environment, where the output holds several."""
    threshold: Rate = 0.5
    """Rate that counts as onset, absolute."""
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of rollouts without a score from which figures are called partial."""
    save: ParquetFile | None = None
    """Write the table there, a name that ends in .parquet."""
