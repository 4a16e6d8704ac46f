import base64
import gzip
import hashlib
import importlib
import itertools
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hackbait.market import pools
from hackbait.market.citations import citations, within
from hackbait.market.claims import STATED
from hackbait.market.copying import Sections, own
from hackbait.market.obligations import OBLIGATIONS
from hackbait.market.phrases import caveat, forbidden, plain
from hackbait.market.scenarios import SPLITS, Scenario, cycle_length, prompt, scenario
from hackbait.market.splits import embedded, lines, scenario_of
from hackbait.market.words import stated

FEW = settings(max_examples=30)
GOLDEN = {
    "train": "194a86dc50dbe46ff063c2472cb4d296926ce9b79633335285f28071429cf47d",
    "eval": "1c2e75a24b2efd36a4c04106b04e8010c92540c99a34b742d5570619f038ea64",
}
"""SHA-256 of the published prompts of seed 0."""


def prompts(split, seed, count):
    return [prompt(scenario(split, seed, index)) for index in range(count)]


def masked(text, company):
    return re.sub(r"\d+", "N", text.replace(company, "X"))


def of_module(split):
    packed = importlib.import_module(f"hackbait.market.{split}").PACKED
    return gzip.decompress(base64.b64decode(packed))


@pytest.mark.parametrize("split", SPLITS)
def test_the_embedded_split_is_generated_anew_byte_for_byte(split):
    assert of_module(split) == lines(split)
    drawn = tuple(scenario(split, 0, index) for index in range(SPLITS[split]))
    assert embedded(split) == drawn


@pytest.mark.parametrize("split", SPLITS)
def test_the_published_prompts_have_not_moved(split):
    text = "\0".join(prompt(one) for one in embedded(split))
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN[split]


def test_the_published_sizes_are_2000_and_512():
    assert {split: len(embedded(split)) for split in SPLITS} == {"train": 2000, "eval": 512}


@pytest.mark.parametrize(("split", "seed"), [("train", 0), ("train", 7), ("eval", 1)])
def test_2000_prompts_share_no_two_texts_and_more_than_200_are_distinct_when_masked(split, seed):
    drawn = [scenario(split, seed, index) for index in range(2000)]
    assert len({prompt(one) for one in drawn}) == 2000
    assert len({masked(prompt(one), one.company.split()[0]) for one in drawn}) > 1900
    assert len({(one.product, one.statute.rsplit(" ", 1)[0]) for one in drawn}) > 1000


def test_no_company_and_product_come_together_twice_in_a_cycle():
    """Read off one case in five: a place of the cycle is a pair."""
    drawn = [scenario("eval", 3, index) for index in range(0, cycle_length("eval"), 5)]
    assert len({(one.company.split()[0], one.product) for one in drawn}) == len(drawn)
    assert cycle_length("eval") == cycle_length("train") == 12_800


@FEW
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 25_000), st.integers(0, 25_000))
def test_train_and_eval_never_share_a_company(seed, other, index, place):
    one, another = scenario("train", seed, index), scenario("eval", other, place)
    assert one.company.split()[0] != another.company.split()[0]


def test_the_published_splits_share_no_company_and_use_almost_all_there_are():
    train, eval = ({one.company.split()[0] for one in embedded(split)} for split in SPLITS)
    assert not train & eval
    assert len(train) > 390
    assert len(eval) > 250


@FEW
@given(st.sampled_from(sorted(SPLITS)), st.integers(0, 3), st.integers(0, 25_000))
def test_a_scenario_is_a_function_of_split_seed_and_index(split, seed, index):
    one = scenario_of(split, seed, index)
    assert one == scenario(split, seed, index)
    assert one == Scenario.of(one.info()) == Scenario.of(json.loads(json.dumps(one.info())))
    assert scenario(split, seed + 1, index) != one


@FEW
@given(st.sampled_from(sorted(SPLITS)), st.integers(0, 3), st.integers(0, 25_000))
def test_a_prompt_shows_its_fields_its_status_and_its_sections(split, seed, index):
    one = scenario(split, seed, index)
    text = prompt(one)
    for name in ("company", "product", "statute", "jurisdiction", "status"):
        assert f"\n{name}: {getattr(one, name)}\n" in f"\n{text}"
    shown = "\n".join(f"{section.label}: {section.text}" for section in one.sections)
    assert f"\n\nPROVIDED SECTIONS:\n{shown}\n\n" in text
    assert "one JSON object" in text
    assert 2 <= len(one.sections) <= 4
    assert one.status in ("enacted", "proposed")


@FEW
@given(st.integers(0, 3), st.integers(0, 25_000))
def test_each_section_is_cited_by_a_label_of_its_own(seed, index):
    sections = scenario("train", seed, index).sections
    cited = [citations(f"As {section.label} says.") for section in sections]
    assert [len(found) for found in cited] == [1] * len(sections)
    for (one,), (other,) in itertools.combinations(cited, 2):
        assert not within(one, other)


def test_both_statuses_and_every_obligation_jurisdiction_and_style_of_label_come_up():
    drawn = embedded("train")
    assert 900 < sum(one.status == "proposed" for one in drawn) < 1100
    assert {s.obligation for one in drawn for s in one.sections} == set(OBLIGATIONS)
    assert {one.jurisdiction for one in drawn} == set(pools.JURISDICTIONS)
    styles = {re.sub(r"\d+", "9", s.label) for one in drawn for s in one.sections}
    assert {"§ 9", "§ 9(b)", "§ 9.9a-9", "¶ 9"} <= styles


def touched(text, obligation):
    return stated(re.findall(r"[a-z0-9]+", text.lower())).get(obligation, 0)


@pytest.mark.parametrize("key", OBLIGATIONS)
def test_an_obligations_own_words_state_it_and_no_other_and_copy_nothing(key):
    one = OBLIGATIONS[key]
    assert touched(one.text, key) == 3
    assert touched(one.own, key) >= STATED
    for other in OBLIGATIONS.keys() - {key}:
        assert touched(one.own, other) < STATED
        assert touched(one.text, other) < 3
    ours = re.findall(r"[a-z0-9]+", one.own.format(n=7).lower())
    assert own(ours, Sections.of([one.text.format(n=7)])) == ours


def test_no_name_of_a_pool_claims_an_exemption_or_gives_a_caveat_away():
    names = [*pools.PRODUCTS, *pools.TOPICS, *pools.JURISDICTIONS, *pools.FIRST]
    texts = [one.text for one in OBLIGATIONS.values()] + [one.own for one in OBLIGATIONS.values()]
    for text in names + texts:
        assert not forbidden(plain(text))
        assert not caveat(plain(text))
        assert not citations(text)


def test_no_name_of_a_pool_that_is_not_masked_touches_on_an_obligation():
    for name in (*pools.FORMS, *pools.JURISDICTIONS, *pools.KINDS):
        assert not stated(re.findall(r"[a-z0-9]+", name.lower()))


def test_a_status_and_an_ask_alone_make_two_prompts():
    one = scenario("train", 0, 0)
    flipped = replace(one, status="proposed" if one.status == "enacted" else "enacted")
    assert prompt(one) != prompt(flipped)


def test_an_obligations_number_counts_something_that_both_of_its_wordings_name():
    for one in OBLIGATIONS.values():
        assert bool(one.unit) == ("{n}" in one.text) == ("{n}" in one.own) == any(one.numbers)
        assert one.unit in one.own
        assert 1 not in one.numbers
