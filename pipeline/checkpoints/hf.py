"""Hugging Face folders: `checkpoint-N` of TRL and the Trainer, and a model by itself.

Whole means: the weights are complete by their own headers, the configuration is there, and the
trainer says that it finished (trainer_state.json, written last). Where no checkpoint of the run
has that file, a later checkpoint or two quiet minutes say it instead.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.checkpoints.folder import Folder, Found
from pipeline.checkpoints.headers import Extent, header, open_regular, read_json
from pipeline.checkpoints.identity import (
    ADAPTER,
    ADAPTER_CONFIG,
    FULL,
    FULL_INDEX,
    fingerprint_files,
    weight_map,
)
from pipeline.checkpoints.shapes import PICKLE
from pipeline.records import CheckpointError, CheckpointKind

NAME = re.compile(r"checkpoint-(0|[1-9][0-9]{0,8})")
STATE = "trainer_state.json"
INCOMPLETE = "checkpoint-is-incomplete.txt"
QUIET_SECONDS = 120.0
HEAD_BYTES = 4096
GLOBAL_STEP = re.compile(rb'^  "global_step": ([0-9]+),?$', re.MULTILINE)
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "adapter_model.bin")


def find(folder: Folder, run: str) -> Iterator[Found]:
    """Checkpoints numbered in `folder`, and the model that `folder` itself is (step 0)."""
    steps = {name: int(match[1]) for name in folder.folders if (match := NAME.fullmatch(name))}
    ours = {name: step for name, step in steps.items() if _is_model(folder.enter(name))}
    marked = any(STATE in folder.enter(name).files for name in ours)
    last = max(steps.values(), default=0)
    for name, step in ours.items():
        inside = folder.enter(name)
        why = _unfinished(inside, step, marked=marked, last=step == last)
        yield _found(inside, run, step, why)
    if _is_model(folder):
        yield _found(folder, run, 0, "")


def _found(folder: Folder, run: str, step: int, why: str) -> Found:
    """Weights come first among the reasons: a trainer's note says less than a torn file."""
    kind: CheckpointKind = "adapter" if _is_adapter(folder) else "full"
    base = None
    try:
        if kind == "adapter":
            base = _check_adapter(folder)
        else:
            _check_full(folder)
    except CheckpointError as error:
        why = str(error).replace(f"{folder.path}/", "")
    return Found(run, step, kind, folder.path, "skipped" if why else "ok", why, base)


def _is_model(folder: Folder) -> bool:
    """Whether there are weights that this layout knows, readable or not."""
    return bool(folder.files & {ADAPTER, ADAPTER_CONFIG, *PICKLES}) or any(
        re.fullmatch(r"model.*\.safetensors(\.index\.json)?", name) for name in folder.files
    )


def _is_adapter(folder: Folder) -> bool:
    return bool(folder.files & {ADAPTER_CONFIG, ADAPTER, "adapter_model.bin"})


def _check_full(folder: Folder) -> None:
    """Raises CheckpointError unless every tensor that is promised has its bytes."""
    if not folder.files & {FULL, FULL_INDEX}:
        pickled = folder.files & {*PICKLES}
        raise CheckpointError(PICKLE if pickled else f"unfinished: {FULL_INDEX} is missing")
    if "config.json" not in folder.files:
        raise CheckpointError("config.json is missing; copy it from the base")
    read_json(folder.path / "config.json")
    files = fingerprint_files(folder.path)
    missing = [path.name for path in files if path.name not in folder.files]
    if missing:
        raise CheckpointError(
            f"{', '.join(missing[:3])}{' ...' if missing[3:] else ''}: missing, {len(missing)} of "
            f"{len(files)} files that {FULL_INDEX} names; copy them, or save the checkpoint again"
        )
    tensors = {path.name: _tensors(path) for path in files}
    if FULL in tensors:
        return
    for tensor, file in weight_map(folder.path).items():
        if tensor not in tensors[file]:
            raise CheckpointError(f"{file}: lacks tensor {tensor}, which {FULL_INDEX} puts there")


def _tensors(path: Path) -> Mapping[str, Extent]:
    """At least one tensor by name. Raises CheckpointError."""
    tensors = header(path)
    if not tensors:
        raise CheckpointError(f"{path}: holds no tensor; save it again")
    return tensors


def _check_adapter(folder: Folder) -> str | None:
    """What the adapter says its base is. Raises CheckpointError when it is not whole."""
    if ADAPTER not in folder.files:
        pickled = "adapter_model.bin" in folder.files
        raise CheckpointError(PICKLE if pickled else f"unfinished: {ADAPTER} is missing")
    if ADAPTER_CONFIG not in folder.files:
        raise CheckpointError(f"unfinished: {ADAPTER_CONFIG} is missing")
    config = read_json(folder.path / ADAPTER_CONFIG)
    _tensors(folder.path / ADAPTER)
    if config.get("lora_alpha") == 0:
        raise CheckpointError("the adapter does nothing: lora_alpha is 0 in adapter_config.json")
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if not base:
        return None
    return f"{base}@{revision}" if revision and revision != "main" else str(base)


def _unfinished(folder: Folder, step: int, *, marked: bool, last: bool) -> str:
    """Why the trainer may not be done with a checkpoint; empty when it is.

    marked: the run's trainer leaves a trainer_state.json. last: nothing later is there.
    Step 0 needs no trainer_state.json: it is the base, saved before the trainer had a state.
    """
    if INCOMPLETE in folder.files:
        return f"unfinished: {INCOMPLETE} is there"
    if STATE in folder.files:
        return _disagreement(folder.path / STATE, step)
    if marked and step > 0:
        return f"unfinished: no {STATE}, which others of the run have"
    age = folder.age() if last else QUIET_SECONDS
    if age < QUIET_SECONDS:
        return f"may still be written: no {STATE}, changed {age:.0f} s ago; wait for 2 minutes"
    return ""


def _disagreement(path: Path, step: int) -> str:
    try:
        said = _global_step(path)
    except CheckpointError:
        return f"unfinished: {STATE} is torn"
    return "" if said == step else f"renamed or unfinished: {STATE} says global_step {said}"


def _global_step(path: Path) -> Any:
    """From the first bytes: the log that follows grows with every step."""
    with open_regular(path) as file:
        match = GLOBAL_STEP.search(file.read(HEAD_BYTES))
        file.seek(-min(HEAD_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
        if match and file.read().rstrip().endswith(b"}"):
            return int(match[1])
    return read_json(path).get("global_step")
