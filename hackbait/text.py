"""Reads replies: the text of a message, its last integer, whether it holds a word.

Pure, total and linear in time: any text is read, lone surrogates and a megabyte of marks included.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby

_UNSPACED = (
    "CJK ", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "BOPOMOFO", "KANGXI",
    "IDEOGRAPHIC", "YI ", "TANGUT", "NUSHU", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ",
    "TAI ", "NEW TAI LUE", "AHOM ", "JAVANESE", "BALINESE",
)  # fmt: skip
"""First words of the names of letters whose scripts put no space between words (UAX 14: ID, SA)."""

_NUMBER = re.compile(
    r"""
    ((?<!\d)[-\u2212\ufe63\uff0d])?
    (?:
        (\d{1,3}(?:(,|\u2009|\u202f|\u00a0|\{,\}|\\,)\d{3}(?:\3\d{3})*(?!\d))|\d+)(?:\.(\d+))?
        | (?<![\w.)\]}])\.(\d+)
    )
    (?:[eE]([-+\u2212]?\d+))?
    """,
    re.VERBOSE,
)
"""Sign; digits, perhaps in groups of three by one separator; fraction; bare fraction; exponent."""

_DIGIT, _PART, _OTHER = b"0", b"1", b" "
_KINDS = bytes(
    (_DIGIT if c in b"0123456789?" else _PART if c in rb",.+-eE{}\\" else _OTHER)[0]
    for c in range(256)
)
"""What an ASCII character can be in a number. `?` stands for every character beyond ASCII."""

_ASCII_WORD = re.compile(r"\w+", re.ASCII)

_LONG_ENOUGH = 2048
"""Characters from which a text's combining marks are sorted before it is normalised."""


def last_text(completion: object, *, reasoning: bool) -> str:
    """The text of the last assistant message; empty where there is none.

    A completion is a text, a message (mapping or object with `content`) or a list of either. A
    message without a role is the assistant's. With `reasoning`, an empty content gives way to
    `reasoning_content`. Raises TypeError for anything else.
    """
    if isinstance(completion, str):
        return completion
    if completion is None:
        return ""
    if not isinstance(completion, Sequence):
        return _reply(completion, reasoning) or ""
    for message in reversed(completion):
        text = message if isinstance(message, str) else _reply(message, reasoning)
        if text is not None:
            return text
    return ""


def _reply(message: object, reasoning: bool) -> str | None:
    """A message's text; None where somebody else than the assistant speaks."""
    if not isinstance(message, Mapping) and not hasattr(message, "content"):
        kind = type(message).__name__
        raise TypeError(f"a completion is a text, a message or a list of messages, not {kind}")
    if _field(message, "role") not in (None, "assistant"):
        return None
    text = _content(_field(message, "content"))
    return text or (_content(_field(message, "reasoning_content")) if reasoning else "")


def _field(message: object, name: str) -> object:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _content(content: object) -> str:
    """Text parts joined as they stand; images, tool calls and thoughts are no text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    return "".join(part if isinstance(part, str) else _part(part) for part in content)


def _part(part: object) -> str:
    text = _field(part, "text")
    said = _field(part, "type") in (None, "text", "output_text")
    return text if said and isinstance(text, str) else ""


def last_integer(text: str) -> str | None:
    """The last number of integral value, in plain digits with its sign; None without one.

    Equal values give equal texts: `1,045.00`, `1.045e3` and `0001045` are all `1045`. More than 400
    closing zeros are counted instead of written. Compared as text, so any length is allowed.
    """
    kinds = text.encode("ascii", "replace").translate(_KINDS)
    stop = kinds.rfind(_DIGIT) + 1
    while stop:
        # A number holds no `other` character, so the run between two of them is read alone.
        start = kinds.rfind(_OTHER, 0, stop) + 1
        last = None
        for number in _NUMBER.finditer(text, start, stop):
            last = _integer(*number.group(1, 2, 3, 4, 5, 6)) or last
        if last is not None:
            return last
        stop = kinds.rfind(_DIGIT, 0, start) + 1
    return None


def _integer(
    sign: str | None,
    whole: str | None,
    separator: str | None,
    fraction: str | None,
    bare: str | None,
    exponent: str | None,
) -> str | None:
    """A number's value as text, None unless it is integral."""
    whole, fraction = whole or "", fraction or bare or ""
    if separator:
        whole = whole.replace(separator, "")
    digits = _ascii(whole + fraction).lstrip("0")
    if not digits:
        return "0"
    shift = _shift(exponent) - len(fraction)
    kept = digits.rstrip("0")
    zeros = len(digits) - len(kept) + shift
    if zeros < 0:
        return None
    return ("-" if sign else "") + kept + ("0" * zeros if zeros <= 400 else f"e{zeros}")


