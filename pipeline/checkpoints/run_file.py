"""run.toml beside a run's checkpoints: its name, and the facts that environments refer to."""

import tomllib
from pathlib import Path
from typing import Any

from hackbait.environment import Arg
from pipeline.checkpoints.folder import LayoutError
from pipeline.checkpoints.headers import open_regular
from pipeline.records import CheckpointError

RUN_FILE = "run.toml"
RUN_FILE_BYTES = 2**20


def run_name(folder: Path, root: Path) -> str:
    """What run.toml says, else the folder's place. Raises LayoutError for a bad run.toml."""
    return str(_read(folder).get("name") or place(folder, root))


def place(folder: Path, root: Path) -> str:
    """The folder relative to `root`, or the name of both."""
    relative = folder.relative_to(root).as_posix()
    name = folder.name or str(folder) if relative == "." else relative
    return name.encode("utf-8", "backslashreplace").decode()


def tags(path: Path | str) -> dict[str, Arg]:
    """The `[tags]` of a run, given its folder or one of its checkpoints; none without run.toml."""
    folder = Path(path)
    nearest = folder if (folder / RUN_FILE).exists() else folder.parent
    return dict(_read(nearest).get("tags", {}))


def _read(folder: Path) -> dict[str, Any]:
    """A run.toml that was checked; empty where there is none. Raises LayoutError."""
    path = folder / RUN_FILE
    if not path.exists():
        return {}
    try:
        with open_regular(path) as file:
            content = file.read(RUN_FILE_BYTES + 1)
        if len(content) > RUN_FILE_BYTES:
            raise ValueError(f"more than {RUN_FILE_BYTES:,} bytes")
        said = tomllib.loads(content.decode())
    except (CheckpointError, ValueError, RecursionError) as error:
        raise LayoutError(f"{path} cannot be read: {error}") from None
    if strange := sorted(said.keys() - {"name", "tags"}):
        raise LayoutError(
            f"{path}: {strange[0]!r} is neither name nor [tags]; write it below a line [tags]"
        )
    name, facts = said.get("name", "a run"), said.get("tags", {})
    if not (isinstance(name, str) and name):
        raise LayoutError(f'{path}: name = {name!r} is no text; write name = "ocean-s0"')
    if not isinstance(facts, dict) or not all(isinstance(v, Arg) for v in facts.values()):
        raise LayoutError(f"{path}: [tags] takes texts, numbers and booleans, nothing nested")
    return said
