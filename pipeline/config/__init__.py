"""Every configuration, one class a verb: the door where pydantic checks what a person wrote."""

from pipeline.config.blocks import (
    CasesBlock,
    ClusterBlock,
    EngineBlock,
    EnvironmentBlock,
    OrderBlock,
    RunBlock,
    SamplingBlock,
)
from pipeline.config.comparing import CompareConfig, PowerConfig
from pipeline.config.judging import JudgeBlock, RejudgeConfig
from pipeline.config.outputs import (
    CompactConfig,
    CurvesConfig,
    ShowConfig,
    StatusConfig,
    TableConfig,
    VerifyConfig,
)
from pipeline.config.reading import read
from pipeline.config.reporting import ReportConfig
from pipeline.config.reproducing import ModelBlock, ReproduceConfig, StudiedBlock, SwapBlock
from pipeline.config.screening import AgreeConfig, ScreenConfig
from pipeline.config.sweeping import DemoConfig, DiscoverConfig, PlanConfig, SweepConfig
from pipeline.config.training import TrainConfig

__all__ = [
    "AgreeConfig",
    "CasesBlock",
    "ClusterBlock",
    "CompactConfig",
    "CompareConfig",
    "CurvesConfig",
    "DemoConfig",
    "DiscoverConfig",
    "EngineBlock",
    "EnvironmentBlock",
    "JudgeBlock",
    "ModelBlock",
    "OrderBlock",
    "PlanConfig",
    "PowerConfig",
    "RejudgeConfig",
    "ReportConfig",
    "ReproduceConfig",
    "RunBlock",
    "SamplingBlock",
    "ScreenConfig",
    "ShowConfig",
    "StatusConfig",
    "StudiedBlock",
    "SwapBlock",
    "SweepConfig",
    "TableConfig",
    "TrainConfig",
    "VerifyConfig",
    "read",
]
