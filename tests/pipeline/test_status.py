"""How a sweep stands is told from its plan, its snapshot and the files, and from nothing else."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import status
from pipeline.status import Plan, Planned, Searched, Skipped, Snapshot

PLAN = Plan(tuple(Planned(f"k{i}", "hackword", "ab"[i // 3], i % 3, 10) for i in range(6)))


def snapshot(**changes: Any) -> Snapshot:
    return Snapshot(**{"launch": "x", "began": 100.0, "updated": 160.0} | changes)


def test_every_partition_is_one_of_four_and_a_file_outdoes_what_was_said() -> None:
    said = snapshot(running=("k0", "k1"), failed={"k0": "gone", "k2": "bad"})
    found = {s.run: s for s in status.standings(PLAN, {"k0", "k3"}, said, True)}
    a, b = found["a"], found["b"]
    assert (a.partitions, a.done, a.running, a.owed, a.failed, a.rollouts) == (3, 1, 1, 0, 1, 10)
    assert (b.partitions, b.done, b.running, b.owed, b.failed, b.rollouts) == (3, 1, 0, 2, 0, 10)


def test_nothing_runs_once_the_lock_is_gone() -> None:
    said = snapshot(running=("k0", "k1"))
    assert [s.running for s in status.standings(PLAN, set(), said, False)] == [0, 0]
    assert [s.owed for s in status.standings(PLAN, set(), said, False)] == [3, 3]


@pytest.mark.parametrize(
    ("said", "is_alive", "expected"),
    [
        (snapshot(), True, "running"),
        (snapshot(), False, "stopped (killed)"),
        (snapshot(ended="finished"), False, "finished"),
        (snapshot(ended="finished"), True, "starting"),
        (None, True, "starting"),
        (None, False, "nothing is known of its sweep"),
    ],
)
def test_the_state_of_a_sweep(said: Snapshot | None, is_alive: bool, expected: str) -> None:
    assert status.state(said, is_alive) == expected


def test_an_eta_counts_what_is_running_and_owed_and_not_what_failed() -> None:
    said = snapshot(failed={"k1": "bad"}, running=("k2",), rows_per_second=4.0)
    states = status.states_of(PLAN, {"k0"}, said, True)
    assert status.eta(PLAN, states, said) == pytest.approx(40 / 4.0)
    assert status.eta(PLAN, states, snapshot()) is None


def test_rates_are_of_the_last_two_minutes_alone() -> None:
    points = [(0.0, 0), (10.0, 1000), (900.0, 60), (960.0, 60)]
    assert status.rates(points, 1000.0) == pytest.approx((1.0, 1.0))
    assert status.rates([(0.0, 0), (30.0, 90)], 60.0) == pytest.approx((1.5, 1.0))


def test_reasons_are_told_once_a_checkpoint() -> None:
    said = snapshot(failed={"k0": "bad", "k1": "bad", "k3": "worse"})
    plan = Plan(tuple(Planned(f"k{i}", "hackword", "a", i // 2, 10) for i in range(4)))
    assert status.reasons(plan, status.states_of(plan, set(), said, False), said) == [
        {"run": "a", "step": 0, "reason": "bad", "partitions": 2},
        {"run": "a", "step": 1, "reason": "worse", "partitions": 1},
    ]


def test_a_new_plan_keeps_what_others_have_done_and_drops_what_they_have_not() -> None:
    new = Plan((Planned("n", "hackword", "a", 0, 10),))
    kept = status.joined(new, PLAN, {"k0", "k1", "k4"})
    assert [one.key for one in kept.partitions] == ["k1", "k4", "n"]


texts, counts = st.text(), st.integers(0, 2**40)
plans = st.builds(
    Plan,
    st.lists(st.builds(Planned, texts, texts, texts, counts, counts)).map(tuple),
    st.lists(st.builds(Skipped, texts, counts, texts)).map(tuple),
)
times = st.floats(0, 1e11)
snapshots = st.builds(
    Snapshot, texts, times, times, counts, counts, counts, times, times,
    st.lists(texts).map(tuple), st.dictionaries(texts, texts), texts,
)  # fmt: skip


@given(plans, snapshots)
def test_what_is_written_is_what_is_read(plan: Plan, said: Snapshot) -> None:
    assert status.parse_plan(status.dump_plan(plan)) == plan
    assert status.parse_snapshot(status.dump_snapshot(said)) == said


names = st.sampled_from([*json.loads(status.dump_snapshot(snapshot())), "partitions", "skipped"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(names, inner),
)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_damaged_and_no_other_error(content: bytes) -> None:
    with suppress(status.Damaged):
        status.parse_plan(content)
    with suppress(status.Damaged):
        status.parse_snapshot(content)


@given(snapshots, names, values)
def test_a_snapshot_of_one_wrong_field_is_damaged_or_still_one(
    said: Snapshot, name: str, value: object
) -> None:
    changed = json.loads(status.dump_snapshot(said)) | {name: value}
    with suppress(status.Damaged):
        found = status.parse_snapshot(json.dumps(changed).encode())
        assert status.state(found, True)
        status.standings(PLAN, set(), found, True)


SEARCHED = Searched("a\n", 1001, (0, 25, 1000), 25, False)


def test_what_an_adaptive_sweep_evaluated_comes_back_and_an_older_plan_has_none() -> None:
    plan = Plan(PLAN.partitions, (), (SEARCHED,))
    assert status.parse_plan(status.dump_plan(plan)) == plan
    older = json.loads(status.dump_plan(plan))
    del older["searched"]
    assert status.parse_plan(json.dumps(older).encode()).searched == ()
    assert status.joined(plan, PLAN, set()).searched == (SEARCHED,)
    assert status.joined(PLAN, plan, set()).searched == ()


@pytest.mark.parametrize("searched", [3, "ab", {"a": 1}, [["a", 1, 25]], [["a", 1, 25, 0, 5]]])
def test_a_search_of_another_form_is_damaged(searched: Any) -> None:
    said = {"partitions": [], "skipped": [], "searched": searched}
    with pytest.raises(status.Damaged):
        status.parse_plan(json.dumps(said).encode())


def test_a_search_says_what_it_saw_and_what_it_would_miss() -> None:
    assert str(SEARCHED) == (
        "adaptive: run 'a\\n': 3 of 1,001 checkpoints evaluated so far; excursions shorter than 25 "
        "steps would be missed; steps 0 25 1000"
    )
