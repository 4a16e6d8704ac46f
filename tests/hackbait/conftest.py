"""Somebody's own environments, importable."""

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def on_path(folder):
    sys.path.insert(0, str(folder))
    before = set(sys.modules)
    yield
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def somebody():
    """The folder of somebody's own package, on the path as when a person starts there."""
    folder = Path(__file__).parent / "somebody"
    with on_path(folder):
        yield folder


@pytest.fixture
def own_module(tmp_path):
    """Writes a module of a package of one's own and gives its dotted id."""
    package = tmp_path / "own_package"
    package.mkdir()

    def write(name, source):
        (package / f"{name}.py").write_text(source)
        return f"own_package.{name}"

    with on_path(tmp_path):
        yield write
