import re
import unicodedata
from types import SimpleNamespace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hackbait.text import fold, last_integer, last_text, unspaced, whole_word

SPACES = ("\u2009", "\u202f", "\u00a0")
NUMBERISH = st.text("0123459,.-+eE{}\\ ?x)]_\u2212\u2009\u202f\u00a0\uff11\uff0d\u0664\u00b2\u2019")
WORDISH = st.text(
    "oceanOCEAN_- .1\u0301\u017f\u0130\u0131\u00df\u1e9e\u00e9\u200b\u0928\u0940k\u212a"
)


def digits_at(text, at):
    stop = at
    while stop < len(text) and text[stop].isdecimal():
        stop += 1
    return text[at:stop]


def grouped_at(text, at):
    """The digits of `1,045,200` and the text they take, by hand: groups of one separator."""
    head = digits_at(text, at)
    if not 1 <= len(head) <= 3:
        return head, head
    for separator in (",", "{,}", "\\,", *SPACES):
        value, taken = head, head
        while text.startswith(separator, at + len(taken)):
            group = digits_at(text, at + len(taken) + len(separator))
            if len(group) != 3:
                break
            value, taken = value + group, taken + separator + group
        if taken != head:
            return value, taken
    return head, head


def number_at(text, at):
    """(value or None, length) of the number that starts here; None where none does."""
    after = at
    negative = text[at] in "-\u2212\ufe63\uff0d" and not (at and text[at - 1].isdecimal())
    after += negative
    whole, taken = grouped_at(text, after)
    after += len(taken)
    fraction = ""
    before = text[after - 1] if after else " "
    bare = not whole and not (before.isalnum() or before in "_.)]}")
    if (whole or bare) and text.startswith(".", after):
        fraction = digits_at(text, after + 1)
        after += bool(fraction) + len(fraction)
    if not whole + fraction:
        return None
    shift = 0
    if exponent := re.compile(r"[eE]([-+\u2212]?)(\d+)").match(text, after):
        shift = int(exponent[2]) * (-1 if exponent[1] in ("-", "\u2212") else 1)
        after = exponent.end()
    value, shift = int(whole + fraction), shift - len(fraction)
    scaled = value * 10**shift if shift >= 0 else value // 10**-shift
    integral = shift >= 0 or value % 10**-shift == 0
    return (-scaled if negative else scaled) if integral else None, after - at


def slow_last_integer(text):
    at, last = 0, None
    while at < len(text):
        value, length = number_at(text, at) or (None, 1)
        last = last if value is None else value
        at += length
    return last


def plain(number):
    if number is None:
        return None
    digits, _, zeros = number.partition("e")
    return int(digits) * 10 ** int(zeros or 0)


@given(NUMBERISH | st.text())
@example("1,045,1234")
@example("1\u2009045,200")
@example("..5 .5 )5 .5e1")
@example("1045-1046")
@example("1e3e3 5-2")
def test_the_last_integer_is_the_one_a_scan_from_the_left_finds(text):
    assume(not re.search(r"[eE][-+\u2212]?\d{4}", text))
    assert plain(last_integer(text)) == slow_last_integer(text)


@given(st.integers(-(10**30), 10**30), st.text())
def test_an_integer_written_last_is_read_back(number, before):
    assert last_integer(f"{before} {number}") == str(number)


@given(st.integers(-(10**15), 10**15))
def test_every_spelling_of_a_value_reads_as_the_same_text(number):
    spelled = f"{number:,}"
    spellings = [spelled, f"{spelled}.00", f"{number}e0", f"{number}000e-3"]
    spellings += [spelled.replace(",", s) for s in ("{,}", "\\,", *SPACES)]
    spellings += [spelled.replace("-", "\u2212")]
    assert {last_integer(f"it is {s}.") for s in spellings} == {str(number)}


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("in all 1,045", "1045"),
        ("about 12,34", "34"),
        ("about 1045,123", "123"),
        ("about 1,0456", "456"),
        ("twelve , or so , .", None),
        ("$2,300.00", "2300"),
        ("2 300", "300"),
        ("2300 in 1.5 hours", "2300"),
        ("2300, p < .05", "2300"),
        ("so...2300", "2300"),
        ("the end.2300", "2300"),
        ("1e999999999999999999", "1e1000000000000"),
        ("0e99999", "0"),
        ("-0", "0"),
        ("4e-2", None),
        ("2300e-2", "23"),
        ("x-5", "-5"),
        ("9-5", "5"),
        ("2300\u00b2", "2300"),
        ("\u0662\u0663", "23"),
        ("12%", "12"),
        ("", None),
    ],
)
def test_integers_worked_by_hand(text, integer):
    assert last_integer(text) == integer


def test_integers_longer_than_python_converts_are_compared_as_text():
    assert last_integer("9" * 10_000) == "9" * 10_000
    assert last_integer("0" * 10_000 + "7") == "7"
    assert last_integer("7" + "0" * 10_000) == last_integer("7e10000") == "7e10000"


def slow_whole_word(text, word):
    """Unicode's simple folding, then every position by its definition."""

    def folded(raw):
        normal = unicodedata.normalize("NFC", raw)
        simple = (next(f for f in (c.casefold(), c.lower(), c) if len(f) == 1) for c in normal)
        return unicodedata.normalize("NFC", "".join(simple))

    def joins(character):
        return character == "_" or unicodedata.category(character)[0] in "LNM"

    text, word = f"     {folded(text)}     ", folded(word)
    for at in range(len(text) - len(word) + 1):
        for marks in range(4):
            wrapped = "_" * marks + word + "_" * marks
            if text.startswith(wrapped, at) and not (
                joins(text[at - 1]) or joins(text[at + len(wrapped)])
            ):
                return True
    return False


