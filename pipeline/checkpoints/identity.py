"""What a checkpoint is, told without reading its weights; and which files its weights are."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from hackbait.environment import canonical
from pipeline.checkpoints.headers import LENGTH_BYTES, open_regular, raw_header, read_json
from pipeline.records import Checkpoint, CheckpointError

DIGEST_BYTES = 16
BLOCKS, BLOCK_BYTES = 64, 4096
PARSED_BYTES = 2**20
"""A tokenizer.json up to this size is compared by what it says, a larger one by sampled bytes."""
STATE_BYTES = 4096
"""A tokenizer.json opens with the truncation and padding last in use, within these bytes."""

SCRIPT = "script.json"
FULL, FULL_INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
VOLATILE = {
    "config.json": {"_name_or_path", "transformers_version", "use_cache"},
    ADAPTER_CONFIG: {"base_model_name_or_path", "revision", "inference_mode", "peft_version"},
}
"""Keys that vary between savings of one policy. The base counts by itself, see `cheap_id`."""
TOKENIZER_KEYS = ("chat_template", "bos_token", "eos_token", "add_bos_token", "add_eos_token")
VOCABULARIES = ("tokenizer.model", "vocab.json", "vocab.txt", "merges.txt")
TEMPLATE = "chat_template.jinja"


def fingerprint_files(path: Path | str) -> list[Path]:
    """Weight files in name order: what an engine loads, and hashes as it does.

    An adapter beside a config.json is an adapter. Raises CheckpointError when there are none.
    """
    folder = Path(path)
    if _has(folder / SCRIPT):
        return [folder / SCRIPT]
    if _has(folder / ADAPTER_CONFIG) or _has(folder / ADAPTER):
        return [folder / ADAPTER]
    if _has(folder / FULL) or not _has(folder / FULL_INDEX):
        return [folder / FULL]
    return [folder / name for name in sorted(set(weight_map(folder).values()))]


def weight_digest() -> "hashlib._Hash":
    """What a fingerprint is made with: SHA-256, twice as fast as BLAKE2b where a CPU has it.

    It takes `NAME SIZE ` and the bytes of each weight file, in name order.
    """
    return hashlib.sha256()


def weight_map(folder: Path) -> dict[str, str]:
    """File by tensor of a sharded model. Raises CheckpointError."""
    path = folder / FULL_INDEX
    names = read_json(path).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise CheckpointError(f"{path}: has no weight_map")
    for name in names.values():
        if not isinstance(name, str) or not name.endswith(".safetensors") or {"/", "\0"} & {*name}:
            raise CheckpointError(f"{path}: {name!r} is no safetensors file beside it")
    return names


def adapter_fingerprint(base: str, adapter: str, config: Mapping[str, Any]) -> str:
    """Of an adapter on its base, from both fingerprints and what scales the one on the other."""
    said = f"{base} {adapter} {config.get('lora_alpha')} {bool(config.get('use_rslora'))}"
    return hashlib.blake2b(said.encode(), digest_size=DIGEST_BYTES).hexdigest()


def cheap_id(path: Path | str, base: str | None = None) -> str:
    """32 hex digits that equal copies share, wherever they lie; weights are sampled, not read.

    It covers names, sizes, headers and 64 blocks of 4 KiB of each weight file, the configuration,
    tokenizer and template. `base` is what an adapter stands on, or whose tokenizer a checkpoint
    without one uses: by its own id where it is a folder, else by name. Raises CheckpointError.
    """
    folder = Path(path)
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for file in fingerprint_files(folder):
        _add(digest, file.name, _sample(file))
    for name, volatile in VOLATILE.items():
        if _has(folder / name):
            _add(digest, name, _text(_without(read_json(folder / name), volatile)))
    stops = _optional(folder / "generation_config.json").get("eos_token_id")
    _add(digest, "eos_token_id", _text(stops))
    _add(digest, "tokenizer", _tokenizer(folder))
    _add(digest, "base", _base(folder, base))
    return digest.hexdigest()


def refuse_replaced(checkpoint: Checkpoint) -> None:
    """CheckpointError where its files are no more those that were planned, by `cheap_id`.

    Asked once they were loaded, it covers the time before and during; an empty id is not checked.
    """
    if checkpoint.cheap_id and cheap_id(checkpoint.path, checkpoint.base) != checkpoint.cheap_id:
        raise CheckpointError(
            f"{checkpoint.path}: it was replaced during the sweep, its bytes are not those that "
            "were planned; sweep it again"
        )


def _base(folder: Path, base: str | None) -> bytes:
    """What the checkpoint takes from its base; nothing for one that stands alone."""
    config = _optional(folder / ADAPTER_CONFIG)
    named = str(base or config.get("base_model_name_or_path") or "")
    if config and named and _has(Path(named)):
        if _has(Path(named) / ADAPTER_CONFIG):
            raise CheckpointError(
                f"{folder}: its base {named} is an adapter itself; merge that one"
            )
        return cheap_id(named).encode()
    if config:
        return _text([named, config.get("revision")])
    if named and not can_be_asked(folder):
        return _tokenizer(Path(named)) if _has(Path(named)) else _text(named)
    return b""


def architecture(path: Path | str, base: str | None = None) -> str:
    """Hash of the model's configuration, an adapter's being its base's; empty where none lies."""
    for folder in (Path(path), Path(base or path)):
        if (folder / "config.json").exists() and not (folder / ADAPTER_CONFIG).exists():
            said = _without(read_json(folder / "config.json"), VOLATILE["config.json"])
            return hashlib.blake2b(_text(said), digest_size=DIGEST_BYTES).hexdigest()
    return ""


