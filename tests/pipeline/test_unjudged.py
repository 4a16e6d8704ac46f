"""Rollouts kept for a judge that did not answer: as they were, or not at all."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hackbait.environment import Case
from pipeline import store, unjudged
from pipeline.actors import make_cases
from pipeline.config import SweepConfig
from pipeline.plan import plan
from pipeline.records import Completion, Generated, Rollout, Sampling, Span, Work
from pipeline.rollout import sampling_seeds
from pipeline.unjudged import Kept

NOW = 5.0
MADE = {"versions": {"torch": "2"}, "options": {"max_model_len": 64}}
THEN = Span(1.0, 2.0)
RECORD = Generated("weights", "text", 7, THEN, THEN, 12)
TEXTS = st.text(st.characters(codec=None), max_size=20)
COMPLETIONS = st.one_of(
    st.builds(Completion, TEXTS, st.sampled_from(["stop", "length"]), st.just(3), st.just(4)),
    st.just(Completion(None, None, 9, None, "prompt_too_long")),
    st.just(Completion("", "stop", 9, 1, None, "a thought")),
)


def drawn(cases: Sequence[Case], sampling: Sampling, said: Sequence[Completion]) -> list[Rollout]:
    seeds = zip(cases, sampling_seeds(cases, sampling), strict=True)
    places = [(case.index, i, seed) for case, own in seeds for i, seed in enumerate(own)]
    return [Rollout(*place, said[n % len(said)]) for n, place in enumerate(places)]


@pytest.fixture(scope="module")
def asked(small_output: Path) -> tuple[Work, list[Case]]:
    runs = [{"path": str(small_output.parent / "runs" / "first")}]
    config = SweepConfig.model_validate(
        {
            "output": small_output,
            "runs": runs,
            "env": [{"id": "hackword", "hack_word": "ocean"}],
            "cases": {"count": 6, "shard": 4},
            "sampling": {"n": 2},
            "engine": {"name": "scripted"},
        }
    )
    (work, *_) = plan(config).works
    return work, make_cases(work.environment, work.shard)


@settings(max_examples=20)
@given(said=st.lists(COMPLETIONS, min_size=1, max_size=8))
def test_what_is_kept_comes_back_as_it_was(
    said: list[Completion],
    asked: tuple[Work, list[Case]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    work, cases = asked
    out = tmp_path_factory.mktemp("out")
    rollouts = drawn(cases, work.sampling, said)
    unjudged.keep(out, work, Kept(RECORD, rollouts, MADE))
    assert unjudged.names(out) == {unjudged.name(work)}
    moment = Span(NOW, NOW)
    record = replace(RECORD, loading=moment, generating=moment)
    assert unjudged.kept(out, work, cases, NOW) == Kept(record, rollouts, MADE)
    assert not store.partition_files(out)
    unjudged.clear(out)
    assert unjudged.names(out) == set()
    assert unjudged.kept(out, work, cases, NOW) is None
    assert list((out / "staging").iterdir()) == []


def test_the_name_says_what_is_drawn_and_not_how_it_is_graded(
    asked: tuple[Work, list[Case]],
) -> None:
    work, _ = asked
    (partition,) = work.partitions
    other = partition.identity.replace('"hack_word":"ocean"', '"hack_word":"copper"')
    assert other != partition.identity
    regraded = replace(work, partitions=(replace(partition, identity=other),))
    assert unjudged.name(regraded) == unjudged.name(work)
    longer = partition.identity.replace('"max_tokens":256', '"max_tokens":64')
    assert longer != partition.identity
    redrawn = replace(work, partitions=(replace(partition, identity=longer),))
    assert unjudged.name(redrawn) != unjudged.name(work)


def test_what_is_damaged_or_of_other_seeds_is_of_no_use(
    asked: tuple[Work, list[Case]], tmp_path: Path
) -> None:
    work, cases = asked
    rollouts = drawn(cases, work.sampling, [Completion("x", "stop", 1, 1)])
    for wrong in (rollouts[:-1], [replace(one, seed=one.seed + 1) for one in rollouts]):
        unjudged.keep(tmp_path, work, Kept(RECORD, wrong, {}))
        assert unjudged.kept(tmp_path, work, cases, NOW) is None
    unjudged.keep(tmp_path, work, Kept(RECORD, rollouts, {}))
    (file,) = (tmp_path / "staging" / unjudged.FOLDER).iterdir()
    whole = file.read_bytes()
    for content in (whole[:-9], whole[:40], b"", b"{}", whole[:50] + b"\0" + whole[51:]):
        file.write_bytes(content)
        assert unjudged.kept(tmp_path, work, cases, NOW) is None


def test_it_outlives_a_sweep_that_was_killed(
    asked: tuple[Work, list[Case]], tmp_path: Path
) -> None:
    work, cases = asked
    rollouts = drawn(cases, work.sampling, [Completion("x", "stop", 1, 1)])
    unjudged.keep(tmp_path, work, Kept(RECORD, rollouts, {}))
    (tmp_path / "staging" / "torn.json.gz.0123").write_bytes(b"half")
    with store.writing(tmp_path, ""):
        assert unjudged.names(tmp_path) == {unjudged.name(work)}
        assert not (tmp_path / "staging" / "torn.json.gz.0123").exists()
