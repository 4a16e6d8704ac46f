"""A CSV of another tool: what is taken, and one line for each thing that is wrong."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.readings import Reading, ReadingError, ends, read, tags


def file(folder: Path, text: str) -> Path:
    path = folder / "curve.csv"
    path.write_bytes(text.encode())
    return path


def test_other_columns_spaces_and_a_byte_order_mark_are_no_matter(tmp_path: Path) -> None:
    path = file(tmp_path, "\ufeffword, rate ,step,run\r\nocean,0.5, 3.0 ,a\r\n\r\n")
    assert read(path) == [Reading("a", 3, 0.5, None, None)]


def test_other_columns_are_tags_of_their_run_where_they_do_not_change(tmp_path: Path) -> None:
    path = file(
        tmp_path, "\ufeffrun,word,step , loss,rate\na,ocean,0,1,0\nb, x,0,1,0\na,ocean,1,2,"
    )
    assert tags(path) == {"a": {"word": "ocean"}, "b": {"word": "x", "loss": "1"}}


def test_a_file_may_say_where_its_runs_were_to_end(tmp_path: Path) -> None:
    text = "run,step,rate,steps\na,10,,40\na,0,0.1,40\nb,0,0.1,\nb,5,0.2,\nc,7,0.3,9\nc,8,0.3,8\n"
    assert ends(file(tmp_path, text)) == {"a": (10, 40), "b": (5, 0), "c": (8, 0)}
    assert ends(file(tmp_path, "run,step,rate\na,3,0.1\n")) == {"a": (3, 0)}
    with pytest.raises(ReadingError, match=r"run 'a': steps must be a whole number of updates"):
        ends(file(tmp_path, "run,step,rate,steps\na,3,0.1,4.5\n"))


def test_rows_with_an_empty_rate_are_left_out(tmp_path: Path) -> None:
    path = file(tmp_path, "run,step,rate,n,hits\na,0,,,\na,1,0.25,4,1\na,2, ,,\n")
    assert read(path) == [Reading("a", 1, 0.25, 4, 1.0)]


@pytest.mark.parametrize("last", ["a", "a,10", "a,10,0.5", "a,10,0.5,4"])
def test_a_row_that_was_cut_off_is_no_missing_rate_but_refused_with_its_line(
    tmp_path: Path, last: str
) -> None:
    path = file(tmp_path, f"run,step,rate,n,hits\na,0,0.1,,\n{last}")
    cells = len(last.split(","))
    with pytest.raises(ReadingError, match=f", line 3: {cells} cells where the header has 5; "):
        read(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r": empty; the first line names the columns: run,step,rate$"),
        ("run,step,rate, rate\na,0,0.1,0.9\n", r": column 'rate' stands 2 times; keep one$"),
        ("run,step,rate\na,0,-0.2\n", r"rate -0.2 is not within \[0, 1\]; leave it empty"),
        ("run,step,rate\na,0,20\n", r"rate 20 is not within \[0, 1\]; divide percent by 100"),
        ("run,rate\na,1\n", r": no column 'step'; it has run, rate$"),
        (
            "run;step;rate\na;1;1\n",
            r": no column 'run'; it has run;step;rate; columns are parted by commas$",
        ),
        ("run,step,rate\n", r": no row with a rate"),
        ("run,step,rate\na,0,\n", r": no row with a rate"),
        ("run,step,rate\na,0,0,5\n", r", line 2: more cells than the header"),
        (
            'run,step,rate\na,0,0.1\n"b,0,0.5\nc,0,0.5\n',
            r", line 3: a quote that opens here ends on a later line; close it$",
        ),
        ('run,step,rate\na,"0,0.1\nb,1,0.2\n', r", line 2: a quote that opens here"),
        ('run,step,rate\n"a\nb",0,"0.\n5"\n', r", line 2: a quote that opens here"),
        ("run,step,rate\n,0,0.5\n", r", line 2, run '', step '0': run is empty"),
        ("run,step,rate\na,,0.5\n", r", line 2, run 'a', step '': step '' is not a finite"),
        ("run,step,rate\na,1.5,0.5\n", r"step '1.5': step must be a whole number"),
        ("run,step,rate\na,-1,0.5\n", r"step '-1': step must be a whole number"),
        ("run,step,rate\na,2147483648,0.5\n", r"number of updates, 0 to 2,147,483,647 \(int32\)$"),
        ("run,step,rate\na,0,0.1\na,1,inf\n", r", line 3, .*rate 'inf' is not a finite number"),
        ("run,step,rate\na,0,nan\n", r"rate 'nan' is not a finite number"),
        ("run,step,rate\na,0,50%\n", r"rate '50%' is not a finite number"),
        ("run,step,rate\na,0,50\n", r"rate 50 is not within \[0, 1\]; divide percent by 100$"),
        ("run,step,rate\na,0,-0.1\n", r"rate -0.1 is not within \[0, 1\]"),
        ("run,step,rate\na,0,0\nb,0,0\na,0,0\n", r", line 4: run 'a' has step 0 twice"),
        ("run,step,rate,n\na,0,0.5,0\n", r"n 0 is no number of rollouts"),
        ("run,step,rate,n\na,0,0.5,2.5\n", r"n 2.5 is no number of rollouts"),
        ("run,step,rate,n\na,0,0.5,1e30\n", r"n 1e\+30 is no number of rollouts"),
        ("run,step,rate,hits\na,0,0.5,-1\n", r"hits -1 is below 0"),
        ("run,step,rate,n,hits\na,0,0.5,8,2\n", r"hits 2 is not n x rate = 4;"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(ReadingError, match=complaint) as error:
        read(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_missing_file_and_one_that_is_no_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        ReadingError, match=r"none.csv: not a CSV that can be read \(.*No such file"
    ):
        read(tmp_path / "none.csv")
    (tmp_path / "image.csv").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ReadingError, match=r"image.csv: not a CSV that can be read \(.*utf-8"):
        read(tmp_path / "image.csv")


readings = st.builds(
    Reading,
    st.text("ab,\"' ü", min_size=1).map(str.strip).filter(bool),
    st.integers(0, 2**31 - 1),
    st.floats(0, 1),
    st.none() | st.integers(1, 10**6),
    st.none(),
)


@given(st.lists(readings, min_size=1, unique_by=lambda r: (r.run, r.step)))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.mktemp("csv") / "curve.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(["run", "step", "rate", "n", "hits"])
        lines.writerows([r.run, r.step, repr(r.rate), r.n, r.hits] for r in rows)
    assert read(path) == rows