def can_be_asked(path: Path | str) -> bool:
    """Whether a vocabulary and a chat template lie there; a script needs neither."""
    folder = Path(path)
    if (folder / SCRIPT).exists():
        return True
    has_template = "chat_template" in _said(folder)
    return has_template and any(_has(folder / v) for v in ("tokenizer.json", *VOCABULARIES))


def _tokenizer(folder: Path) -> bytes:
    """Vocabulary, special tokens and template; the same after any use of the tokenizer."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    _add(digest, "said", _text(_said(folder)))
    if _has(folder / "tokenizer.json"):
        _add(digest, "tokenizer.json", _vocabulary(folder / "tokenizer.json"))
    else:
        for name in VOCABULARIES:
            if _has(folder / name):
                _add(digest, name, _sample(folder / name))
    return digest.digest()


def _said(folder: Path) -> dict[str, Any]:
    """Special tokens by their text, and the template from whichever file holds it."""
    config = _optional(folder / "tokenizer_config.json")
    said = {key: config[key] for key in TOKENIZER_KEYS if config.get(key) is not None}
    for key, value in said.items():
        if isinstance(value, dict) and key != "chat_template":
            said[key] = value.get("content")
    if _has(folder / TEMPLATE):
        with open_regular(folder / TEMPLATE) as file:
            said["chat_template"] = file.read().decode(errors="backslashreplace")
    return said


def _vocabulary(path: Path) -> bytes:
    """A tokenizer.json without the truncation and padding that it was last used with."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = after_state(file.read(STATE_BYTES), size)
        if start is not None:
            return _blocks(file, start, size)
    return _text(_without(read_json(path), {"truncation", "padding"}))


def after_state(head: bytes, size: int) -> int | None:
    """Where a large tokenizer.json goes on after its state; None when all of it is to be parsed."""
    start = head.find(b'"added_tokens"')
    return start if size > PARSED_BYTES and start >= 0 else None


def _sample(path: Path) -> bytes:
    """Size, header and blocks of a weight file; the whole of a small one."""
    if path.suffix != ".safetensors":
        with open_regular(path) as file:
            return _blocks(file, 0, os.fstat(file.fileno()).st_size)
    raw, size = raw_header(path)
    with open_regular(path) as file:
        return raw + _blocks(file, LENGTH_BYTES + len(raw), size)


def _blocks(file: BinaryIO, start: int, size: int) -> bytes:
    """How many bytes lie in [start, size), and those that stand for them."""
    read = [os.pread(file.fileno(), length, offset) for offset, length in sampled(start, size)]
    return b"".join([str(size - start).encode(), b" ", *read])


def sampled(start: int, size: int) -> list[tuple[int, int]]:
    """Offset and length of 64 blocks evenly spaced over [start, size); of all when there is less.

    These bytes stand for the others.
    """
    span = size - start
    if span <= BLOCKS * BLOCK_BYTES:
        return [(start, span)]
    last = span - BLOCK_BYTES
    return [(start + last * i // (BLOCKS - 1), BLOCK_BYTES) for i in range(BLOCKS)]


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if _has(path) else {}


def _has(path: Path) -> bool:
    """False too where it cannot be told; the reading that follows says why."""
    try:
        path.stat()
    except (OSError, ValueError):  # a name with a NUL or a lone surrogate names nothing
        return False
    return True


def _without(entries: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if key not in keys}


def _text(value: object) -> bytes:
    return canonical(value).encode("utf-8", "surrogatepass")


def _add(digest: "hashlib.blake2b", name: str, content: bytes) -> None:
    """Name and content with their lengths, so that no two sequences run together alike."""
    digest.update(f"{name} {len(content)} ".encode())
    digest.update(content)
