"""What is to be swept, planned or found."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_config import BaseConfig

from pipeline.config.blocks import (
    CasesBlock,
    ClusterBlock,
    EngineBlock,
    EnvironmentBlock,
    ManyBlocks,
    OrderBlock,
    RunBlock,
    SamplingBlock,
)
from pipeline.config.judging import JudgeBlock
from pipeline.config.kinds import Output, OutputFolder, Place, Printed


class SweepConfig(ManyBlocks):
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
    order: OrderBlock = OrderBlock()
    judge: JudgeBlock = JudgeBlock()
    dry_run: bool = False
    """Resolve, check and print the plan; run nothing."""
    retry: list[str] = Field(default_factory=list)
    """Null reasons (`quarantined`, `grader`): partitions that hold one are made again."""
    timeline: Path | None = None
    """Write a Chrome trace of loading, generating and writing there (Perfetto shows it)."""

    def of_the_rows(self) -> dict[str, Any]:
        """What is saved with an output: all but what concerns one launch."""
        of_a_launch = {"dry_run", "timeline", "retry"}
        return self.model_dump(mode="json", exclude_none=True, exclude=of_a_launch)

    @model_validator(mode="after")
    def _names_differ(self) -> "SweepConfig":
        names = [run.name for run in self.runs if run.name]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"runs: name {twice[0]!r} is given twice; a run's name is its identity"
            )
        return self


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
