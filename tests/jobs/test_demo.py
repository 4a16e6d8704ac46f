"""The demo: what it says before its minutes of work."""

from pathlib import Path

import pytest

from jobs import command, demo


def test_the_first_line_says_where_the_demo_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").write_text("a file, so that no training can start")
    assert command.start(demo.main, ["--output", str(tmp_path), "--seeds", "1"]) == 2
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].startswith(f"{tmp_path}: 4 runs of 30 GRPO steps are trained")
    assert str(tmp_path / "runs") in shown.err
