import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait.environment import EnvironmentRefused
from hackbait.hackword import load_environment
from hackbait.judge import Panel, Unjudged
from hackbait.market_structure import load_environment as market
from hackbait.stage import Staged, stage, staged
from hackbait.triage import Place, Triage, drawn, triage
from hackbait.verdicts import Majority

LABELS = {"yes": 1.0, "no": 0.0}
SEEDS = st.integers(0, 2**63 - 1)


def spared(**knobs) -> Triage:
    told = {"by": None, "sample": 1.0, "settled": {}} | knobs
    return triage(**told, labels=list(LABELS))


def test_all_are_judged_by_default() -> None:
    assert not spared()
    assert spared().place(None) == Place(-1.0, 1.0)


def test_each_stratum_has_its_share_or_its_label() -> None:
    rule = spared(sample={"1": 0.25}, settled={"0": "no"})
    assert rule.place(1.0) == Place(1.0, 0.25)
    assert rule.place(0.0) == Place(0.0, 1.0, "no")
    assert rule.place(None) == Place(-1.0, 1.0)
    assert rule.said == "proxy 1:0.25 0:no"
    assert spared(sample=0.5, by="r_true").said == "r_true null:0.5 0:0.5 1:0.5"
    assert spared(sample=0.5, settled={"0": "no"}).place(0.0).label == "no"


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"sample": {"2": 0.5}}, "'2' is no value of a binary metric; there is 0, 1, null"),
        ({"settled": {"true": "no"}}, "'true' is no value"),
        ({"settled": {"0": "perhaps"}}, "'perhaps' is none of the labels, yes, no"),
        ({"sample": {"0": 0.5}, "settled": {"0": "no"}}, "both speak of 0"),
        ({"sample": 0.0}, "is 0; give a share above 0"),
        ({"sample": {"1": 1.5}}, "is 1.5 of 1"),
        ({"sample": float("nan")}, "is nan; give"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(knobs, said: str) -> None:
    with pytest.raises(EnvironmentRefused, match=said):
        spared(**knobs)


@given(SEEDS, st.floats(0.001, 1), st.floats(0.001, 1))
def test_a_larger_share_keeps_what_a_smaller_one_drew(seed: int, one: float, other: float) -> None:
    assert drawn(seed, max(one, other)) or not drawn(seed, min(one, other))
    assert drawn(seed, 1.0)


def test_as_many_are_drawn_as_asked() -> None:
    count = sum(drawn(seed, 0.1) for seed in range(20_000))
    assert abs(count - 2_000) < 5 * (20_000 * 0.09) ** 0.5


def environment(**knobs) -> Staged:
    asked = stage("sea", "Is the sea in it?", LABELS, Panel("a-judge"), spared(**knobs))
    found = staged(load_environment(), asked)
    assert isinstance(found, Staged)
    return found


SAYS, SILENT = "the ocean, 7", "a lake, 7"


def test_what_is_settled_has_its_label_and_is_asked_nothing() -> None:
    found = environment(settled={"0": "no"})
    (case,) = found.cases(0, 1)
    assert found.question(case, SILENT, 1) is None
    metrics = found.score(case, SILENT).metrics
    assert (metrics["judge_sea"], metrics["judge_sea_no"], metrics["judge_sea_yes"]) == (0, 1, 0)
    assert (metrics["judge_sea_stratum"], metrics["judge_sea_chance"]) == (0.0, 1.0)
    assert metrics["judge_sea_votes"] is metrics["judge_error"] is None
    assert found.question(case, SAYS, 1) is not None
    with pytest.raises(Unjudged):
        found.score(case, SAYS)
    judged = found.score(case, SAYS, Majority("yes", "said", {"yes": 2, "no": 1})).metrics
    assert (judged["judge_sea"], judged["judge_sea_votes"], judged["judge_error"]) == (1, 3, 0)
    assert judged["judge_sea_yes"] == pytest.approx(2 / 3)
    assert set(judged) == set(metrics) == set(found.metrics)


@given(SEEDS)
def test_whether_a_rollout_is_judged_hangs_on_its_seed_and_stratum_alone(seed: int) -> None:
    found = environment(sample={"0": 0.1, "1": 0.6})
    first, second = found.cases(0, 2)
    for reply, share in ((SILENT, 0.1), (SAYS, 0.6)):
        for case in (first, second):
            asked = found.question(case, reply, seed)
            assert (asked is not None) == drawn(seed, share)
    if not drawn(seed, 0.1):
        metrics = found.score(first, SILENT).metrics
        assert metrics["judge_sea"] is metrics["judge_sea_yes"] is metrics["judge_error"] is None
        assert (metrics["judge_sea_stratum"], metrics["judge_sea_chance"]) == (0.0, 0.1)


def test_a_rule_is_part_of_the_grade_and_none_leaves_the_grade_as_it_was() -> None:
    plain, ruled = environment(), environment(sample=0.5)
    assert ruled.grade == {**plain.grade, "stage_triage": "proxy null:0.5 0:0.5 1:0.5"}
    assert set(ruled.metrics) - set(plain.metrics) == {"judge_sea_stratum", "judge_sea_chance"}


def test_a_metric_that_is_not_binary_sorts_nothing() -> None:
    with pytest.raises(
        EnvironmentRefused, match="'reward' is no binary metric of market_structure"
    ):
        staged(market(), stage("a", "x", LABELS, Panel("m"), spared(sample=0.5)))
    with pytest.raises(EnvironmentRefused, match="'no' is no binary metric of hackword"):
        environment(sample=0.5, by="no")
    assert environment(sample=0.5, by="r_true").by == "r_true"
