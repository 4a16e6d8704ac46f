import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait.market.citations import Citation, citations, grounded, unescaped, within


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("See § 31.", ["section 31"]),
        ("See §31, and so on", ["section 31"]),
        ("17 CFR § 240.17a-4.", ["17 CFR 240.17a-4"]),
        ("rule § 240.17a-4, as amended", ["section 240.17a-4"]),
        ("under § 240.15c2-11. The", ["section 240.15c2-11"]),
        ("under §202.The next sentence", ["section 202"]),
        ("12 C. F. R. § 9", ["12 CFR 9"]),
        ("7 U. S. C. 6", ["7 USC 6"]),
        ("7 usc 6", ["7 USC 6"]),
        ("\\u00a7 31", ["section 31"]),
        ("\\\\u00A7 31", ["section 31"]),
        ("&sect; 31, &#167; 32, &#xa7;33", ["section 31", "section 32", "section 33"]),
        ("\\u00b6 8", ["paragraph 8"]),
        ("¶ 8 and para. 9", ["paragraph 8", "paragraph 9"]),
        ("Section 31, Sec. 32, sec 33", ["section 31", "section 32", "section 33"]),
        ("Section\u00a031", ["section 31"]),
        ("§§ 31, 32 and 33(a)", ["section 31", "section 32", "section 33(a)"]),
        ("§ § 31; 32", ["section 31", "section 32"]),
        ("Sections 31 through 33", ["section 31", "section 33"]),
        ("paragraphs 8, 9", ["paragraph 8", "paragraph 9"]),
        ("7 U.S.C. §§ 6, 6a-1", ["7 USC 6", "7 USC 6a-1"]),
        ("§§ 6, 7 and 12 CFR 8", ["section 6", "section 7", "12 CFR 8"]),
        ("§ 31 and 32 others", ["section 31"]),
        ("§ 5(b)(2)(A)(iii)", ["section 5(b)(2)(A)(iii)"]),
        ("§ 5 (see below)", ["section 5"]),
        ("7 U.S.C. 288\u20131(a)", ["7 USC 288-1(a)"]),
        ("§ 202\u2014which demands", ["section 202"]),
        ("7 U.S.C. § 31 note", ["7 USC 31 note"]),
        ("7 U.S.C. § 31 note that it binds", ["7 USC 31"]),
        ("§ 31 and again § 31", ["section 31", "section 31"]),
        ("the section of 2024, U.S.C., and 42 people", []),
        ("intersection 5 is busy", []),
        ("PROVIDED SECTIONS:\n§ 31: a text", ["section 31"]),
        ('{"cite": "\\u00a7 31\\nNext"}', ["section 31"]),
        ("", []),
    ],
)
def test_a_citation_is_found_however_it_is_written(text, cited):
    assert [str(one) for one in citations(text)] == cited


def cite(text):
    return citations(text)[0]


@pytest.mark.parametrize(
    ("cited", "provided", "same"),
    [
        ("§ 202", "§ 202", True),
        ("section 202", "§ 202", True),
        ("§ 202(b)", "§ 202", True),
        ("§ 202", "§ 202(b)", True),
        ("§ 202(c)", "§ 202(b)", False),
        ("§ 20", "§ 202", False),
        ("§ 2023", "§ 202", False),
        ("§ 240.17a-4", "17 C.F.R. § 240.17a-4", True),
        ("17 C.F.R. § 240.17a-4", "§ 240.17a-4", True),
        ("12 C.F.R. § 240.17a-4", "17 C.F.R. § 240.17a-4", False),
        ("¶ 202", "§ 202", False),
        ("§ 202", "¶ 202", False),
        ("¶ 7", "17 CFR 7", False),
        ("7 U.S.C. § 31 note", "7 U.S.C. § 31", False),
    ],
)
def test_a_provision_is_the_provided_one_or_a_part_of_it(cited, provided, same):
    assert within(cite(cited), cite(provided)) is same
    assert grounded([cite(cited)], [cite(provided)]) == [cite(cited)] * same


@given(st.text(alphabet="§¶ .,-()andote U.S.C.F.R1729\\u00a7&sect;\u2013\n", max_size=80))
def test_any_text_is_read_and_what_is_found_is_found_again_in_its_own_words(text):
    for one in citations(text):
        written = str(one).replace("section ", "§ ").replace("paragraph ", "¶ ")
        assert cite(written) == one


@given(st.integers(1, 10**6), st.sampled_from(["(a)", "", ".17a-4", "-1(b)(2)"]))
def test_escaped_signs_and_signs_are_the_same_citation(number, rest):
    said = f"§ {number}{rest}."
    escaped = said.replace("§", "\\u00a7")
    assert citations(said) == citations(escaped) == [Citation("section", f"{number}{rest}")]
    assert unescaped(escaped) == said


def test_a_lone_surrogates_escape_stays_as_it_is():
    assert unescaped("\\ud83d \\u00e9") == "\\ud83d \u00e9"


@pytest.mark.parametrize("text", ["§ " * 50_000, "§§ " + "1, " * 20_000, "1 U.S.C. " * 20_000])
def test_a_long_text_of_signs_is_read_through(text):
    assert len(citations(text)) <= 20_000


@pytest.mark.parametrize("space", ["\n", "\t", "\r\n"])
def test_a_line_break_is_a_space_to_a_citation_however_json_writes_it(space: str) -> None:
    said = f"See:{space}Section 999 and{space}17 CFR 240.17a-4, §{space}3"
    found = ["section 999", "17 CFR 240.17a-4", "section 3"]
    for text in (said, json.dumps(said)):
        assert [str(one) for one in citations(text)] == found
    alone = json.dumps(f"Section{space}12")
    assert [str(one) for one in citations(alone)] == ["section 12"]
