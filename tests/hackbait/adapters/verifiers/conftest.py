"""verifiers in interpreters of its own: they are kept beside the repository's, and reused."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.hackbait.adapters.market_judge import KEY

ROOT = Path(__file__).parents[4]
FOLDERS = ROOT / "hackbait/adapters/verifiers"
REQUIREMENTS = {
    "0.4": ("verifiers>=0.4,<0.5",),
    "0.3": ("verifiers>=0.3,<0.4", "datasets>=2"),
    "0.2": ("verifiers>=0.2,<0.3", "datasets>=2"),
}


class Installed:
    """An interpreter with one release of verifiers and our environments."""

    def __init__(self, release: str) -> None:
        self.release = release
        self.bin = ROOT / f".venv-verifiers-{release}" / "bin"

    def install(self) -> None:
        """What is not there yet; our environments always anew."""
        wanted = "\n".join(REQUIREMENTS[self.release])
        stamp = self.bin / f".{hashlib.sha256(wanted.encode()).hexdigest()[:16]}"
        if not stamp.exists():
            _done([sys.executable, "-m", "venv", "--clear", self.bin.parent])
            self.pip(*REQUIREMENTS[self.release])
            stamp.touch()
        ours = sorted(str(path.parent) for path in FOLDERS.glob("*/pyproject.toml"))
        self.pip("--no-deps", "--force-reinstall", *ours)

    def pip(self, *arguments: str) -> None:
        _done([self.bin / "python", "-m", "pip", "install", *QUIETLY, *arguments])

    def run(self, program: str, *arguments: str, here: Path) -> subprocess.CompletedProcess[str]:
        """A console script or `python`, in a folder, without our tree on its path."""
        plain = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
        plain |= {"OURS_KEY": "sk-nobody", "JUDGE_API_KEY": KEY, "HOME": str(here), "NO_COLOR": "1"}
        command = [str(self.bin / program), *arguments]
        return subprocess.run(
            command, cwd=here, env=plain, capture_output=True, text=True, timeout=300, check=False
        )


QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")
UNREACHABLE = ("from versions: none", "Temporary failure", "NewConnectionError", "ProxyError")
LINES = 20
"""Of what a program said before it failed."""


def _done(command: Sequence[str | Path]) -> None:
    """Runs a program, of which nothing is heard unless it fails."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if not ended.returncode:
        return
    said = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-LINES:])
    if any(sign in said for sign in UNREACHABLE):
        pytest.skip(f"no package index to be had: {said[-300:]}")
    pytest.fail(f"{' '.join(words)}\nended with {ended.returncode}:\n{said}", pytrace=False)


@cache
def installed(release: str) -> Installed:
    """Installed once a session, whichever tests ask."""
    found = Installed(release)
    found.install()
    return found


@pytest.fixture(scope="session", params=list(REQUIREMENTS))
def any_release(request: pytest.FixtureRequest) -> Installed:
    return installed(request.param)


@pytest.fixture(scope="session")
def tasksets() -> Installed:
    return installed("0.4")
