"""Text of models, files and other people, made harmless to a terminal and a picture."""

import re

UNPRINTABLE = re.compile(r"[^ -~\n]")


def printable(text: str) -> str:
    """Text whose control characters, bidi marks and lone surrogates are written as their escapes.

    Lines stay lines: what a model wrote may have several.
    """
    return UNPRINTABLE.sub(lambda found: _escaped(found[0]), text)


def one_line(text: str) -> str:
    """The same on one line, so that no name can forge a second one."""
    return printable(text).replace("\n", "\\n")


def is_text(value: str) -> bool:
    """Whether UTF-8 can hold it: a lone surrogate is no character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def short(value: object) -> str:
    """A value as Python writes it, of at most 60 characters."""
    said = "..." if isinstance(value, int) and abs(value) >= 2**63 else repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."


def json_printable(text: str) -> str:
    """JSON with what is not printable as JSON's own escapes: it says the same as before."""
    return UNPRINTABLE.sub(lambda found: _json_escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _json_escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
