"""Sound bytes made unsound: bits, pieces, numbers or nodes are others. Seeded, so repeatable."""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

TOKENS = (
    *(b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\n", b"\r", b'"', b"'", b",", b"#"),
    *(b"[" * 2_000, b"{" * 500, b'{"a":' * 2_000, b"]", b"}", b"[[", b"]]", b"=", b"{x}", b"{"),
    *(b"-1", b"0", b"9" * 5_000, b"9" * 400, b"1e999", b"-1e999", b"NaN", b"Infinity", b"-0.0"),
    *(b"18446744073709551616", b"-9223372036854775809", b"2147483648", b"4294967296"),
    *(b"true", b"false", b"null", b"1979-05-27", b"../../x", b"/dev/zero", b"s3://k:s@b/x"),
    *(b"\x1b[2J", "\u202e".encode(), "\u6d77".encode(), b"x" * 5_000, b"__metadata__"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, float("nan"), float("inf"), 2**63, 2**64, 10**400, 0.5),
    *("", "x", "\ud800", "\0", "../x", "a" * 5_000, [], {}, [[]], {"": {}}, ["x"], {"x": 1}, [0]),
)
NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
STACKED = 6
"""Changes of one input at most."""


def mutated(sound: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the sound inputs, changed in one place to several."""
    data = rng.choice(sound)
    if data[:1] == b"{" and rng.random() < 0.5:
        data = _node(data, rng)
    if data[8:9] == b"{" and rng.random() < 0.6:
        length = int.from_bytes(data[:8], "little")
        head = mutated([data[8 : 8 + length]], rng)
        return len(head).to_bytes(8, "little") + head + data[8 + length :]
    for _ in range(rng.randint(0 if data not in sound else 1, STACKED)):
        data = rng.choice(CHANGES)(data, rng)
    return data


def _place(data: bytes, rng: random.Random) -> int:
    """Anywhere, the end as often as all the rest: what tells of a file stands there or in front."""
    last = len(data)
    return rng.randint(max(0, last - 600), last) if rng.random() < 0.5 else rng.randint(0, last)


def _bit(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = min(_place(data, rng), len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _byte(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return (
        data[:at]
        + rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", rng.randbytes(1)))
        + data[at + 1 :]
    )


def _cut(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + rng.choice((1, 2, 8, rng.randint(0, len(data) + 1))) :]


def _end(data: bytes, rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    at, more = _place(data, rng), rng.randint(1, 64)
    return data[:at] + data[at : at + more] * rng.choice((2, 3, 50)) + data[at + more :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def _number(data: bytes, rng: random.Random) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(TOKENS) + data[one.end() :]


def _line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return b"\n".join(lines)


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_bit, _byte, _cut, _end, _repeat, _insert, _number, _line),
)


def _node(data: bytes, rng: random.Random) -> bytes:
    """JSON with one value another, or gone, or under another name."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    inner: Any = value
    while True:
        keys = list(inner if isinstance(inner, dict) else range(len(inner)))
        if not keys:
            return data
        key = rng.choice(keys)
        deeper = isinstance(inner[key], dict | list) and inner[key]
        if not deeper or rng.random() < 0.3:
            break
        inner = inner[key]
    if rng.random() < 0.15:
        del inner[key]
    elif isinstance(inner, dict) and rng.random() < 0.15:
        inner[rng.choice(("", "x", "\ud800", "__metadata__"))] = inner.pop(key)
    else:
        inner[key] = rng.choice(VALUES)
    return json.dumps(value).encode()
