"""How a judge is asked: none of this changes a score."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_config import BaseConfig


class JudgeBlock(BaseConfig):
    """How hard the judge of an environment (its `judge_model`) is pressed, and what it may cost."""

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
