"""The full fingerprint of a checkpoint where it lies, without an engine."""

from pathlib import Path

from pipeline import engines
from pipeline.checkpoints.headers import open_regular, read_json
from pipeline.checkpoints.identity import (
    ADAPTER_CONFIG,
    adapter_fingerprint,
    fingerprint_files,
    weight_digest,
)
from pipeline.records import Checkpoint, CheckpointError

CHUNK_BYTES = 2**22


def fingerprint(checkpoint: Checkpoint) -> str:
    """Of all bytes that an engine would load. CheckpointError where they cannot be read."""
    folder = Path(checkpoint.path)
    if checkpoint.kind == "script":
        said: str = engines.load("scripted", {}).load(checkpoint)
        return said
    own = _digest(folder)
    if checkpoint.kind != "adapter":
        return own
    if not checkpoint.base or not Path(checkpoint.base).is_dir():
        raise CheckpointError(f"its base {checkpoint.base or '(not named)'} is no folder here")
    config = read_json(folder / ADAPTER_CONFIG)
    return adapter_fingerprint(_digest(Path(checkpoint.base)), own, config)


def _digest(folder: Path) -> str:
    digest = weight_digest()
    for path in fingerprint_files(folder):
        with open_regular(path) as file:
            digest.update(f"{path.name} {path.stat().st_size} ".encode())
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
