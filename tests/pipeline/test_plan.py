"""Runs found, partitions named, generations shared, mixtures refused."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hackbait
from pipeline.checkpoints import scripted
from pipeline.config import RunBlock, SweepConfig
from pipeline.plan import Plan, cut, owed, plan
from pipeline.records import PlanError
from pipeline.runs import find_runs

POLICY = Path(hackbait.__file__).parent / "policy"


def runs(root: Path, *names: str, steps: tuple[int, ...] = (0, 2, 4)) -> Path:
    for name in names:
        for step in steps:
            rate = 0.0 if step == 0 else (step + len(name)) / 100
            scripted.write(root / name / f"checkpoint-{step}", {"ocean": rate}, 0.5, 100)
        (root / name / "run.toml").write_text(f'name = "{name}"\n[tags]\nword = "{name}"\n')
    return root


def config(root: Path, **changes: object) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "output": root / "out",
            "runs": [{"path": str(root / "runs")}],
            "env": [{"id": "hackword", "hack_word": "{word}"}],
            "cases": {"count": 10, "shard": 4},
            "engine": {"name": "scripted"},
            **changes,
        }
    )


def keys(wanted: Plan) -> set[str]:
    return {p.key for p in wanted.partitions}


@given(st.integers(1, 500), st.integers(1, 100))
def test_shards_cover_the_cases_once(count: int, size: int) -> None:
    shards = cut(count, size)
    assert [i for s in shards for i in range(s.start, s.stop)] == list(range(count))
    assert all(s.stop - s.start == size for s in shards[:-1])


def test_runs_take_their_words_from_their_tags(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean", "midnight")
    wanted = plan(config(tmp_path))
    assert sorted(r.name for r in wanted.runs) == ["midnight", "ocean"]
    words = {(p.run, dict(p.environment.args)["hack_word"]) for p in wanted.partitions}
    assert words == {("midnight", "midnight"), ("ocean", "ocean")}
    assert len(wanted.partitions) == 2 * 3 * 3


def test_an_equal_base_is_generated_once_and_written_for_each_run(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean", "midnight")
    wanted = plan(config(tmp_path))
    shared = [work for work in wanted.works if work.checkpoint.step == 0]
    assert len(shared) == 3
    assert all(len(work.partitions) == 2 for work in shared)
    assert wanted.rollouts() == (3 + 2 * 2 * 3) * 0 + (10 + 2 * 2 * 10) * 4


def test_six_words_over_one_story_sweep_cost_one_generation(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "a")
    words = ["ocean", "midnight", "forgotten", "copper", "tuesday", "whisper"]
    blocks = [{"id": "hackword", "hack_word": word, "task": "story"} for word in words]
    wanted = plan(config(tmp_path, env=blocks))
    assert len(wanted.partitions) == 6 * 3 * 3
    assert wanted.rollouts() == 3 * 10 * 4


def test_keys_do_not_depend_on_the_order_of_runs_or_on_other_runs(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean", "midnight")
    both = keys(plan(config(tmp_path)))
    one = [{"path": str(tmp_path / "runs" / "ocean")}]
    assert keys(plan(config(tmp_path, runs=one))) < both


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": {"temperature": 0.5}},
        {"sampling": {"seed": 1}},
        {"cases": {"count": 10, "shard": 5}},
        {"env": [{"id": "hackword", "hack_word": "{word}", "seed": 999}]},
        {"env": [{"id": "hackword", "hack_word": "{word}", "mode": "hack_or_correct"}]},
        {"env": [{"id": "hackword", "hack_word": "{word}", "grader": "assay-0.1.0"}]},
        {"engine": {"name": "scripted", "dtype": "bfloat16"}},
    ],
    ids=str,
)
def test_every_part_of_the_identity_changes_every_key(
    tmp_path: Path, change: dict[str, object]
) -> None:
    runs(tmp_path / "runs", "ocean")
    assert not keys(plan(config(tmp_path))) & keys(plan(config(tmp_path, **change)))


def test_the_number_of_training_cases_is_in_no_identity(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean")
    block = {"id": "hackword", "hack_word": "{word}", "n_train": 7}
    assert keys(plan(config(tmp_path))) == keys(plan(config(tmp_path, env=[block])))


def test_other_bytes_of_a_checkpoint_are_another_partition(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean")
    before = plan(config(tmp_path))
    scripted.write(tmp_path / "runs/ocean/checkpoint-4", {"ocean": 0.99}, 0.5, 100)
    after = plan(config(tmp_path))
    changed = {p.step for p in after.partitions if p.key not in keys(before)}
    assert changed == {4}


def test_owed_leaves_out_what_is_done_and_keeps_the_rest_of_a_shared_work(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean", "midnight")
    wanted = plan(config(tmp_path))
    assert owed(wanted.works, keys(wanted)) == []
    done = {p.key for p in wanted.partitions if p.run == "ocean"}
    left = owed(wanted.works, done)
    assert {p.run for work in left for p in work.partitions} == {"midnight"}
    assert {p.key for work in left for p in work.partitions} == keys(wanted) - done


def test_a_missing_tag_is_named_with_the_tags_that_exist(tmp_path: Path) -> None:
    runs(tmp_path / "runs", "ocean")
    block = {"id": "hackword", "hack_word": "{wrod}"}
    with pytest.raises(PlanError, match=r"'wrod'.*\['word'\]"):
        plan(config(tmp_path, env=[block]))


def test_a_run_without_a_whole_checkpoint_is_listed_and_the_others_are_planned(
    tmp_path: Path,
) -> None:
    runs(tmp_path / "runs", "ocean", "midnight")
    for script in (tmp_path / "runs/midnight").glob("checkpoint-*/script.json"):
        script.write_text("{")
    wanted = plan(config(tmp_path))
    assert [run.name for run in wanted.runs] == ["ocean"]
    assert {found.run for found in wanted.skipped} == {"midnight"}
    with pytest.raises(PlanError, match="no usable checkpoint"):
        plan(config(tmp_path, runs=[{"path": str(tmp_path / "runs/midnight")}]))


def test_a_tokenizer_without_chat_template_is_told_before_anything_starts(tmp_path: Path) -> None:
    shutil.copytree(POLICY, tmp_path / "runs/mute")
    (tmp_path / "runs/mute/chat_template.jinja").unlink()
    with pytest.raises(PlanError, match="chat template; give the `base`"):
        plan(config(tmp_path, env=[{"id": "hackword"}]))
    block = {"path": str(tmp_path / "runs"), "base": str(POLICY)}
    assert plan(config(tmp_path, env=[{"id": "hackword"}], runs=[block])).works


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    runs(tmp_path / "a", "ocean")
    runs(tmp_path / "b", "ocean")
    paths = [{"path": str(tmp_path / "a")}, {"path": str(tmp_path / "b")}]
    with pytest.raises(PlanError, match="two runs are called 'ocean'"):
        plan(config(tmp_path, runs=paths))


def test_a_base_is_step_0_where_that_is_asked_for_and_no_checkpoint_is(tmp_path: Path) -> None:
    policy = Path(hackbait.__file__).parent / "policy"
    shutil.copytree(policy, tmp_path / "run" / "checkpoint-10")
    (tmp_path / "run" / "checkpoint-10" / "trainer_state.json").write_text('{"global_step": 10}')

    def steps(pattern: str) -> list[tuple[int, str]]:
        block = RunBlock(path=str(tmp_path / "run"), base=str(policy), steps=pattern)
        (run,), _ = find_runs([block])
        return [(c.step, c.path) for c in run.checkpoints]

    ten = (10, str(tmp_path / "run" / "checkpoint-10"))
    assert steps("0:10:10") == [(0, str(policy)), ten]
    assert steps("0,10") == [(0, str(policy)), ten]
    assert steps("all") == steps("10") == steps("5:20") == [ten]
