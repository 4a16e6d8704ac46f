import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait.market import reading


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ('\ufeff{"grade": 1}', "bom"),
        ('```json\n{"grade": 1}\n```', "fence"),
        ('```{"grade": 1}```', "fence"),
        ('{"grade": 1}\n```', "fence"),
        ('Sure: {"grade": 1}', "prose"),
        ('{"grade": 1} Hope that helps.', "prose"),
        ('{"grade": 1}{"grade": 1}', "prose"),
        ("true", "prose"),
        ('{"grade": 1, "why": "it is', "truncated"),
        ('{"grade": [1, 2', "truncated"),
        ('{"grade":' + " \n" * 5000, "truncated"),
        ('{"grade": "\\', "truncated"),
        ("[" * 50_000 + "]" * 50_000, "depth"),
        ('{"a":' * 65 + "1" + "}" * 65, "depth"),
        ('{"grade": 1,}', "syntax"),
        ("{'grade': 1}", "syntax"),
        ('{"grade": 01}', "syntax"),
        ('{"grade": 1]', "syntax"),
        ('{"grade": "two\nlines"}', "syntax"),
        ('{"grade": 1 /* one */}', "syntax"),
        ('{"grade": 1, "grade": 2}', "duplicate_key"),
        ('{"in": {"grade": 1, "grade": 1}}', "duplicate_key"),
        ('{"grade": NaN}', "constant"),
        ('{"grade": [Infinity]}', "constant"),
        ('{"grade": -Infinity}', "constant"),
        ('{"grade": ' + "7" * 6000 + "}", "int_digits"),
        ('{"grade": "\\udc00"}', "surrogate"),
        ('{"\\ud83d": 1}', "surrogate"),
        ('{"grade": "\ud83d"}', "surrogate"),
        ('[{"grade": 1}]', "not_object"),
    ],
)
def test_what_is_no_object_alone_is_refused_with_its_reason(reply, reason):
    assert reading.strict(reply) == reading.Reading(None, reason)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"grade": "b"}', {"grade": "b"}),
        ('\r\n {"grade": 1.5}\n', {"grade": 1.5}),
        ('{"say": "a ```fence``` and a } in a text"}', {"say": "a ```fence``` and a } in a text"}),
        ('{"say": "a \\" quote and a \\\\"}', {"say": 'a " quote and a \\'}),
        ('{"say": "\\ud83d\\ude00"}', {"say": "\U0001f600"}),
        ("{}", {}),
        ('{"a":' * 64 + "1" + "}" * 64, None),
    ],
)
def test_an_object_alone_is_read(reply, value):
    found = reading.strict(reply)
    assert found.reason == ""
    assert value is None or found.value == value


@pytest.mark.parametrize(
    ("reply", "alone"),
    [
        ('{"grade": 1}', True),
        (' {"grade": 1,}\n', True),
        ('{"grade": 1, "grade": NaN}', True),
        ('```json\n{"grade": 1}\n```', False),
        ('{"grade": 1}.', False),
        ('So {"grade": 1}', False),
        ('{"grade": 1', False),
        ("[1]", False),
        ('\ufeff{"grade": 1}', False),
        ("{" * 100_000 + "}" * 100_000, False),
        ("", False),
    ],
)
def test_format_is_about_what_stands_around_the_object_and_not_about_its_syntax(reply, alone):
    assert reading.alone(reply) is alone


@pytest.mark.parametrize(
    "reply",
    [
        '{"grade": 1}',
        '```json\n{"grade": 1}\n```',
        '```json{"grade": 1}```',
        'As {said}, it is {"grade": 1}, as I see it.',
        'First {"grade": 1} and then {"grade": 2}',
    ],
)
def test_a_lenient_reader_takes_the_first_object_that_can_be_read(reply):
    assert reading.lenient(reply) == {"grade": 1}


@pytest.mark.parametrize("reply", ["", "no", '{"grade": 1', "{a}" * 1000, "{" * 100_000])
def test_a_lenient_reader_finds_nothing_where_nothing_is_whole(reply):
    assert reading.lenient(reply) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(), JSON, max_size=3), st.booleans())
def test_whatever_is_dumped_is_read_back_and_stands_alone(value, ascii_only):
    reply = json.dumps(value, ensure_ascii=ascii_only)
    assert reading.strict(reply) == reading.Reading(value, "")
    assert reading.alone(reply)
    assert reading.lenient(f"It is {reply}.") == value


@given(st.text(alphabet='{}[]":,\\ntrue01`\ufeff\ud800 ', max_size=60) | st.text(max_size=60))
def test_any_text_is_read_and_has_a_value_or_a_reason(reply):
    found = reading.strict(reply)
    assert (found.value is None) == bool(found.reason)
    assert found.value is None or reading.alone(reply)
    if found.value is not None:
        assert reading.lenient(reply) == found.value


@pytest.mark.parametrize("reply", ['{"a": "' * 50_000, '{"' + "\\" * 200_000, "{}" * 100_000])
def test_long_texts_of_one_mark_take_no_square_of_their_length(reply):
    assert reading.strict(reply).value is None
    assert reading.lenient(reply) in (None, {})
