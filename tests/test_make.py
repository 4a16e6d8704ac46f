"""What `make` runs."""

from pathlib import Path

RECIPES = (Path(__file__).parents[1] / "Makefile").read_text("utf-8").splitlines()


def test_pip_says_which_requirements_conflict_where_it_resolves_ours() -> None:
    resolving = [line for line in RECIPES if "pip install" in line and "--constraint" in line]
    assert len(resolving) == 3
    assert not [line for line in resolving if "--quiet" in line or " -q " in line]
