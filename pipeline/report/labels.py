"""Where labels of points stand so that nothing lies on another."""

import math
from collections.abc import Sequence
from typing import Any

LETTER, LINE = 7.0, 13.0
"""Pixels that a label takes: across a letter, down a line."""


def spread(
    records: Sequence[dict[str, Any]],
    room: tuple[float, float],
    rates: tuple[float, float],
    steps: tuple[float, float],
) -> list[tuple[float, float, float]]:
    """Give each label a `side` of its point and a `label_step`, as near as nothing is in the way.

    room: width and height in pixels; rates, steps: the ends of both axes, which are logarithmic.
    Left end, right end and height of each label in pixels.
    """
    across, up = room[0] / math.log(rates[1] / rates[0]), room[1] / math.log(steps[1] / steps[0])
    places = [
        (across * math.log(record["base"] / rates[0]), up * math.log(record["step"] / steps[0]))
        for record in records
    ]
    taken = [(x - 5, x + 5, y) for x, y in places]
    for record, (x, y) in zip(records, places, strict=True):
        if not record["label"]:
            continue
        wide = LETTER * len(record["label"])
        sides = {"left": x - 8 - wide, "right": x + 8}
        if x + 8 + wide > room[0]:
            del sides["right"]
        free = [
            (abs(at - y), side != "right", step > 0, side, start, at)
            for side, start in sides.items()
            for step in (-LINE / 4, LINE / 4)
            for at in [_free(taken, start, start + wide, y + 2 * step, step)]
        ]
        *_, record["side"], start, at = min(free)
        taken.append((start, start + wide, at))
        record["label_step"] = steps[0] * math.exp(at / up)
    return taken[len(records) :]


def _free(
    taken: Sequence[tuple[float, float, float]], start: float, end: float, at: float, step: float
) -> float:
    """The first height from `at` on, by steps, at which nothing is in the way."""
    while any(abs(at - height) < LINE and a < end and start < b for a, b, height in taken):
        at += step
    return at