def _shift(exponent: str | None) -> int:
    """The exponent as a number, cut at 10^12: no text is long enough to tell larger ones apart."""
    if not exponent:
        return 0
    size = _ascii(exponent.lstrip("+-\u2212")).lstrip("0")
    value = 10**12 if len(size) > 12 else int(size or "0")
    return -value if exponent[0] in "-\u2212" else value


def _ascii(digits: str) -> str:
    if digits.isascii():
        return digits
    return "".join(str(unicodedata.decimal(digit)) for digit in digits)


def whole_word(text: str, word: str) -> bool:
    """Whether the word stands in the text, bounded on both sides, in any case.

    Canonically equivalent texts are equal (NFC), case is folded character by character. Letters,
    numbers, marks and underscores bound no word, save underscores that emphasise it: `_word_`.
    """
    needle = fold(word)
    if text.isascii():
        folded = text.lower()
    else:
        normal = _normal(text)
        # Full folding is simple folding and then a map character by character, so a word not found
        # under it is nowhere; and where it lengthens nothing, the two are the same.
        full = normal.casefold()
        if _composed(needle.casefold()) not in _composed(full):
            return False
        folded = _composed(full if len(full) == len(normal) else normal.translate(_SIMPLE))
    at = folded.find(needle)
    while at >= 0:
        if _bounded(folded, at, at + len(needle)):
            return True
        at = folded.find(needle, at + 1)
    return False


def whole_words(text: str) -> set[str]:
    """Every folded word that `whole_word` finds, of `unbroken` ones: all in one reading."""
    if text.isascii():
        found = set(_ASCII_WORD.findall(text.lower()))
    else:
        found = set(_composed(_normal(text).translate(_SIMPLE)).translate(_SPACED).split())
    for word in [word for word in found if word[0] == word[-1] == "_"]:
        found |= {
            word[marks:-marks]
            for marks in range(1, 4)
            if len(word) > 2 * marks and word.startswith("_" * marks) and word.endswith("_" * marks)
        }
    return found


def unbroken(word: str) -> bool:
    """Whether no character of the word bounds one: `far-off`, `don't` and `C++` are broken."""
    return all(_joins(character) for character in fold(word))


def _bounded(text: str, start: int, stop: int) -> bool:
    for marks in range(4):
        before = text[start - marks - 1] if start > marks else " "
        after = text[stop + marks] if stop + marks < len(text) else " "
        if not (before == after == "_"):
            return not _joins(before) and not _joins(after)
    return False


def _joins(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    return unicodedata.category(character)[0] in "LNM"


@lru_cache(maxsize=1024)
def fold(word: str) -> str:
    """A word as it is compared: NFC of the Unicode simple case folding (nothing Turkic) of NFC."""
    return _composed(_normal(word).translate(_SIMPLE))


class _Simple(dict[int, str]):
    """Simple case folding by code point, worked out when first asked for."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        for folded in (character.casefold(), character.lower()):
            if len(folded) == 1:
                break
        else:
            folded = character
        self[code] = folded
        return folded


_SIMPLE = _Simple()


class _Spaced(dict[int, str]):
    """What bounds a word as a space, by code point, worked out when first asked for."""

    def __missing__(self, code: int) -> str:
        self[code] = character = chr(code) if _joins(chr(code)) else " "
        return character


_SPACED = _Spaced()


def _normal(text: str) -> str:
    """NFC. The library reorders a run of marks in quadratic time, so long ones come sorted."""
    if len(text) >= _LONG_ENOUGH and not text.isascii():
        text = "".join(
            _sorted_marks("".join(run)) if marks else "".join(run)
            for marks, run in groupby(text, _is_mark)
        )
    return unicodedata.normalize("NFC", text)


def _composed(folded: str) -> str:
    """NFC again: a letter that folding changed (the long s) may take a mark that it did not."""
    return unicodedata.normalize("NFC", folded)


def _is_mark(character: str) -> bool:
    return bool(unicodedata.combining(unicodedata.normalize("NFD", character)[0]))


def _sorted_marks(marks: str) -> str:
    """The marks decomposed and in canonical order, which is stable by combining class."""
    plain = "".join(unicodedata.normalize("NFD", mark) for mark in marks)
    return "".join(sorted(plain, key=unicodedata.combining))


def unspaced(word: str) -> str | None:
    """The first letter of a script that puts no space between words; None without one."""
    for character in word:
        if unicodedata.name(character, "").startswith(_UNSPACED):
            return character
    return None
