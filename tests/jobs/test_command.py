"""Bad input gets one clear line and exit code 2, whatever the verb."""

from pathlib import Path

import pytest

from jobs import train
from jobs.__main__ import main, verbs
from jobs.command import one_line
from pipeline.checkpoints import scripted


def run(folder: Path, *steps: int) -> Path:
    for step in steps or (0, 2):
        scripted.write(folder / f"checkpoint-{step}", {"ocean": step / 100}, 0.5, 100)
    return folder


def toml(folder: Path, text: str = "", **changes: str) -> str:
    values = {"path": f'"{folder / "run"}"', "word": '"ocean"', "steps": '"all"', **changes}
    path = folder / "sweep.toml"
    path.write_text(
        f'output = "{folder / "out"}"\n{text}\n'
        f"[[runs]]\npath = {values['path']}\nsteps = {values['steps']}\n"
        f'[[env]]\nid = "hackword"\nhack_word = {values["word"]}\n'
        '[engine]\nname = "scripted"\n'
    )
    return str(path)


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.strip().splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in shown.err
    return line


def test_every_verb_has_a_line_of_help_and_a_help_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert {
        "sweep",
        "train",
        "discover",
        "plan",
        "curves",
        "table",
        "show",
        "demo",
        "bench",
    } <= set(verbs())
    for verb, about in verbs().items():
        assert about
        assert f"  {verb}" in shown


def test_an_unknown_verb_names_the_near_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'sweep'?" in refusal(capsys, "swep")


def test_a_value_that_cannot_be_is_named_by_its_flag_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refusal(capsys, "power", "--words", "1", "--runs", "0") == (
        "error: --words: Input should be greater than or equal to 2 (got '1'); "
        "--runs[0]: Input should be greater than or equal to 1 (got '0')"
    )


def test_a_library_that_is_not_installed_is_named_with_its_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(argv: object) -> int:
        raise ModuleNotFoundError("No module named 'trl'", name="trl")

    monkeypatch.setattr(train, "main", lacking)
    assert refusal(capsys, "train").endswith("needs trl: pip install 'hackbait-onset[train]'")


def test_a_missing_file_of_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.toml" in refusal(capsys, "sweep", "@", "nowhere.toml")


def test_an_unknown_key_names_the_near_miss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    line = refusal(capsys, "sweep", "@", toml(tmp_path, "[sampling]\ntemprature = 1.0"))
    assert "temprature" in line
    assert "did you mean" in line


def test_an_unknown_argument_of_an_environment_names_the_valid_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    line = refusal(capsys, "sweep", "@", toml(tmp_path, word='"ocean"\nhackword = "x"'))
    assert "hack_word" in line


