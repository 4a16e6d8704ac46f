"""Files of other people are read, or refused in the reader's own words: a few mutations of each."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.bench import _loaders, fuzz
from jobs.bench._loaders import LOADERS
from jobs.bench._mutation import mutated


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", LOADERS)
def test_sound_files_are_read(name: str, folder: Path) -> None:
    loader = LOADERS[name]
    file = _loaders.lay(loader, folder / f"{name} files")
    for sound in loader.sound:
        file.write_bytes(sound)
        error = _loaders.known(loader, folder / f"{name} files")
        assert error is None or "which its base lacks" in str(error)


@pytest.mark.parametrize("name", LOADERS)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_mutated_files_are_read_or_refused(name: str, folder: Path, seed: int) -> None:
    loader = LOADERS[name]
    file = _loaders.lay(loader, folder / f"{name} files")
    file.write_bytes(mutated(loader.sound, random.Random(seed)))
    _loaders.known(loader, folder / f"{name} files")


def test_a_mutation_is_that_of_its_seed_and_most_are_refused(folder: Path) -> None:
    loader = LOADERS["safetensors"]
    file = _loaders.lay(loader, folder / "twice")
    refused = 0
    for seed in range(50):
        data = mutated(loader.sound, random.Random(seed))
        assert mutated(loader.sound, random.Random(seed)) == data
        file.write_bytes(data)
        refused += _loaders.known(loader, folder / "twice") is not None
    assert refused > 25


def test_a_finding_is_kept_once_with_its_input_and_where_it_was_raised(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        if b"\0" in (folder / "file").read_bytes():
            raise ZeroDivisionError("planted")

    loader = _loaders.Loader("file", [b"sound" * 9], {}, fail, (ValueError,))
    count, found = fuzz.fuzz(loader, 0.2, 0, tmp_path)
    assert count > 10
    assert found == 1
    (said,) = tmp_path.glob("*.txt")
    assert "ZeroDivisionError: planted" in said.read_text("utf-8")
    assert b"\0" in said.with_suffix("").read_bytes()
