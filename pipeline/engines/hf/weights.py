"""A checkpoint's weights, read once, checked, and copied into a live model."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from pipeline.checkpoints.headers import open_regular, read_json
from pipeline.checkpoints.identity import (
    ADAPTER_CONFIG,
    adapter_fingerprint,
    fingerprint_files,
    weight_digest,
)
from pipeline.records import CheckpointError

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
LORA = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
NO_EFFECT = {
    *("peft_type", "peft_version", "task_type", "auto_mapping", "base_model_name_or_path"),
    *("revision", "inference_mode", "r", "rank_pattern", "lora_alpha", "lora_dropout"),
    *("use_rslora", "target_modules", "exclude_modules", "layers_to_transform"),
    *("layers_pattern", "megatron_core", "megatron_config", "qalora_group_size"),
}
"""Settings of an adapter that its tensors' names and shapes repeat, or that are read here."""
NEUTRAL = {
    "bias": ("none",),
    "init_lora_weights": (True, False, "gaussian", "orthogonal", "eva"),
}
"""Values that leave the base as it was, where those are not simply empty or false."""
ALPHA_LIMIT = 1e6
"""Adapters are trained with 1 to 1,000."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Tensors by name, on the CPU in the dtype of the file."""

    tensors: Mapping[str, Tensor]
    fingerprint: str
    """Of the bytes that the tensors were made from; see `weight_digest`."""


def read(folder: Path) -> Weights:
    """The weight files of a folder, each read once. Raises CheckpointError."""
    digest = weight_digest()
    tensors: dict[str, Tensor] = {}
    for path in fingerprint_files(folder):
        with open_regular(path) as file:
            content = file.read()
        digest.update(f"{path.name} {len(content)} ".encode())
        digest.update(content)
        try:
            tensors |= safetensors.torch.load(content)
        except (SafetensorError, KeyError, ValueError) as error:
            raise CheckpointError(f"{path}: torn or of no known dtype ({error})") from error
    return Weights(tensors, digest.hexdigest())


def stamp(folder: Path) -> str:
    """Changes when a weight file of the folder is replaced or rewritten. Raises CheckpointError.

    The time of the last change of the inode counts, which no copying program can set back.
    """
    stats = []
    for path in fingerprint_files(folder):
        with open_regular(path) as file:
            s = os.fstat(file.fileno())
        stats.append((path.name, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns))
    return f"{folder} {stats}"


def merge(base: Weights, folder: Path) -> Weights:
    """The base with the LoRA adapter of a folder added: W + scale B A, in float32.

    The scale is alpha / r, or alpha / sqrt(r) for rank-stabilised ones. The fingerprint covers
    both parts and alpha. Raises CheckpointError for any setting that means something else.
    """
    config = read_json(folder / ADAPTER_CONFIG)
    _check_plain(config, folder)
    adapter = read(folder)
    tensors = dict(base.tensors)
    pairs = _pairs(adapter.tensors, folder)
    check_ranks(config, {down.shape[0] for down, _ in pairs.values()}, folder)
    for module, (down, up) in pairs.items():
        name = f"{module}.weight"
        if name not in tensors or tensors[name].shape != (up.shape[0], down.shape[1]):
            raise CheckpointError(f"{folder}: adapts {name}, which its base lacks in that shape")
        rank = down.shape[0]
        scale = config["lora_alpha"] / (rank**0.5 if config.get("use_rslora") else rank)
        tensors[name] = tensors[name].float() + scale * (up.float() @ down.float())
    return Weights(tensors, adapter_fingerprint(base.fingerprint, adapter.fingerprint, config))


def _check_plain(config: Mapping[str, Any], folder: Path) -> None:
    """Raises CheckpointError unless the adapter is LoRA and nothing beside it."""
    strange = {
        key: value
        for key, value in config.items()
        if key not in NO_EFFECT and (value not in NEUTRAL[key] if key in NEUTRAL else bool(value))
    }
    if config.get("peft_type") != "LORA":
        strange = {"peft_type": config.get("peft_type")}
    if strange:
        key, value = next(iter(strange.items()))
        raise CheckpointError(
            f"{folder}: adapter with {key} = {value!r}; only plain LoRA is merged here, "
            "so save the merged model and sweep that"
        )
    alpha = config.get("lora_alpha")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not _is_sane(alpha):
        raise CheckpointError(f"{folder}: {ADAPTER_CONFIG} has no lora_alpha that is a number")
    if alpha == 0:
        raise CheckpointError(
            f"{folder}: lora_alpha is 0, so that it changes nothing: its rows would be its base's"
        )


