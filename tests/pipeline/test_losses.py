"""Who is condemned for a lost engine, and who is not."""

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pipeline.losses import ATTEMPTS, CONDEMNED, Losses
from pipeline.records import Checkpoint, EnvironmentSpec, Partition, Sampling, Shard, Work

SPEC = EnvironmentSpec("hackword", ())


def work(cases: int, n: int = 4, key: str = "k") -> Work:
    shard = Shard(0, cases)
    at = Checkpoint("run", 1, "/run/1", "full", "")
    return Work(at, SPEC, shard, Sampling(n=n), (Partition("run", 1, SPEC, shard, key, "{}"),))


@dataclass
class Told:
    """How a generation ended."""

    answered: list[int] = field(default_factory=list)
    condemned: list[int] = field(default_factory=list)
    deaths: int = 0
    given_up: bool = False


def play(asked: Work, poison: set[int], kills: int = 0, losses: Losses | None = None) -> Told:
    """Ask until nothing is owed: poison ends its engine always, the first `kills` calls die too."""
    losses, told, owed = losses or Losses(), Told(), deque([asked])
    while owed and not told.given_up:
        part = owed.popleft()
        rows = part.every_row if part.rows is None else part.rows
        if not poison & {*rows} and kills <= 0:
            losses.answered(part)
            told.answered += rows
            continue
        kills, told.deaths = kills - 1, told.deaths + 1
        verdict = losses.died(part)
        owed.extendleft(reversed(verdict.again))
        told.condemned += rows if verdict.condemned else ()
        told.given_up = not verdict.again and not verdict.condemned
    return told


@given(st.integers(2, 300), st.data())
def test_poison_is_condemned_and_every_other_rollout_answered(
    cases: int, data: st.DataObject
) -> None:
    asked = work(cases)
    rows = st.integers(0, len(asked.every_row) - 1)
    poison = data.draw(st.sets(rows, min_size=1, max_size=min(CONDEMNED, cases)))
    losses = Losses()
    losses.answered(asked)  # by another shard of its checkpoint
    told = play(asked, poison, losses=losses)
    assert sorted(told.condemned) == sorted(poison)
    assert sorted(told.answered + told.condemned) == [*asked.every_row]
    assert told.deaths <= ATTEMPTS + len(poison) * (ATTEMPTS + len(asked.every_row).bit_length())


@given(st.integers(1, 300), st.integers(0, 1200))
def test_one_poisoned_rollout_is_found_even_where_nothing_was_answered_yet(
    cases: int, row: int
) -> None:
    asked = work(cases, n=4)
    poison = {row % len(asked.every_row)}
    told = play(asked, poison)
    assert {*told.condemned} == poison
    assert sorted(told.answered + told.condemned) == [*asked.every_row]


@given(st.integers(2, 300), st.integers(0, ATTEMPTS - 1))
def test_random_kills_condemn_no_innocent_rollout(cases: int, kills: int) -> None:
    asked = work(cases)
    told = play(asked, set(), kills)
    assert not told.condemned
    assert sorted(told.answered) == [*asked.every_row]


@given(st.integers(1, 300))
def test_a_checkpoint_that_ends_every_engine_is_given_up_after_few(cases: int) -> None:
    asked = work(cases, n=2)
    told = play(asked, {*asked.every_row})
    assert told.given_up
    assert told.deaths <= 4 * ATTEMPTS
    assert len(told.condemned) < 2


def test_more_poison_than_may_be_condemned_leaves_the_generation_owed() -> None:
    losses, asked = Losses(), work(64)
    losses.answered(asked)
    told = play(asked, {*range(0, 256, 16)}, losses=losses)
    assert told.given_up
    assert len(told.condemned) == CONDEMNED


def test_a_hang_is_no_rollouts_fault() -> None:
    losses, asked = Losses(), work(4)
    verdicts = [losses.passed(asked) for _ in range(ATTEMPTS)]
    assert [list(verdict.again) for verdict in verdicts] == [[asked]] * (ATTEMPTS - 1) + [[]]
