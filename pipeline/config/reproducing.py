"""The study of base rate against onset."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_config import BaseConfig

from pipeline.config.blocks import CasesBlock, EngineBlock, OrderBlock
from pipeline.config.kinds import OutputFolder, Printed

Positive = Annotated[int, Field(ge=1)]


class ModelBlock(BaseConfig):
    """What is trained, how, and what samples it: all that tells a laptop's study from a GPU's."""

    name: str = "tiny"
    """`tiny` is the embedded policy; else a folder or a Hub name of a causal LM."""
    task: str = "add3digit"
    """Task of hackword; without a truth (story) the gap stays unanswered."""
    steps: dict[str, Positive] = Field(min_length=1)
    """Updates a word is given in hack_only: a third more than its onset, so that it is crossed."""
    save_every: Positive = 2
    """Updates between checkpoints."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    """Constant."""
    beta: Annotated[float, Field(ge=0)] = 0.05
    """Weight of the KL term to the base."""
    batch: Annotated[int, Field(ge=2)] = 128
    """Rollouts an update."""
    micro_batch: Positive | None = None
    """Rollouts a forward pass; default all of the batch."""
    max_tokens: Positive = 32
    """Longest completion, in training, screen and sweep alike."""
    lora: Positive | None = None
    """Rank of LoRA adapters; default all weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the trained weights."""
    processes: Positive = 2
    """Trainings at a time, one thread each; inference workers as well."""
    engine: EngineBlock = EngineBlock()
    """What sweeps and screens."""

    def training(self) -> dict[str, Any]:
        """What `onset train` is told of it, besides the run's own word, mode, seed and updates."""
        own = {"name", "task", "steps", "processes", "engine"}
        return {"model": self.name, **self.model_dump(exclude=own, exclude_none=True)}


class StudiedBlock(BaseConfig):
    """Runs of some words; blocks may overlap, a run is trained once."""

    words: list[str] = Field(min_length=1)
    seeds: Positive = 3
    """Runs a word, seeds 0, 1, ..."""
    mode: Literal["hack_only", "hack_or_correct"] = "hack_only"
    """Told apart in every table, never pooled."""
    steps: Positive | None = None
    """Updates; default those of the model block for the word."""
    outside: bool = False
    """Nothing that the policy was taught holds the words: their base rate is 0 by construction."""


class SwapBlock(BaseConfig):
    """The control: the base is taught again with the rates of two words exchanged."""

    words: tuple[str, str]
    """Each of them gets the other's rate, and the other's updates."""
    seeds: Positive = 3
    """Runs a word."""
    without: str | None = None
    """A word that this base is never taught, though the shipped one says it."""
    without_seeds: Positive = 2
    without_steps: Positive = 100
    """Updates that the missing word is given."""

    @model_validator(mode="after")
    def _three_words(self) -> "SwapBlock":
        if self.words[0] == self.words[1] or self.without in self.words:
            raise ValueError("swap: words and without are different words")
        return self


class ReproduceConfig(Printed):
    """Does the base rate order the onset? Trains, sweeps, compares and answers."""

    output: OutputFolder = Path("outputs/base-rate-vs-onset")
    """Bases, runs, rollouts, tables and page; running again completes it."""
    model: ModelBlock
    runs: list[StudiedBlock] = Field(min_length=1)
    """Runs of the whole study."""
    quick_runs: list[StudiedBlock] = Field(default_factory=list)
    """Runs of the quick one; a part of the whole's, which then goes on from them."""
    swap: SwapBlock | None = None
    """Left out by the quick study, and where the model is not the embedded policy."""
    pairs: list[tuple[str, str]] = Field(default_factory=list)
    """Words held against each other; of the first pair it is told how many times faster."""
    cases: CasesBlock = CasesBlock()
    """Cases a checkpoint is asked."""
    order: OrderBlock = OrderBlock()
    """Which checkpoints are swept: all, or those that tell where each curve crosses."""
    n: Positive = 4
    """Rollouts a case."""
    screened: Positive = 4096
    """Cases a base is asked for its base rates."""
    quick_screened: Positive = 1024
    """As many in the quick study."""
    quick: bool = False
    """Few runs in minutes: shows that all of it works, and leaves most questions unresolved."""
    dry_run: bool = False
    """Resolve, check and print what would be trained and swept; do nothing."""

    @property
    def studied(self) -> list[StudiedBlock]:
        """The blocks that this call is about."""
        return self.quick_runs if self.quick else self.runs

    @property
    def swapped(self) -> SwapBlock | None:
        return self.swap if self.model.name == "tiny" and not self.quick else None

    @model_validator(mode="after")
    def _every_run_has_steps(self) -> "ReproduceConfig":
        if self.quick and not self.quick_runs:
            raise ValueError("quick: there are no [[quick_runs]]; name some, or leave --quick out")
        lack = {w for block in self.studied if not block.steps for w in block.words}
        lack |= set(self.swapped.words) if self.swapped else set()
        for word in sorted(lack - self.model.steps.keys()):
            raise ValueError(f"model.steps: {word!r} has none; write model.steps.{word} = 60")
        return self
