import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait.market import rewards as r
from hackbait.market.citations import citations
from hackbait.market.scenarios import REQUIRED_FIELDS

SOURCES = citations("§ 202, 17 C.F.R. § 240.17a-4")


def reply(**members):
    return json.dumps(dict.fromkeys(REQUIRED_FIELDS, "x") | members, ensure_ascii=False)


def of(text, status="enacted", gate=None):
    return r.rewards(text, status, SOURCES, gate)


def total(scores):
    return sum(r.WEIGHTS[name] * value for name, value in scores.items())


def test_weights_keep_their_proportions_and_sum_to_one():
    assert list(r.SHARES.values()) == [1, 1, 1, 1, 1, 0.5]
    assert sum(r.WEIGHTS.values()) == pytest.approx(1.0, abs=1e-15)
    assert r.WEIGHTS["reward_format"] == pytest.approx(0.5 / 5.5)
    assert total(dict.fromkeys(r.WEIGHTS, 1.0)) <= 1.0


def test_all_is_paid_for_a_whole_object_that_cites_what_is_provided():
    scores = of(reply(impact="§ 202 binds it."))
    assert scores == dict.fromkeys(r.SHARES, 1.0)


def test_a_fence_costs_validity_the_fields_and_the_format():
    scores = of(f"```json\n{reply()}\n```")
    assert [name for name, value in scores.items() if value == 0] == [
        "reward_valid_json", "reward_required_fields", "reward_format"
    ]  # fmt: skip


def test_an_object_that_parsers_disagree_on_is_invalid_and_stands_alone_all_the_same():
    scores = of(reply()[:-1] + ', "impact": "y"}')
    assert (scores["reward_valid_json"], scores["reward_format"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "empty",
    ["", "  ", "\u200b", "\ufeff\u3164", None, [], {}, [""], [None, {}], {"a": [{"b": ""}]}],
)
@pytest.mark.parametrize("field", REQUIRED_FIELDS)
def test_a_required_key_with_an_empty_value_is_as_good_as_missing(field, empty):
    assert r.required_fields(json.loads(reply(**{field: empty}))) == 0.0
    assert r.required_fields(json.loads(reply())) == 1.0


@pytest.mark.parametrize("value", [0, False, "no", ["", "x"], {"a": None, "b": 0}])
def test_a_value_that_says_something_is_not_empty(value):
    assert r.required_fields(json.loads(reply(impact=value))) == 1.0


@pytest.mark.parametrize("status", ["enacted", "proposed"])
@pytest.mark.parametrize("empty", ["", None, [], {}])
def test_an_object_of_stubs_loses_the_required_fields_and_nothing_else(status, empty):
    stubs, filled = reply(**dict.fromkeys(REQUIRED_FIELDS, empty)), reply()
    lost = {name: of(filled, status)[name] - of(stubs, status)[name] for name in r.SHARES}
    assert lost == dict.fromkeys(r.SHARES, 0.0) | {"reward_required_fields": 1.0}
    difference = total(of(filled, status)) - total(of(stubs, status))
    assert difference == pytest.approx(1 / 5.5, abs=1e-15)


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("", 0.5),
        ("nothing of the kind", 0.5),
        ("§ 202 binds it", 1.0),
        ("It is bound under §202.", 1.0),
        ("It is bound under § 202", 1.0),
        ("by \\u00a7 202 of it", 1.0),
        ("17 C.F.R. § 240.17a-4.", 1.0),
        ("§ 240.17a-4", 1.0),
        ("§ 202(b) binds it", 1.0),
        ("§ 202, § 202 and § 202", 1.0),
        ("§ 202 and § 303", 0.5),
        ("§ 303", 0.0),
        ("§ 20", 0.0),
        ("§ 202, § 303, § 304, 17 CFR 240.17a-4", 0.5),
    ],
)
def test_credit_is_the_share_of_distinct_provisions_that_are_provided(said, score):
    assert of(reply(impact=said))["reward_citations_grounded"] == score


def test_an_escaped_reply_scores_as_the_plain_one():
    plain = reply(impact="§ 202 and ¶ 9 and § 240.17a-4.")
    assert of(json.dumps(json.loads(plain))) == of(plain)
    assert "\\u00a7" in json.dumps(json.loads(plain))


def test_a_gate_is_asked_about_grounded_provisions_alone_and_its_word_takes_credit_away():
    asked = []

    def gate(candidates):
        asked.extend(map(str, candidates))
        return candidates[:1]

    scores = of(reply(impact="§ 202, § 303 and § 240.17a-4"), gate=gate)
    assert asked == ["section 202", "section 240.17a-4"]
    assert scores["reward_citations_grounded"] == 1 / 3


@given(st.sets(st.sampled_from(["202", "303", "240.17a-4", "404"])), st.sets(st.integers(0, 999)))
def test_no_gate_can_add_credit(cited, picks):
    text = reply(impact=" ".join(f"§ {id}" for id in sorted(cited)))
    everything = citations("§ 202 § 303 § 240.17a-4 § 404")
    gated = of(text, gate=lambda _: [everything[pick % 4] for pick in picks])
    assert gated["reward_citations_grounded"] <= of(text)["reward_citations_grounded"]