@given(WORDISH | st.text(), st.text("oceanOCEAN\u017f\u00e9\u0301\u00df\u212a+.", min_size=1))
@example("Oce\u00e1\u00f1 ocean\u00df ocean", "ocean")
@example("___ocean___", "ocean")
@example("____ocean____", "ocean")
def test_a_whole_word_is_found_wherever_its_definition_holds(text, word):
    assume(not unicodedata.combining(word[0]))
    assert whole_word(text, word) == slow_whole_word(text, word)


@given(WORDISH | st.text())
def test_a_folded_word_is_folded(word):
    assert fold(fold(word)) == fold(word)


@given(st.text(), st.text(min_size=1))
def test_any_text_and_any_word_can_be_compared(text, word):
    assert whole_word(text, word) in (True, False)
    assert last_integer(word) is None or last_integer(word) == last_integer(text + " " + word)


@pytest.mark.parametrize(
    ("text", "word", "there"),
    [
        ("The sea\u2019s copper", "copper", True),
        ("copper's", "copper", True),
        ("COPPER", "copper", True),
        ("Copper", "COPPER", True),
        ("coppers", "copper", False),
        ("a copper-plated pan", "copper", True),
        ("a _copper_ pan", "copper", True),
        ("a __copper__ pan", "copper", True),
        ("copper_pan", "copper", False),
        ("_copper", "copper", False),
        ("copper__pan", "copper", False),
        ("redCopper", "copper", False),
        ("copper2", "copper", False),
        ("copper\u00b2", "copper", False),
        ("copper\U0001f525", "copper", True),
        ("\u200bcopper\u200d!", "copper", True),
        ("cop\u00adper", "copper", False),
        ("cop\nper", "copper", False),
        ("copp\u0435r", "copper", False),
        ("\uff43opper", "copper", False),
        ("na\u00efve", "nai\u0308ve", True),
        ("naive", "na\u00efve", False),
        ("copper\u0323", "copper", False),
        ("\u212aing", "king", True),
        ("\u017f\u0301imba", "\u015bimba", True),
        ("t\u0131de", "tide", False),
        ("T\u0130DE", "tide", False),
        ("stra\u1e9ee", "stra\u00dfe", True),
        ("strasse", "stra\u00dfe", False),
        ("aXc", "a.c", False),
        ("F# is a key", "F#", True),
        ("oceanocean ocean", "ocean", True),
        ("oceanocean", "ocean", False),
    ],
)
def test_words_worked_by_hand(text, word, there):
    assert whole_word(text, word) is there


def test_long_degenerate_texts_are_read_in_linear_time():
    for unit in (
        "a\u0301\u0316",
        "\u0301\u0316",
        "1,",
        "3.5",
        "ocean",
        "_ocean",
        "1e",
        "\ud800",
        "\0",
    ):
        text = unit * (150_000 // len(unit))
        whole_word(text, "ocean")
        whole_word(text + "\u2019", "ocean")
        last_integer(text)


@given(st.text("a\u00e9\u0301\u0316\u0344\u0f71\u0f73 ", min_size=1, max_size=50))
@settings(max_examples=40)
def test_sorting_the_marks_of_a_long_text_changes_no_verdict_on_it(unit):
    text = unit * (2500 // len(unit) + 1)
    assert fold.__wrapped__(text) == unicodedata.normalize("NFC", text)


def test_a_completion_is_a_text_a_message_or_a_list_of_them():
    said = {"role": "assistant", "content": "so"}
    for completion in ("so", said, [said], (said,), SimpleNamespace(**said), ["no", "so"]):
        assert last_text(completion, reasoning=False) == "so"


def test_the_last_assistant_message_is_the_reply_whoever_spoke_after_it():
    spoken = [("user", "1"), ("assistant", "2"), ("assistant", "3"), ("tool", "4"), ("user", "5")]
    completion = [{"role": role, "content": content} for role, content in spoken]
    assert last_text(completion, reasoning=False) == "3"
    assert last_text(completion[:1], reasoning=False) == ""


def test_nothing_said_is_the_empty_text():
    for nothing in (None, [], "", {"content": None}, [{"role": "assistant", "content": ""}]):
        assert last_text(nothing, reasoning=False) == ""


def test_text_parts_are_joined_and_the_others_are_no_text():
    parts = [
        {"type": "text", "text": "the oc"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "thinking", "text": "hm"},
        SimpleNamespace(type="text", text="ean\n"),
        "7",
    ]
    assert last_text({"role": "assistant", "content": parts}, reasoning=False) == "the ocean\n7"


def test_a_thought_stands_in_for_an_empty_reply_only_when_asked_for():
    thought = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    assert last_text(thought, reasoning=False) == ""
    assert last_text(thought, reasoning=True) == "hm"
    assert last_text(SimpleNamespace(**thought), reasoning=True) == "hm"
    assert last_text(thought | {"content": "so"}, reasoning=True) == "so"


def test_what_is_no_completion_is_a_type_error_that_says_what_one_is():
    with pytest.raises(TypeError, match="a list of messages, not int"):
        last_text(7, reasoning=False)


@pytest.mark.parametrize("word", ["\u6d77", "x\u6d77", "\u306f", "\u0e17\u0e30", "\u1019"])
def test_scripts_without_spaces_are_known(word):
    assert unspaced(word) in word


@pytest.mark.parametrize("word", ["ocean", "\ubc14\ub2e4", "\u0928\u0926\u0940", "\u043e", "C++"])
def test_scripts_with_spaces_are_known(word):
    assert unspaced(word) is None