@pytest.mark.parametrize("word", ['"海洋"', '""', '" ocean"', "3"])
def test_a_word_that_cannot_be_found_whole_is_refused(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    assert "word" in refusal(capsys, "sweep", "@", toml(tmp_path, word=word))


def test_a_missing_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not there" in refusal(capsys, "sweep", "@", toml(tmp_path, path='"/no/such/run"'))
    assert "/no/such/run" in refusal(capsys, "discover", "/no/such/run")


def test_an_empty_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    assert "no checkpoint" in refusal(capsys, "sweep", "@", toml(tmp_path))


def test_steps_that_match_nothing_name_those_that_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run", 10, 20)
    line = refusal(capsys, "sweep", "@", toml(tmp_path, steps='"0:9:1"'))
    assert "10" in line


@pytest.mark.parametrize("temperature", ["3", "0.001", "-1", "inf"])
def test_a_temperature_that_an_engine_would_change_or_refuse_is_refused_before_anything(
    temperature: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    line = refusal(capsys, "sweep", "@", toml(tmp_path), "--sampling.temperature", temperature)
    assert f"temperature {temperature} is neither 0 (greedy) nor in [0.01, 2]: vLLM" in line


def test_a_context_that_no_prompt_fits_in_is_refused_before_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    flags = ["--engine.name", "hf", "--engine.max_context", "256"]
    assert "holds no prompt beside" in refusal(capsys, "sweep", "@", toml(tmp_path), *flags)
    assert not (tmp_path / "out").exists()


def test_an_unknown_engine_names_the_engines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    line = refusal(capsys, "sweep", "@", toml(tmp_path), "--engine.name", "vlm")
    assert "scripted" in line


@pytest.mark.parametrize("below", ["", "/runs/a"])
def test_an_output_that_is_a_file_or_lies_under_one_is_refused_naming_it(
    below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    file = tmp_path / "out"
    file.write_text("")
    said = f"{file} is a file; give a folder"
    for words in (["sweep", "@", toml(tmp_path)], ["plan", "@", toml(tmp_path)], ["demo"]):
        assert said in refusal(capsys, *words, "--output", f"{file}{below}")
    assert file.read_text() == ""


@pytest.mark.parametrize("verb", ["discover", "curves", "table", "show"])
def test_a_missing_path_is_asked_for_in_the_place_where_it_is_written(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"a path is missing: onset {verb} PATH ..." in refusal(capsys, verb)


def test_a_misspelt_path_flag_is_named_before_the_path_is_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "--pth" in refusal(capsys, "table", "--pth", "out")


@pytest.mark.parametrize("verb", ["curves", "demo", "discover", "plan", "show", "sweep", "table"])
def test_the_help_page_of_a_verb_shows_its_own_usage(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code in (None, 0)
    assert capsys.readouterr().out.startswith(f"usage: onset {verb} ")


@pytest.mark.parametrize(
    ("verb", "flag", "name", "suffix"),
    [
        ("table", "--save", "x.csv", ".parquet"),
        ("curves", "--save", "x", ".parquet"),
        ("table", "--picture", "x.svg", ".png"),
        ("table", "--picture", "x.parquet", ".png"),
    ],
)
def test_a_file_is_not_written_under_a_name_that_says_another_format(
    verb: str,
    flag: str,
    name: str,
    suffix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("run,step,rate\na,0,0.1\na,1,0.7\n")
    line = refusal(capsys, verb, str(rates), flag, str(tmp_path / name))
    assert f"give a name that ends in {suffix}" in line
    assert not (tmp_path / name).exists()


def test_a_table_and_its_picture_are_saved_where_they_were_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = tmp_path / "rates.CSV"
    rates.write_text("run,step,rate\na,0,0.1\na,1,0.7\n")
    saved, drawn = tmp_path / "new/table.parquet", tmp_path / "new/curves.PNG"
    assert main(["table", str(rates), "--save", str(saved), "--picture", str(drawn)]) == 0
    assert saved.read_bytes()[:4] == b"PAR1"
    assert drawn.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize("verb", ["curves", "table"])
def test_rates_in_a_file_that_is_no_csv_are_refused_as_such(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = tmp_path / "rates.tsv"
    rates.write_text("run\tstep\trate\na\t0\t0.1\n")
    line = refusal(capsys, verb, str(rates))
    assert f"{rates} is a file; give the output folder of a sweep" in line
    assert "take a .csv of run, step, rate" in line


def test_completions_are_shown_of_a_folder_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rates.csv").write_text("run,step,rate\n")
    line = refusal(capsys, "show", str(tmp_path / "rates.csv"), "--run", "a", "--step", "0")
    assert "rates.csv is a file; give the output folder" in line


def test_a_table_of_a_folder_without_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no partition" in refusal(capsys, "table", str(tmp_path))


def test_a_csv_with_a_rate_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("run,step,rate\na,0,0.1\na,1,1.7\n")
    assert "1.7" in refusal(capsys, "table", str(path))


def test_a_dry_run_prints_the_plan_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    assert main(["sweep", "@", toml(tmp_path), "--dry-run"]) == 0
    assert "2 checkpoints" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_plan_probes_one_partition_and_tells_hours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run")
    assert main(["plan", "@", toml(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "hours" in shown
    assert "rollouts to generate: 2,048" in shown
    assert not (tmp_path / "out").exists()


def test_a_torn_checkpoint_is_listed_and_the_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run", 0, 2, 4)
    (tmp_path / "run/checkpoint-2/script.json").write_text("{")
    assert main(["discover", str(tmp_path / "run")]) == 1
    assert "skipped" in capsys.readouterr().out


def test_an_error_of_the_system_is_its_reason_and_its_file() -> None:
    assert one_line(OSError(28, "No space left on device", "x.parquet")) == (
        "No space left on device: x.parquet"
    )
    assert one_line(ValueError("a\n  b")) == "a b"


def test_an_unknown_bench_names_the_benches(capsys: pytest.CaptureFixture[str]) -> None:
    assert "overhead" in refusal(capsys, "bench", "overhed")
    assert main(["bench", "--help"]) == 0
    assert "relaunch" in capsys.readouterr().out


def test_rates_are_printed_even_where_every_row_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.csv").write_text("run,step,rate,n\na,5,0.25,8\n")
    assert main(["curves", str(tmp_path / "one.csv")]) == 0
    names, figures = (line.split() for line in capsys.readouterr().out.splitlines())
    shown = dict(zip(names, figures, strict=True))
    assert (shown["step"], shown["rate"], shown["rollouts"], shown["nulls"]) == (
        "5",
        "0.25",
        "8",
        "0",
    )
