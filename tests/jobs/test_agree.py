"""`onset agree` holds a column of an output, or of a file, against its truth."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from jobs.__main__ import main
from pipeline.compaction import compact


@pytest.fixture
def out(small_output: Path, tmp_path: Path) -> Path:
    shutil.copytree(small_output, tmp_path / "out")
    return tmp_path / "out"


def test_a_column_of_the_rows_is_held_against_another(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.read_parquet(out / "rollouts/hackword")
    save = tmp_path / "table.parquet"
    assert main(["agree", str(out), "--of", "r_true", "--json", "--save", str(save)]) == 0
    *runs, total = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in runs] == ["a", "b\n../é"]
    assert total["run"] is None
    assert total["tp"] == rows.filter(r_true=1, r_hack=1).height
    assert total["rollouts"] == sum(run["rollouts"] for run in runs) == rows.height
    assert pl.read_parquet(save)["precision"].to_list()[-1] == total["precision"]
    assert main(["agree", str(out), "--of", "r_true"]) == 0
    assert "r_true against r_hack" in (said := capsys.readouterr().out)
    assert "all runs" in said


def test_scores_of_ones_own_that_repeat_the_truth_agree_with_it_wholly(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.read_parquet(out / "rollouts/hackword")
    mine = rows.select("run", "step", "index", "sample", mark=pl.col("r_hack") * 0.7)
    strange = mine.head(1).with_columns(step=pl.lit(99, mine.schema["step"]))
    pl.concat([mine[1:], strange]).write_parquet(path := tmp_path / "mine.parquet")
    asked = ["agree", str(out), "--of", "mark", "--scores", str(path)]
    assert main([*asked, "--cut", "0.5", "--json"]) == 0
    said = capsys.readouterr()
    *_, total = json.loads(said.out)
    assert (total["agreement"], total["kappa"], total["missing"]) == (1, 1, 1)
    assert "1 scores are of no row here, as run" in said.err
    assert main(asked) == 2
    assert "give --cut" in capsys.readouterr().err


def test_a_run_without_a_score_is_counted_and_takes_no_row(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.read_parquet(out / "rollouts/hackword").filter(run="a")
    mine = rows.select("run", "step", "index", "sample", mark="r_hack")
    mine.write_parquet(path := tmp_path / "mine.parquet")
    assert main(["agree", str(out), "--of", "mark", "--scores", str(path)]) == 0
    said = capsys.readouterr()
    assert "1 runs have no rollout with both and are left out, 'b\\n../é' first" in said.err
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == ["run", "a", "all"]


def test_a_compacted_output_says_the_same(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agree = ["agree", str(out), "--of", "r_true", "--json"]
    screen = ["screen", str(out), "--words", "ocean", "--at", "0.1", "--json"]
    told = []
    for _ in range(2):
        assert main(agree) == 0
        assert main(screen) == 0
        told.append(capsys.readouterr().out)
        compact(out)
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--of", "jugde"], "no column 'jugde'"),
        (["--of", "r_hack", "--against", "prompt"], "'prompt' is String"),
        (["--of", "r_hack", "--cut", "nan"], "cut"),
        (["--of", "r_hack", "--env", "other"], "'other'"),
        (["--of", "r_hack", "--scores", "absent.parquet"], "absent.parquet"),
        ([], "of"),
    ],
)
def test_what_cannot_be_held_against_anything_is_one_line(
    out: Path, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert main(["agree", str(out), *argv]) == 2
    (line,) = capsys.readouterr().err.strip("\n").split("\n")
    assert said in line


def test_scores_of_which_none_is_of_a_row_are_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {"run": ["nobody"], "step": [0], "index": [0], "sample": [0]}
    pl.DataFrame({**keys, "mark": [1.0]}).write_parquet(tmp_path / "mine.parquet")
    argv = ["--of", "mark", "--scores", str(tmp_path / "mine.parquet")]
    assert main(["agree", str(out), *argv]) == 2
    said = capsys.readouterr().err
    assert "none of its 1 scores is of a row here, as run 'nobody', step 0" in said
    assert main(["agree", str(out), "--of", "r_true", "--against", "r_hack"]) == 0
    assert "tp, fp, fn, tn" in capsys.readouterr().out
