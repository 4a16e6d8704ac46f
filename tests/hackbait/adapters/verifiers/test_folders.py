"""What an environment's folder for verifiers holds, without verifiers."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
FOLDERS = sorted(p.parent for p in (ROOT / "hackbait/adapters/verifiers").glob("*/pyproject.toml"))
STARTS = ["hackbait/hackword.py", "hackbait/market_structure.py"]


def needed() -> set[str]:
    """Files of hackbait that the environments and their adapters import, on and on."""
    adapters = (ROOT / "hackbait/adapters/verifiers").glob("*.py")
    front = {ROOT / start for start in STARTS} | set(adapters)
    seen: set[Path] = set()
    while front:
        seen |= front
        found = {path for source in front for path in imported(source)}
        front = {path for path in found if path.is_file()} - seen
    return {path.relative_to(ROOT).as_posix() for path in seen}


def imported(source: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                path = ROOT.joinpath(*name.split("."))
                yield from (path.with_suffix(".py"), path / "__init__.py")


def test_there_is_a_folder_an_environment() -> None:
    assert [folder.name for folder in FOLDERS] == ["hackword", "market_structure"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_wheel_carries_every_module_that_its_environment_imports(folder: Path) -> None:
    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    carried = table["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in carried.items():
        assert (folder / source).resolve() == ROOT / target
    due = needed()
    assert {"hackbait/text.py", "hackbait/market/reading.py"} < due
    assert not {file for file in due if not file.startswith(tuple(carried.values()))}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_is_installed_under_the_name_of_its_environment(folder: Path) -> None:
    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    assert table["project"]["name"] == folder.name
    assert table["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [folder.name]
    assert (folder / folder.name / "__init__.py").is_file()
