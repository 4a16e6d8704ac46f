"""A few runs of each shape keep the limits that 2,000 are held to, and the limits can be missed."""

import pytest

from jobs.bench import orders

RUNS = 20


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return orders.measure(RUNS, {shape for shape, _ in orders.LIMITS})


def test_few_runs_keep_the_limits_of_many(rows: list[dict[str, object]]) -> None:
    assert [row["name"] for row in orders.limited(rows) if not row["ok"]] == []


def test_a_missed_limit_is_told(rows: list[dict[str, object]]) -> None:
    worse = [{**row, "checkpoints": 30.0, "within 1": 0.9, "gross": 0.001} for row in rows]
    missed = [row["name"] for row in orders.limited(worse) if not row["ok"]]
    assert "checkpoints, narrow, adaptive" in missed
    assert "within 1, narrow, adaptive, 8 workers" in missed
    assert "gross, spike, adaptive, trainer's log" in missed
    assert not any("bisection" in name for name in missed)


def test_bisection_takes_another_crossing_and_a_grid_is_coarse(
    rows: list[dict[str, object]],
) -> None:
    by_place = {(row["shape"], row["order"]): row for row in rows}
    assert by_place["spike", "bisection"]["gross"] == 1
    assert by_place["narrow", "every 25th"]["within 1"] < 0.5  # type: ignore[operator]
    assert by_place["narrow", "every checkpoint"]["within 1"] == 1


def test_shapes_cross_where_they_say(rows: list[dict[str, object]]) -> None:
    assert {row["gross"] for row in rows if row["order"] == "every checkpoint"} == {0.0}
