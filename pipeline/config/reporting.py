"""What the page is made of."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_config import BaseConfig

from pipeline.config.kinds import OutputFolder, Place


class ReportConfig(BaseConfig):
    """One HTML file with all that a sweep measured, and its charts as SVG and PNG."""

    path: Place
    """Output folder of a sweep, or a .csv that another tool wrote."""
    to: OutputFolder | None = None
    """Folder to write into; default `report` in a local output, `NAME-report` here for others."""
    metric: str | None = None
    """Metric whose onset is told; default the environment's proxy."""
    env: str | None = None
    """Environment, where the output holds several."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Rate that counts as onset, absolute."""
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of a checkpoint's rollouts that may be lost; a rate that lost more is refused."""

    @property
    def folder(self) -> Path:
        """Where the page goes."""
        if self.to:
            return self.to
        if isinstance(self.path, Path) and self.path.is_dir():
            return self.path / "report"
        return Path(f"{Path(self.path.name).stem}-report")
