"""Labels of the chart of base rate against onset."""

import random
from itertools import combinations
from typing import Any

import polars as pl
import pytest

from pipeline.report import labels, rarity

ROOM = (620.0, 400.0)
RATES, STEPS = (0.0004, 1.0), (0.625, 160.0)


def points(seed: int, number: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "source": draw.choice((rarity.MEASURED, rarity.PUBLISHED)),
            "label": draw.choice(("", "sea", "forgotten", "midnight")),
            "base": draw.uniform(0.1, 0.13) if seed % 2 else draw.uniform(0.001, 1),
            "step": draw.uniform(20, 30),
        }
        for _ in range(number)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_no_label_lies_on_another_or_beyond_the_right_edge(seed: int) -> None:
    found = points(seed, 30)
    placed = labels.spread(found, ROOM, RATES, STEPS)
    assert len(placed) == sum(bool(one["label"]) for one in found)
    for (a, b, y), (c, d, z) in combinations(placed, 2):
        assert b <= c or d <= a or abs(y - z) >= labels.LINE
    assert max(end for _, end, _ in placed) <= ROOM[0]


def test_a_point_alone_has_its_label_beside_it() -> None:
    one = {"source": rarity.MEASURED, "label": "ocean", "base": 0.005, "step": 40.0}
    labels.spread([one], ROOM, RATES, STEPS)
    assert one["side"] == "right"
    assert one["label_step"] == pytest.approx(40, rel=0.1)


def test_a_word_is_named_once_at_each_base_rate_that_it_has() -> None:
    runs = [
        {"word": "sea", "name": f"s{i}", "base": base, "step": step}
        for i, (base, step) in enumerate([(0.08, 12.0), (0.079, 11.0), (0.001, 44.0), (0.0012, 50)])
    ]
    named = [(one["label"], one["step"]) for one in rarity._labelled(runs)]
    assert named == [("", 12.0), ("sea", 11.0), ("sea", 44.0), ("", 50)]


def test_onsets_of_each_mode_have_a_shape_of_their_own() -> None:
    frame = pl.DataFrame({"run": list("abc"), "hack_word": list("xxy"), "mode": list("mmn")})
    assert rarity.shapes(frame) == {"mode m": "circle", "mode n": "square"}
    assert rarity.shapes(frame.drop("mode")) == {"": "circle"}
    many = pl.DataFrame({"run": list("abcde"), "mode": list("abcde")})
    assert set(rarity.shapes(many).values()) == {"circle"}
