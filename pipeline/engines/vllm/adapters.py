"""What LoRA adapters ask of the engine that is to hold them, and which can share a batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.checkpoints.headers import header, read_json
from pipeline.checkpoints.identity import ADAPTER, ADAPTER_CONFIG
from pipeline.engines import Item
from pipeline.engines.hf import weights
from pipeline.engines.vllm.folders import Shapes
from pipeline.records import CheckpointError

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Limits that vLLM has buffers for (0.32)."""
EMBEDDING = "embed_tokens"

Modules = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
"""Shapes of A [rank, in] and B [out, rank] by module."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Room for adapters in an engine."""

    rank: int
    targets: frozenset[str]
    """Last part of the names of the modules they change."""

    def covers(self, other: "Lora") -> bool:
        return other.rank <= self.rank and other.targets <= self.targets

    def with_(self, other: "Lora") -> "Lora":
        """Room for both."""
        return Lora(max(self.rank, other.rank), self.targets | other.targets)


def modules(folder: Path, base: Shapes) -> Modules:
    """What the adapter of a folder changes, from its header. Raises CheckpointError.

    `base` are the tensors it stands on.
    """
    config = read_json(folder / ADAPTER_CONFIG)
    weights._check_plain(config, folder)
    if not config["lora_alpha"]:
        raise CheckpointError(f"{folder}: lora_alpha is 0, so that it changes nothing")
    found = _pairs(folder)
    for module, (down, up) in found.items():
        shape = base.get(f"{module}.weight")
        if shape != (up[0], down[1]):
            raise CheckpointError(
                f"{folder}: adapts {module} as {[up[0], down[1]]}, its base has "
                f"{list(shape) if shape else 'no such layer'}; set `base` of its run to its own"
            )
    weights.check_ranks(config, {down[0] for down, _ in found.values()}, folder)
    return found


def room(folder: Path, changed: Modules, limit: int) -> Lora:
    """What it needs in an engine. Raises CheckpointError where vLLM or `limit` has no place."""
    targets = frozenset(module.rpartition(".")[2] for module in changed)
    if EMBEDDING in targets:
        raise CheckpointError(f"{folder}: adapts {EMBEDDING} as a matrix, unlike vLLM; set merge")
    most = max(down[0] for down, _ in changed.values())
    if most > limit:
        raise CheckpointError(
            f"{folder}: rank {most} is above {limit}; raise max_lora_rank (at most {RANKS[-1]}), "
            "or set merge"
        )
    return Lora(next(rank for rank in RANKS if rank >= most), targets)


def batches(items: Sequence[Item], most: int) -> Iterator[list[Item]]:
    """Items in order, cut so that a batch is one item, or adapters on one base, at most `most`."""
    batch: list[Item] = []
    for item in items:
        one, other = item[0], batch[0][0] if batch else item[0]
        mates = one.kind == other.kind == "adapter" and one.base == other.base
        if batch and not (mates and len(batch) < most):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def _pairs(folder: Path) -> Modules:
    """Raises CheckpointError for anything else in the file."""
    sides: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, extent in header(folder / ADAPTER).items():
        found = weights.LORA.fullmatch(name)
        if not found or len(extent.shape) != 2:
            raise CheckpointError(f"{folder}: {name} is no LoRA matrix of a linear layer")
        sides.setdefault(found["module"], {})[found["side"]] = extent.shape
    for module, pair in sides.items():
        if len(pair) < 2 or pair["A"][0] != pair["B"][1]:
            raise CheckpointError(f"{folder}: {module} has no pair of LoRA matrices that fit")
    if not sides:
        raise CheckpointError(f"{folder}: its adapter is empty")
    return {module: (pair["A"], pair["B"]) for module, pair in sides.items()}
