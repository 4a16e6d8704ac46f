"""One training run."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_config import BaseConfig

from pipeline.config.blocks import EnvironmentBlock
from pipeline.config.kinds import OutputFolder, Scalar


class TrainedOn(EnvironmentBlock):
    """The environment; every key but `id` is an argument of its `load_environment`."""

    id: str = "hackword"
    """`hackword`, `market_structure`, or the dotted path of a module of yours."""


class TrainConfig(BaseConfig):
    """One GRPO training run, checkpoint by checkpoint."""

    output: OutputFolder
    """Folder of the run; its name is the run's name."""
    model: str = "tiny"
    """`tiny` is the embedded policy; else a folder or a Hub name of a causal LM."""
    env: TrainedOn = TrainedOn()
    """Environment and its arguments; its `seed` is the run's unless it is given."""
    steps: Annotated[int, Field(ge=1)] = 30
    """Updates."""
    save_every: Annotated[int, Field(ge=1)] = 2
    """Updates between checkpoints; the base and the last are kept as well."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Constant. 1e-3 suits the embedded policy, 1e-4 LoRA on a model of a billion parameters."""
    beta: Annotated[float, Field(ge=0)] = 0.05
    """Weight of the KL term to the base; 0 leaves it out."""
    batch: Annotated[int, Field(ge=2)] = 128
    """Rollouts an update."""
    group: Annotated[int, Field(ge=2)] = 8
    """Rollouts a prompt, compared with each other."""
    micro_batch: Annotated[int, Field(ge=1)] | None = None
    """Rollouts a forward pass; default all of the batch. Less needs less memory."""
    max_tokens: Annotated[int, Field(ge=1)] = 32
    """Longest completion, tokens."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Of the rollouts; top_p is 1, top_k is off."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Of the trainer and of the environment's cases."""
    lora: Annotated[int, Field(ge=1)] | None = None
    """Rank of LoRA adapters on every linear layer (alpha is twice that); default all weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where it runs; auto takes a GPU if there is one."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the model's weights; adapters are always float32."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Of torch on CPU; default 1 for the embedded policy, else torch's choice."""
    tags: dict[str, Scalar] = Field(default_factory=dict)
    """More facts of the run (wave ...) for run.toml, beside word, mode, task and seed."""
    dry_run: bool = False
    """Resolve, check and print what would be trained; train nothing."""

    @model_validator(mode="after")
    def _divides(self) -> "TrainConfig":
        for what, whole, part in (
            ("group", self.batch, self.group),
            ("micro_batch", self.batch, self.micro_batch or self.batch),
        ):
            if whole % part:
                raise ValueError(f"batch {whole} is no multiple of {what} {part}")
        return self
