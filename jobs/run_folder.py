"""The folder of a training run: what it says of itself, and where it goes on."""

import tomllib
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w
from pydantic_config import ConfigFileError

from pipeline.checkpoints import LayoutError, discover
from pipeline.records import CheckpointError

SETTINGS, FACTS = "config.toml", "run.toml"
FREE = {"output", "steps", "save_every", "micro_batch", "device", "threads"}
"""What may change when a run is continued: none of it changes an update."""


def newest(output: Path) -> tuple[int, Path | None]:
    """Step and folder of the last whole checkpoint; 0 and None where there is none yet.

    Raises CheckpointError when that one cannot be gone on from.
    """
    whole = {}
    with suppress(LayoutError):
        whole = {found.step: found.path for found in discover(output) if found.status == "ok"}
    if not whole:
        return 0, None
    step, folder = max(whole.items())
    if step and not any(folder.glob("optimizer*")):
        raise CheckpointError(f"{folder} has no optimizer state to go on from; give another output")
    return step, folder


def refuse_another(output: Path, settings: Mapping[str, Any], free: Container[str]) -> None:
    """Raises ConfigFileError where the folder holds a run of other settings than the free ones."""
    path = output / SETTINGS
    if not path.exists():
        return
    before = tomllib.loads(path.read_text("utf-8"))
    changed = sorted(
        key
        for key in settings.keys() | before.keys()
        if key not in free and settings.get(key) != before.get(key)
    )
    if changed:
        raise ConfigFileError(
            f"{output} holds a run with another {', '.join(changed)}; give another output"
        )


def describe(output: Path, settings: Mapping[str, Any], tags: Mapping[str, Any]) -> None:
    """The settings, to repeat the run; its name and tags, for those who look for runs."""
    output.mkdir(parents=True, exist_ok=True)
    facts = {"name": output.resolve().name, "tags": dict(tags)}
    for name, content in ((SETTINGS, settings), (FACTS, facts)):
        whole = output / f".{name}"
        whole.write_text(tomli_w.dumps(content), "utf-8")
        whole.replace(output / name)
