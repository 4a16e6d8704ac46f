"""What counts as another text, and when that is a miss."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait.environment import Case
from jobs.bench import repeat
from pipeline import engines
from pipeline.checkpoints import scripted
from pipeline.records import Checkpoint, Sampling


@given(st.permutations(range(20)))
def test_texts_drawn_in_any_order_are_put_back_where_they_belong(order: Sequence[int]) -> None:
    texts = [f"text {i}" for i in range(20)]
    assert repeat.restored([texts[i] for i in order], order) == texts


@pytest.mark.parametrize(
    ("determinism", "limit", "ok"), [("text", "<= 0", False), ("none", None, True)]
)
def test_another_text_is_a_miss_only_where_equal_ones_are_promised(
    determinism: str, limit: str | None, ok: bool
) -> None:
    full = [["a", "b", "b"], ["a"]]
    found = repeat.row("way", full, [["a", "b", "c"], ["x"]], determinism)
    assert found["value"] == 2
    assert found["unit"] == "of 4 (2 unlike texts)"
    assert (found["limit"], found["ok"]) == (limit, ok)
    assert repeat.row("way", full, full, determinism)["ok"]


@pytest.mark.parametrize("size", [1, 7, 20, repeat.FULL])
def test_batches_of_any_size_draw_each_rollout_once_and_in_order(size: int, tmp_path: Path) -> None:
    engine = engines.load("scripted", {})
    path = scripted.write(tmp_path / "checkpoint-1", {"ocean": 0.5})
    engine.load(Checkpoint("run", 1, str(path), "script", ""))
    cases = [Case(str(i), i, ({"role": "user", "content": str(i)},), "1") for i in range(20)]
    asked = [(case, seed) for seed, case in enumerate(cases)]
    sampling = Sampling(n=1)
    one_by_one = [engine.generate([case], [[seed]], sampling)[0][0].text for case, seed in asked]
    assert repeat.draw(engine, asked, sampling, size) == one_by_one
