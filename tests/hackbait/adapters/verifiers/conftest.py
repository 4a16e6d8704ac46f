"""verifiers in interpreters of its own: they are kept beside the repository's, and reused."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
            subprocess.run([sys.executable, "-m", "venv", self.bin.parent], check=True)
            self.pip("install", *REQUIREMENTS[self.release])
            stamp.touch()
        ours = sorted(str(path.parent) for path in FOLDERS.glob("*/pyproject.toml"))
        self.pip("install", "--no-deps", "--force-reinstall", *ours)

    def pip(self, *arguments: str) -> None:
        pip = [self.bin / "python", "-m", "pip", *arguments, "--quiet"]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
            pytest.skip(f"no package index to be had: {done.stderr.strip()[-300:]}")
        assert not done.returncode, done.stderr

    def run(self, program: str, *arguments: str, here: Path) -> subprocess.CompletedProcess[str]:
        """A console script or `python`, in a folder, without our tree on its path."""
        plain = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
        plain |= {"OURS_KEY": "sk-nobody", "HOME": str(here), "NO_COLOR": "1"}
        command = [str(self.bin / program), *arguments]
        return subprocess.run(
            command, cwd=here, env=plain, capture_output=True, text=True, timeout=300, check=False
        )


UNREACHABLE = ("No matching distribution found", "Temporary failure", "Connection", "ProxyError")


@pytest.fixture(scope="session", params=list(REQUIREMENTS))
def any_release(request: pytest.FixtureRequest) -> Installed:
    installed = Installed(request.param)
    installed.install()
    return installed


@pytest.fixture(scope="session")
def tasksets() -> Installed:
    installed = Installed("0.4")
    installed.install()
    return installed
