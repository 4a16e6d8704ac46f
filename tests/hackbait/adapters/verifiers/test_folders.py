"""What an environment's folder for verifiers holds, without verifiers."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
FOLDERS = sorted(p.parent for p in (ROOT / "hackbait/adapters/verifiers").glob("*/pyproject.toml"))
ELSEWHERE = {"hackbait/adapters/trl.py"}
"""Of hackbait, and no part of a wheel for verifiers; nor are the wheels' own folders."""


def test_there_is_a_folder_an_environment() -> None:
    assert [folder.name for folder in FOLDERS] == ["hackword", "market_structure"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_wheel_carries_every_module_of_the_graders(folder: Path) -> None:
    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    carried = table["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in carried.items():
        assert (folder / source).resolve() == ROOT / target
    due = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "hackbait").rglob("*.py")
        if not any(path.is_relative_to(other) for other in FOLDERS)
    }
    assert {file for file in due if not file.startswith(tuple(carried.values()))} == ELSEWHERE


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_is_installed_under_the_name_of_its_environment(folder: Path) -> None:
    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    assert table["project"]["name"] == folder.name
    assert table["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [folder.name]
    assert (folder / folder.name / "__init__.py").is_file()
