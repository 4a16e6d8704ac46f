"""What looks like a checkpoint and no layout reads: named with its cure, never loaded."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pipeline.checkpoints.folder import UNKNOWN_STEP, Folder, Found

NUMBERED = re.compile(
    r"(?s)(?:best[_-]|tmp[_-])?(?:global[_-]?)?(?:step|checkpoint|ckpt|iter|iteration|epoch)[_-]?"
    r"(?P<step>[0-9]+)(?![0-9]).*"
)
"""Folder names that say a step in some trainer's way, finished or not."""
NUMBERED_FILE = re.compile(r"(?:model_|checkpoint-)(?P<step>[0-9]{1,9})(?:\.pt)?")
"""nanochat's weights; or a link named as a checkpoint."""
INSIDE = ("actor", "policy", "trainer", "weight", "weights", "model", "pytorch_model_fsdp_0")
"""Where trainers put the policy's weights inside a step's folder."""

PICKLE = (
    "pickle only, which is never loaded; load it where it was trained and "
    "save_pretrained(..., safe_serialization=True)"
)
SHARDS = (
    (
        "*.distcp",
        "torch DCP shards; convert them first (prime-rl: scripts/dcp_to_hf.py, "
        "accelerate: accelerate merge-weights)",
    ),
    ("model_world_size_*_rank_*.pt", "verl FSDP shards; run python -m verl.model_merger first"),
    ("*_model_states.pt", "DeepSpeed shards; run its zero_to_fp32.py with --safe_serialization"),
)
SHAPES = (
    *SHARDS,
    ("pytorch_model*.bin", PICKLE),
    ("adapter_model.bin", PICKLE),
    ("model*.pt", PICKLE),
    (
        "*.safetensors",
        "numbered as no layout here does it; once it is finished, link it as checkpoint-{step} "
        "beside the others of its run",
    ),
)
"""File patterns and what is said of them, the first that fits."""


def lookalikes(folder: Folder, run: str, claimed: set[str]) -> list[Found]:
    """What in `folder` looks like a checkpoint, apart from the names that a layout claims."""
    found = []
    for name in folder.folders:
        numbered = NUMBERED.fullmatch(name)
        if numbered and name not in claimed:
            why = _numbered(folder.enter(name), int(numbered["step"]))
            found += [_skip(folder.path / name, run, int(numbered["step"]), why)] if why else []
    for name in sorted(folder.files):
        numbered = NUMBERED_FILE.fullmatch(name)
        if numbered:
            why = PICKLE if name.endswith(".pt") else "leads nowhere; mend or remove the link"
            found.append(_skip(folder.path / name, run, int(numbered["step"]), why))
    shards = _cure(folder.files, SHARDS)
    return [*found, _skip(folder.path, run, UNKNOWN_STEP, shards)] if shards else found


def unreadable(folder: Folder) -> str:
    """Why a folder could not be listed; empty when it could."""
    return f"cannot be read: {folder.error}" if folder.error else ""


def _numbered(folder: Folder, step: int) -> str:
    """What keeps a folder that is named a step from being used; empty for one of another kind."""
    if any(name.startswith("checkpoint-") for name in folder.folders):
        return ""  # a run, whatever its name says
    inner = [folder.enter(n) for n in folder.folders if n in INSIDE or n.startswith("global_step")]
    names = folder.files.union(*(f.files for f in inner))
    why = unreadable(folder) or _cure(names, SHAPES).format(step=step)
    if not why and "checkpoint" in folder.path.name and not folder.folders:
        return "holds no weights: not finished, or cleaned up"
    return why


def _cure(names: frozenset[str], shapes: Sequence[tuple[str, str]]) -> str:
    """What is said of the first pattern that fits a name; empty where none does."""
    return next((cure for p, cure in shapes if any(fnmatchcase(n, p) for n in names)), "")


def _skip(path: Path, run: str, step: int, why: str) -> Found:
    return Found(run, step, "full", path, "skipped", why)
