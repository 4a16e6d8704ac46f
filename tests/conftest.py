"""Laws are not races: no example has a deadline, however busy the machine. Sweeps without Ray."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pipeline import standing, store
from pipeline.actors import Inference, Scorer, make_cases
from pipeline.checkpoints import scripted
from pipeline.config import SweepConfig
from pipeline.plan import plan
from pipeline.records import Work, Written

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

SweepHere = Callable[..., list[Written]]


def sweep_here(config: SweepConfig, works: Sequence[Work] | None = None) -> list[Written]:
    """What a sweep's actors do, here and now: every work, or these, generated and written."""
    inference = Inference(config.engine)
    scorer = Scorer(config.output, config.engine, {"versions": {}})
    written = []
    for work in plan(config).works if works is None else works:
        cases = make_cases(work.environment, work.shard)
        rollouts, records = inference.generate([work], None, cases)
        written += scorer.write(work, cases, records, rollouts)
    return written


@pytest.fixture(name="sweep_here", scope="session")
def _sweep_here() -> SweepHere:
    return sweep_here


@pytest.fixture
def small(tmp_path: Path) -> SweepConfig:
    """Two runs of two checkpoints, six cases in shards of four, two samples: 8 partitions."""
    return small_sweep(tmp_path)


@pytest.fixture(scope="session")
def small_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a whole sweep of `small` leaves, to be copied."""
    config = small_sweep(tmp_path_factory.mktemp("small"))
    with store.writing(config.output, ""), standing.told(config.output, plan(config)):
        sweep_here(config)
    assert isinstance(config.output, Path)
    return config.output


def small_sweep(tmp_path: Path) -> SweepConfig:
    named = {"first": "a", "second": "b\n../é"}
    for number, run in enumerate(named):
        for step in (0, 10):
            rate = 0.3 + step / 20 + number / 10
            scripted.write(tmp_path / "runs" / run / f"checkpoint-{step}", {"ocean": rate}, 0.5, 60)
    return SweepConfig.model_validate(
        {
            "output": tmp_path / "out",
            "runs": [{"path": str(tmp_path / "runs" / p), "name": n} for p, n in named.items()],
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": 6, "shard": 4},
            "sampling": {"n": 2},
            "engine": {"name": "scripted"},
        }
    )
