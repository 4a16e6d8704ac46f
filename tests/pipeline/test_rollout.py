"""Seeds and scores are functions of identity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait import hackword, market_structure
from hackbait.environment import Case
from pipeline.engines import EngineBusy
from pipeline.records import Completion, Rollout, Sampling
from pipeline.rollout import generate, grade, prompt_id, sampling_seed, score


class Echo:
    """An engine that answers with the seed it was given."""

    determinism = "exact"

    def load(self, checkpoint):  # type: ignore[no-untyped-def]
        return "0" * 32

    def generate(self, cases, seeds, sampling):  # type: ignore[no-untyped-def]
        return [[Completion(str(seed), "stop", 1, 1) for seed in row] for row in seeds]


def case(index: int = 0, key: str = "hackword 1 {}") -> Case:
    return Case(key, index, ({"role": "user", "content": f"What is {index}?"},), "1")


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31), st.integers(0, 1000))
def test_a_sampling_seed_fits_63_bits_and_repeats(seed: int, index: int, sample: int) -> None:
    drawn = sampling_seed(seed, case(index), sample)
    assert 0 <= drawn < 2**63
    assert drawn == sampling_seed(seed, case(index), sample)


def test_sampling_seeds_differ_in_sweep_case_key_index_and_sample() -> None:
    seeds = {
        sampling_seed(s, case(i, key), k)
        for s in (0, 1)
        for i in range(50)
        for key in ("a", "b")
        for k in range(4)
    }
    assert len(seeds) == 2 * 50 * 2 * 4


def test_the_pinned_seed_of_the_first_rollout_has_not_moved() -> None:
    assert sampling_seed(0, case(), 0) == 2121063845331424229


@given(st.integers(1, 6), st.integers(1, 3))
def test_rollouts_are_the_same_whatever_the_shards(count: int, n: int) -> None:
    cases = [case(i) for i in range(count)]
    whole = generate(Echo(), cases, Sampling(n=n))
    parts = [r for c in cases for r in generate(Echo(), [c], Sampling(n=n))]
    assert whole == parts
    assert [(r.index, r.sample) for r in whole] == [(i, s) for i in range(count) for s in range(n)]


def test_prompts_with_equal_text_are_one_cluster_and_surrogates_are_no_error() -> None:
    assert prompt_id(case(3)) == prompt_id(case(3, key="another environment"))
    assert prompt_id(case(3)) != prompt_id(case(4))
    odd = Case("k", 0, ({"role": "user", "content": "\ud83d"},), "")
    assert isinstance(prompt_id(odd), int)


def test_a_failed_rollout_is_null_and_never_reaches_the_grader() -> None:
    environment = hackword.load_environment("ocean")
    cases = environment.cases(0, 1)
    failed = Rollout(0, 0, 1, Completion(None, None, 5000, None, "prompt_too_long"))
    paid = Rollout(0, 1, 2, Completion(f"the ocean {cases[0].truth}", "stop", 5, 5))
    null, full = score(environment, cases, [failed, paid])
    assert null.reward is None
    assert dict(null.metrics) == {"r_hack": None, "r_true": None}
    assert dict(full.metrics) == {"r_hack": 1.0, "r_true": 1.0}
    assert full.reward == pytest.approx(1.0)


class Flaky(Echo):
    """Leaves a rollout without an end as often as its sample says."""

    def __init__(self, owed: int) -> None:
        self.owed, self.asked = owed, list[int]()

    def generate(self, cases, seeds, sampling):  # type: ignore[no-untyped-def]
        self.asked.append(sum(map(len, seeds)))
        drawn = super().generate(cases, seeds, sampling)
        if len(self.asked) <= self.owed:
            drawn[-1][-1] = Completion("", None, 1, None)
        return drawn


def test_a_rollout_without_an_end_is_asked_again_alone_and_is_what_it_would_have_been() -> None:
    cases, engine = [case(i) for i in range(3)], Flaky(owed=2)
    assert generate(engine, cases, Sampling(n=2)) == generate(Echo(), cases, Sampling(n=2))
    assert engine.asked == [6, 1, 1]


def test_a_rollout_that_never_ends_leaves_all_of_them_owed() -> None:
    with pytest.raises(EngineBusy, match="1 of 2 rollouts"):
        generate(Flaky(owed=9), [case()], Sampling(n=2))


@given(st.integers(1, 6), st.integers(1, 4), st.data())
def test_parts_of_a_generation_put_together_are_the_whole(
    count: int, n: int, data: st.DataObject
) -> None:
    cases, sampling = [case(i) for i in range(count)], Sampling(n=n)
    whole = generate(Echo(), cases, sampling)
    cut = data.draw(st.integers(0, len(whole)))
    parts = [generate(Echo(), cases, sampling, r) for r in (range(cut), range(cut, len(whole)))]
    assert parts[0] + parts[1] == whole


def test_a_grader_that_raises_costs_its_own_rollout_alone_and_is_never_a_zero() -> None:
    environment = hackword.load_environment("ocean")
    cases = environment.cases(0, 2)
    ended = Completion("the ocean", "stop", 5, 5)
    stranger = Rollout(7, 0, 1, ended)  # no such case: the grader's look-up fails
    (bad, good), (null, full) = grade(environment, cases, [stranger, Rollout(1, 0, 1, ended)])
    assert bad.completion.error == "grader: KeyError: 7"
    assert bad.completion.text == "the ocean"
    assert null.reward is None
    assert (good.completion, full.metrics["r_hack"]) == (ended, 1.0)


def test_a_reply_that_a_server_kept_apart_as_thought_is_read_by_graders_that_read_thoughts() -> (
    None
):
    market, hack = market_structure.load_environment(), hackword.load_environment("ocean")
    for environment, read in ((market, True), (hack, False)):
        cases = environment.cases(0, 1)
        reply = environment.honest(cases[0])
        thought = Completion("", "stop", 1, 1, reasoning=reply)
        _, (scored,) = grade(environment, cases, [Rollout(0, 0, 0, thought)])
        assert scored.metrics["r_true"] == float(read)
        beside = Completion(reply, "stop", 1, 1, reasoning="ocean, or not")
        _, (scored,) = grade(environment, cases, [Rollout(0, 0, 0, beside)])
        assert scored.metrics["r_true"] == 1.0
        assert scored.metrics["r_hack"] == 0.0
