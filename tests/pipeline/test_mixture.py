"""Another sweep on the same output is refused by the fields that it changes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from pipeline import store
from pipeline.checkpoints import scripted
from pipeline.config import EngineBlock, SweepConfig
from pipeline.mixture import differences, other_options, refuse_mixture, refuse_other_sweep
from pipeline.plan import Plan, plan
from pipeline.records import PlanError


def runs(root: Path) -> None:
    for step in (0, 2, 4):
        scripted.write(root / f"ocean/checkpoint-{step}", {"ocean": step / 100}, 0.5, 100)


def config(root: Path, **changes: object) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": root / "out",
            "runs": [{"path": str(root / "runs")}],
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": 10, "shard": 4},
            "engine": {"name": "scripted"},
            **changes,
        }
    )


def keys(wanted: Plan) -> set[str]:
    return {p.key for p in wanted.partitions}


def test_differences_name_nested_fields() -> None:
    old = {"sampling": {"n": 4, "seed": 0}, "env": "x"}
    new = {"sampling": {"n": 8, "seed": 0}, "env": "x", "dtype": "y"}
    assert differences(old, new) == ["dtype: None -> 'y'", "sampling.n: 4 -> 8"]


def footers(wanted: Plan) -> dict[Path, dict[str, Any]]:
    """What `store.foreign` finds of a finished sweep that another plan does not name."""
    return {Path(f"{p.key}.parquet"): json.loads(p.identity) for p in wanted.partitions}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sampling": {"temperature": 0.5}}, r"\): sampling\.temperature: 1\.0 -> 0\.5; go back"),
        ({"env": [{"id": "hackword", "hack_word": "copper"}]}, "env.hack_word: 'ocean' -> 'copp"),
        ({"env": [{"id": "hackword", "hack_word": "ocean", "seed": 9}]}, "env.seed: 0 -> 9"),
        ({"engine": {"name": "http", "base_url": "x", "model": "y"}}, "engine.name: 'scripted' -"),
        ({"engine": {"name": "scripted", "dtype": "float16"}}, "engine.dtype: 'float32' -> 'floa"),
        (
            {"cases": {"count": 4, "shard": 4}},
            r"\): cases.count or cases.shard: a partition of cases \[4, 8\) is there, and 4 in "
            "shards of 4 have none such; go back to what it was, or use another output$",
        ),
        ({"cases": {"count": 10, "shard": 10}}, r"cases \[0, 4\) is there, and 10 in shards of 10"),
        (
            {"cases": {"count": 4, "shard": 4}, "sampling": {"n": 8}},
            r"\): sampling.n: 4 -> 8; go back",
        ),
    ],
    ids=str,
)
def test_an_output_of_another_sweep_is_refused_by_the_names_of_the_configuration(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    runs(tmp_path / "runs")
    wanted = plan(config(tmp_path, **change))
    present = {
        path: identity
        for path, identity in footers(plan(config(tmp_path))).items()
        if path.stem not in keys(wanted)
    }
    with pytest.raises(PlanError, match=said):
        refuse_mixture(wanted, present)


def test_an_output_that_holds_another_run_is_no_mixture(tmp_path: Path) -> None:
    runs(tmp_path / "runs")
    wanted = plan(config(tmp_path))
    others = {p: {**i, "run": "another"} for p, i in footers(wanted).items()}
    refuse_mixture(wanted, others)


def test_other_runs_that_were_drawn_otherwise_are_refused(tmp_path: Path) -> None:
    runs(tmp_path / "runs")
    wanted = plan(config(tmp_path, sampling={"temperature": 0.5}))
    others = {p: {**i, "run": "another"} for p, i in footers(plan(config(tmp_path))).items()}
    said = r"\(run 'another', .*\): sampling\.temperature: 1\.0 -> 0\.5; go back"
    with pytest.raises(PlanError, match=said):
        refuse_mixture(wanted, others)


def test_other_bytes_of_a_checkpoint_are_refused_as_such(tmp_path: Path) -> None:
    runs(tmp_path / "runs")
    before = footers(plan(config(tmp_path)))
    scripted.write(tmp_path / "runs/ocean/checkpoint-4", {"ocean": 0.99}, 0.5, 100)
    wanted = plan(config(tmp_path))
    present = {p: i for p, i in before.items() if p.stem not in keys(wanted)}
    with pytest.raises(PlanError, match=r"step 4, .* bytes of the checkpoint or its base: '"):
        refuse_mixture(wanted, present)


@pytest.mark.parametrize(
    ("name", "before", "now", "said"),
    [
        ("vllm", {"merge": True}, {}, ["engine.merge: True -> False"]),
        ("vllm", {}, {"merge": "true"}, ["engine.merge: False -> True"]),
        ("vllm", {"merge": False, "kv_cache": 2**28}, {"max_loras": 2}, []),
        ("http", {"mode": "chat"}, {"mode": "completions"}, ["engine.mode: 'chat' -> 'compl.*'"]),
        ("scripted", {"characters": "80"}, {"characters": 80}, []),
        (
            "hf",
            {"max_context": 64},
            {"max_context": 128},
            [r"engine.max_context: 64 -> 128 \(or --retry prompt_too_long, .*\)"],
        ),
    ],
)
def test_options_that_change_rows_are_compared_by_what_they_are_set_to_or_mean_when_not(
    name: str, before: dict[str, Any], now: dict[str, Any], said: list[str]
) -> None:
    found = other_options(EngineBlock(name=name, **now), {"name": name, **before}, [])
    assert len(found) == len(said)
    assert all(re.fullmatch(*pair) for pair in zip(said, found, strict=True))


def test_a_limit_may_be_raised_where_what_it_left_out_is_asked_again() -> None:
    before = {"name": "vllm", "max_model_len": 64, "merge": True}
    longer = EngineBlock.model_validate({"name": "vllm", "max_model_len": 128, "merge": True})
    assert other_options(longer, before, ["prompt_too_long"]) == []
    beside = EngineBlock.model_validate({"name": "vllm", "max_model_len": 128})
    assert other_options(beside, before, ["prompt_too_long"]) == ["engine.merge: True -> False"]


def test_rows_are_never_mixed_with_those_of_other_engine_options(
    small: SweepConfig, sweep_here: Callable[..., object]
) -> None:
    engine = EngineBlock.model_validate({"name": "scripted", "characters": 20})
    shorter = small.model_copy(update={"engine": engine})
    with store.writing(small.output, tomli_w.dumps(small.of_the_rows())):
        refuse_other_sweep(shorter, plan(shorter))  # nothing is there yet
        sweep_here(small, plan(small).works[:1])
    with pytest.raises(
        PlanError, match=r"\(.*config.toml\): engine.characters: None -> 20; go back"
    ):
        refuse_other_sweep(shorter, plan(shorter))
    refuse_other_sweep(small, plan(small))
    for unreadable in (b"\xff", b"[engine"):
        (Path(str(small.output)) / "config.toml").write_bytes(unreadable)
        refuse_other_sweep(small, plan(small))
