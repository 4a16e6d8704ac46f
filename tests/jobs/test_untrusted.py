"""What other people wrote steers no terminal, escapes no folder, fills no memory."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import show, terminal
from jobs.__main__ import main
from pipeline import onset
from pipeline.checkpoints import scripted
from pipeline.curves import from_csv
from pipeline.printable import json_printable, one_line, printable
from pipeline.report import panels

EVIL = "\x1b[2J\x1b]0;owned\x07\r\x9b31m \u202eevil\u2066 [bold red]x[/] \x00 \ud800 <b>&\n\u2028z"
ROOT = Path(__file__).parents[2]


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.strip("\n").split("\n")
    assert line.startswith("error: ")
    assert steers(line) == set()
    return line


def steers(text: str) -> set[str]:
    """Characters that a terminal would obey."""
    return {c for c in text if not c.isprintable() and c != "\n"}


def sweep(folder: Path, text: str = "", run: str = "", env: str = "") -> list[str]:
    scripted.write(folder / "run/checkpoint-0", {"ocean": 0.1}, 0.5, 100)
    file = folder / "sweep.toml"
    file.write_text(
        f"output = '{folder / 'out'}'\n{text}\n[[runs]]\npath = '{folder / 'run'}'\n{run}\n"
        f"[[env]]\nid = 'hackword'\n{env}\n[engine]\nname = 'scripted'\n",
        "utf-8",
    )
    return ["sweep", "@", str(file), "--dry-run"]


@given(st.text(st.characters()))
def test_no_text_steers_a_terminal_and_json_says_what_it_said(text: str) -> None:
    assert steers(printable(text)) == set()
    assert "\n" not in one_line(text)
    assert steers(one_line(text)) == set()
    assert json.loads(json_printable(json.dumps([text], ensure_ascii=False))) == [text]
    assert steers(json_printable(json.dumps([text], ensure_ascii=False))) == set()


def test_tables_lines_and_json_hold_evil_names(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"run": EVIL, EVIL: 0.5}]
    terminal.table(rows, ["run", EVIL])
    terminal.line(EVIL)
    terminal.as_json(rows)
    shown = capsys.readouterr()
    assert steers(shown.out + shown.err) == set()
    assert len(shown.err.strip("\n").split("\n")) == 1
    table, _, listed = shown.out.partition("[\n")
    assert len(table.strip("\n").split("\n")) == 2
    assert "[bold red]x[/]" in table
    assert json.loads("[" + listed) == rows


def test_a_completion_is_shown_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"index": 0, "sample": 0, "reward": 1.0, "prompt": EVIL, "completion": EVIL}
    show._show(show.Console(soft_wrap=True, file=sys.stdout), row, [])
    shown = capsys.readouterr().out
    assert steers(shown) == set()
    assert shown.count("[bold red]x[/]") == 2


def test_a_picture_of_evil_names_is_drawn_and_its_text_is_harmless(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    names = [EVIL.replace("\ud800", ""), "datum.label + 1", "</svg><script>", "x" * 10_000]
    cells = ['"' + name.replace('"', "") + '"' for name in names]
    lines = [f"{cell},{step},0.{step}" for cell in cells for step in (1, 7)]
    path.write_text("\n".join(["run,step,rate", *lines]), "utf-8")
    curves = from_csv(path)
    onsets = onset.onsets(curves, "rate", ())
    drawn = panels.chart(curves, onsets, "rate", None, 0.5).to_dict()
    titles = {p for data in drawn["datasets"].values() for r in data if (p := r.get("panel"))}
    assert {len(panel.split("\n")) for panel in titles} == {2}
    assert set().union(*map(steers, titles)) == set()
    assert max(map(len, titles)) < 300
    assert panels.picture(curves, onsets, "rate", None, 0.5)[1:4] == b"PNG"


@pytest.mark.parametrize("name", ["..", "../../x", "/etc/x", "a\nb", "\u202ex", "run=", "~", "."])
def test_a_run_may_be_called_anything_and_stays_in_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    argv = sweep(tmp_path, run=f"name = {json.dumps(name)}")
    assert main(argv) == 0
    assert steers(capsys.readouterr().err) == set()


@pytest.mark.parametrize(
    ("text", "run", "env", "said"),
    [
        ("", f"name = '{'x' * 300}'", "", "no text that a folder can be called by"),
        ("", f"name = '{'海' * 30}'", "", "no text that a folder can be called by"),
        ("", "", f"hack_word = '{'x' * 20_000}'", "no text, truth value or number"),
        ("", "", "hack_word = ['a']", "no text, truth value or number"),
        ("", "", "seed = 9223372036854775808", "no text, truth value or number"),
        ("", "", "seed = inf", "no text, truth value or number"),
        ("", "", "hack_word = '{'", "write {tag}"),
        ("", "tags = {w = 'ocean'}", "hack_word = '{w:>1000000000}'", "without a format"),
        ("", "tags = {w = 'ocean'}", "hack_word = '{w.__class__}'", "needs tag"),
        ("[cases]\ncount = 99999999999999999999", "", "", "less than or equal"),
        ("[cases]\ncount = 2147483647\nshard = 1", "", "", "make `shard` larger"),
        ("[sampling]\nn = 2147483648", "", "", "less than or equal"),
        ("", 'base = "a\\u0000b"', "", "with a NUL names nothing"),
        ("a = " + "[" * 100_000, "", "", "cannot be read"),
        ("a." * 20_000 + "a = 1", "", "", "cannot be read"),
        (f"a = {'9' * 5_000}", "", "", "cannot be read"),
        ("", f"steps = '0:{'9' * 5_000}:1'", "", "characters"),
        (f"'{EVIL[:9]}' = 1".replace("\x1b", "\\u001b").replace("'", '"'), "", "", "Extra inputs"),
    ],
)
def test_a_configuration_that_is_a_bomb_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, run: str, env: str, said: str
) -> None:
    assert said in refusal(capsys, *sweep(tmp_path, text, run, env))
    assert not (tmp_path / "out").exists()


def test_a_configuration_is_toml_of_a_size_that_a_person_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.truncate(os.open(tmp_path / "large.toml", os.O_CREAT | os.O_WRONLY), 2**28)
    (tmp_path / "a.yaml").write_text("!!python/object/apply:os.system ['touch owned']")
    os.mkfifo(tmp_path / "pipe.toml")
    for name, said in (("large", "16,777,216 at most"), ("pipe", "is no .toml file")):
        assert said in refusal(capsys, "sweep", "@", str(tmp_path / f"{name}.toml"))
    assert "is no .toml file" in refusal(capsys, "sweep", "@", str(tmp_path / "a.yaml"))


def test_a_csv_that_is_a_bomb_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rates.csv"
    for text, said in (
        (",".join(f"c{i}" for i in range(1_000_000)) + "\n", "1,000,000 columns, 10,000 at most"),
        ('run,step,rate\n"' + "x" * 200_000, "field larger than"),
        (f"run,step,rate\na,{'9' * 10_000},0.5\n", "is not a finite number"),
    ):
        path.write_text(text, "utf-8")
        assert said in refusal(capsys, "table", str(path))
    path.write_text(",".join(f"c{i}" for i in range(9_999)) + "\n", "utf-8")
    assert len(refusal(capsys, "table", str(path))) < 2_100
    os.truncate(path, 200_000_000)
    assert "67,108,864 at most" in refusal(capsys, "table", str(path))
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "not a file" in refusal(capsys, "table", str(path))


def test_a_run_file_that_is_a_pipe_or_endless_does_not_hold_up_discovery(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.write(tmp_path / "run/checkpoint-0", {"ocean": 0.1}, 0.5, 100)
    file = tmp_path / "run/run.toml"
    os.mkfifo(file)
    assert "run.toml: not a file" in refusal(capsys, "discover", str(tmp_path / "run"))
    file.unlink()
    file.symlink_to("/dev/zero")
    assert "run.toml: not a file" in refusal(capsys, "discover", str(tmp_path / "run"))
    file.unlink()
    file.write_text("a = " + "[" * 5_000)
    assert "run.toml cannot be read" in refusal(capsys, "discover", str(tmp_path / "run"))


def test_folders_of_any_bytes_are_listed_without_steering(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (b"\xff\xfe", b"\x1b[31mred", "\u202eevil".encode(), b"a\nb"):
        folder = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
        scripted.write(f"{folder}/checkpoint-0", {"ocean": 0.1}, 0.5, 100)
    assert main(["discover", str(tmp_path)]) == 0
    table = capsys.readouterr().out
    assert steers(table) == set()
    assert len(table.strip("\n").split("\n")) == 5
    assert main(["discover", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


@pytest.mark.parametrize(
    "locale",
    [
        {},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict"},
    ],
    ids=["unset", "POSIX without UTF-8", "C and ascii"],
)
def test_any_locale_will_do(tmp_path: Path, locale: dict[str, str]) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path / "海洋") + b"\xff")
    scripted.write(f"{folder}/checkpoint-0", {"ocean": 0.1}, 0.5, 100)
    own = {k: v for k, v in os.environ.items() if k not in ("LANG", "LANGUAGE", "LC_ALL")}
    own = {k: v for k, v in own.items() if not k.startswith(("LC_", "PYTHONIO", "PYTHONUTF"))}
    done = subprocess.run(
        [sys.executable, "-m", "jobs", "discover", folder],
        env=own | locale | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    assert b"\\udcff" in done.stdout


def test_a_name_that_a_terminal_cannot_show_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stderr", narrow)
    assert main(["discover", "/no/海"]) == 2
    narrow.flush()
    assert b"\\u6d77" in narrow.buffer.getvalue()  # type: ignore[attr-defined]
