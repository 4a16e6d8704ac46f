import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.checkpoints import LayoutError, select

STEPS = [0, 2, 4, 5, 10, 50, 100]


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("all", STEPS),
        ("last", [100]),
        ("0:100:2", [0, 2, 4, 10, 50, 100]),
        ("0:50:5", [0, 5, 10, 50]),
        ("1:50:4", [5]),
        ("4:10", [4, 5, 10]),
        ("10:", [10, 50, 100]),
        (":4", [0, 2, 4]),
        ("::50", [0, 50, 100]),
        ("10,0, 5", [0, 5, 10]),
        ("0,last", [0, 100]),
        ("0:4,4:10", [0, 2, 4, 5, 10]),
    ],
)
def test_a_pattern_means_these_steps_the_stop_included(pattern: str, meant: list[int]) -> None:
    assert select(pattern, STEPS) == meant


@pytest.mark.parametrize("pattern", ["3", "0,3", "6:9", "100:0", "11:49:3"])
def test_a_part_that_matches_nothing_names_the_steps_there_are(pattern: str) -> None:
    with pytest.raises(LayoutError, match=r"there are 0, 2, 4, 5, 10, 50, 100$"):
        select(pattern, STEPS)


def test_a_long_list_of_steps_is_cut_in_the_message() -> None:
    with pytest.raises(LayoutError, match=r"there are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\., 999$"):
        select("1000", range(1000))


def test_nothing_can_be_picked_from_no_steps() -> None:
    with pytest.raises(LayoutError, match="no whole checkpoints"):
        select("last", [])


@pytest.mark.parametrize("pattern", ["", "0-100", "a", "0:10:0", "-1", "0:10:2:1", "1.5", "0,,5"])
def test_a_pattern_that_cannot_be_read_says_how_one_looks(pattern: str) -> None:
    with pytest.raises(LayoutError, match=r'write "0:100:2"'):
        select(pattern, STEPS)


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(0, 300), st.integers(1, 40))
def test_start_stop_and_stride_mean_an_inclusive_range(
    have: set[int], start: int, stride: int
) -> None:
    meant = sorted(have & set(range(start, 301, stride)))
    if meant:
        assert select(f"{start}:300:{stride}", sorted(have)) == meant
    else:
        with pytest.raises(LayoutError):
            select(f"{start}:300:{stride}", sorted(have))