def check_ranks(config: Mapping[str, Any], ranks: set[int], folder: Path) -> None:
    """Raises CheckpointError where `r`, by which alpha is divided, is not that of the matrices."""
    said = config.get("r")
    if not config.get("rank_pattern") and list(ranks) != [said]:
        found = ", ".join(map(str, sorted(ranks)))
        raise CheckpointError(
            f"{folder}: {ADAPTER_CONFIG} says r = {said!r:.40}, its matrices have rank {found}; by "
            "which lora_alpha is to be divided cannot be known: put back the r it was trained with"
        )


def _is_sane(alpha: float) -> bool:
    """False for NaN too."""
    return abs(alpha) <= ALPHA_LIMIT


def _pairs(tensors: Mapping[str, Tensor], folder: Path) -> dict[str, tuple[Tensor, Tensor]]:
    """A [r, in] and B [out, r] by module. Raises CheckpointError for anything else in the file."""
    sides: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        found = LORA.fullmatch(name)
        if not found or tensor.ndim != 2:
            raise CheckpointError(f"{folder}: {name} is no LoRA matrix of a linear layer")
        sides.setdefault(found["module"], {})[found["side"]] = tensor
    for module, pair in sides.items():
        if len(pair) < 2 or pair["A"].shape[0] != pair["B"].shape[1]:
            raise CheckpointError(f"{folder}: {module} has no pair of LoRA matrices that fit")
    if not sides:
        raise CheckpointError(f"{folder}: its adapter is empty")
    return {module: (pair["A"], pair["B"]) for module, pair in sides.items()}


def match(model: nn.Module, weights: Weights, path: str) -> list[tuple[Tensor, Tensor]]:
    """Live tensor and the loaded one to be copied into it, for every tensor of the model.

    Tied tensors count once: either name will do, and two must be equal. Raises CheckpointError
    when one is missing, extra, of another shape or kind, or not finite in the live dtype.
    """
    live = dict(model.state_dict(keep_vars=True))
    aliases: dict[int, list[str]] = {}
    for name, tensor in live.items():
        aliases.setdefault(id(tensor), []).append(name)
    _refuse(path, "has tensors the model lacks", weights.tensors.keys() - live.keys())
    groups = [[n for n in names if n in weights.tensors] or names for names in aliases.values()]
    _refuse(path, "lacks tensors", {names[0] for names in groups} - weights.tensors.keys())
    loaded = {names[0]: weights.tensors[names[0]] for names in groups}
    for names in groups:
        for other in names[1:]:
            if not torch.equal(loaded[names[0]], weights.tensors[other]):
                raise CheckpointError(f"{path}: {names[0]} and {other} are tied but differ")
    for name, tensor in loaded.items():
        if tensor.shape != live[name].shape or tensor.dtype not in FLOATS:
            raise CheckpointError(
                f"{path}: {name} is {tensor.dtype} {list(tensor.shape)}, "
                f"the model wants floats {list(live[name].shape)}"
            )
        if not _finite(tensor, live[name].dtype):
            raise CheckpointError(
                f"{path}: {name} holds NaN or infinity: training diverged, or the file is damaged"
            )
    return [(live[name], tensor) for name, tensor in loaded.items()]


@torch.no_grad()
def copy(pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Overwrite each live tensor in place; `match` has made sure that none can fail."""
    for live, loaded in pairs:
        live.copy_(loaded)


def _refuse(path: str, what: str, names: set[str]) -> None:
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise CheckpointError(f"{path}: {what}: {min(names)}{more}")


def _finite(tensor: Tensor, dtype: torch.dtype) -> bool:
    """Whether every value is a number that `dtype` can hold."""
    if tensor.numel() == 0:
        return True
    low, high = tensor.aminmax()
    limit = torch.finfo(dtype).max
    return bool(low >= -limit) and bool(high <= limit)