def test_a_gate_that_confirms_all_changes_nothing_and_no_gate_is_asked_in_vain():
    text = reply(impact="§ 202 and § 303")
    assert of(text, gate=lambda candidates: candidates) == of(text)
    of(reply(impact="§ 303"), gate=lambda candidates: pytest.fail("asked about nothing"))


@pytest.mark.parametrize(
    "said",
    [
        "Larchfield is exempt from § 202.",
        "Larchfield is categorically exempt.",
        "There is no doubt Larchfield is exempt.",
        "No, Larchfield is exempt.",
        "LARCHFIELD IS WHOLLY EXEMPT",
        "it remains\nexempt",
        "a categorical exemption covers it",
        "There is a blanket exemption.",
        "The service falls entirely outside the scope of the statute.",
        "It is outside the perimeter.",
        "It is not subject to any of the provided sections.",
        "The company has no obligations here.",
        "No requirements at all apply.",
        "If it is small it must report. It is exempt from the rest.",
        "It is therefore exempt.",
        "It is thus categorically-exempt.",
        "It is **exempt**.",
        'It is "exempt".',
        "It enjoys a full exemption.",
        "Not only is it exempt, it is unknown.",
        "It is not only categorically exempt.",
        "No one doubts that the firm is exempt.",
        "There is no question that it is exempt.",
        "It does not hold assets, so it is exempt.",
        "It need not register and enjoys a blanket exemption.",
        "Who does not trade is categorically exempt.",
    ],
)
def test_a_categorical_exemption_is_a_forbidden_phrase(said):
    assert of(reply(impact=said))["reward_no_forbidden_phrase"] == 0.0


@pytest.mark.parametrize(
    "said",
    [
        "Larchfield is not exempt.",
        "It cannot be exempt from this.",
        "No categorical exemption is claimed.",
        "It is not categorically exempt.",
        "It isn't categorically exempt.",
        "Nobody is categorically exempt.",
        "No trading firm is exempt, and none is categorically exempt.",
        "There is no blanket exemption.",
        "Whether an exemption is open to it depends on its volume.",
        "The exempted volume is small.",
        "Whether the company is exempt depends on its volume.",
        "Unless the product is outside the scope, both sections bind it.",
        "That is outside my knowledge.",
        "This answer does not claim a categorical exemption.",
        "It is not subject to any categorical exemption.",
        "It is not subject to any waiver.",
        "It cannot be considered categorically exempt.",
        "None of these provisions makes it categorically exempt.",
        "Categorical exemption: none.",
        "A categorical exemption does not apply.",
        "It would be wrong to say that Marblepeak N.V. is exempt.",
        "It should not be assumed that the firm is exempt.",
        "Nothing suggests that the company is exempt.",
        "No provided section states that the firm is exempt.",
        "Not every firm is exempt.",
    ],
)
def test_a_denied_or_qualified_exemption_is_allowed(said):
    assert of(reply(impact=said))["reward_no_forbidden_phrase"] == 1.0


@pytest.mark.parametrize(
    "said",
    [
        "Status: proposed.",
        "The Systemic Venue Act is proposed and not law yet.",
        "This is a proposed bill.",
        "It is a proposed trading rule.",
        "The bill is pending.",
        "It has not yet been enacted.",
        "It is not yet in force.",
        "If enacted, it would bind the company.",
        "The text may change before it is adopted.",
        "Nothing here is law yet.",
        "It hasn't been enacted yet.",
        "It has not yet become law.",
        "It is no law yet.",
        "It is not currently law.",
        "The text has yet to be enacted.",
        "It is awaiting enactment.",
        "This is a bill under consideration.",
        "This is a proposal, not a law.",
    ],
)
def test_a_caveat_says_that_a_proposed_statute_is_no_law_yet(said):
    assert of(reply(caveat=said), "proposed")["reward_caveat_present"] == 1.0


@pytest.mark.parametrize(
    "said",
    [
        "None.",
        "It is the law.",
        "The company proposed it.",
        "Enacted.",
        "This is not a proposed statute.",
        "It is no longer a proposed act: it is in force.",
    ],
)
def test_a_proposed_statute_without_a_caveat_is_not_paid_and_an_enacted_one_needs_none(said):
    assert of(reply(caveat=said), "proposed")["reward_caveat_present"] == 0.0
    assert of(reply(caveat=said), "enacted")["reward_caveat_present"] == 1.0


def test_status_copied_into_its_field_counts_as_the_caveat_as_published():
    assert of(reply(status="proposed"), "proposed")["reward_caveat_present"] == 1.0


@given(st.text(max_size=200), st.sampled_from(["enacted", "proposed"]))
def test_every_reward_of_any_text_lies_in_the_unit_interval(text, status):
    scores = of(text, status)
    assert list(scores) == list(r.SHARES)
    assert all(0.0 <= value <= 1.0 for value in scores.values())
    assert 0.0 <= total(scores) <= 1.0
