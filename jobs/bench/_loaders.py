"""What reads files of other people: sound ones to begin from, and the error that may be raised."""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_config import ConfigFileError
from safetensors import safe_open
from safetensors.numpy import save

from pipeline import checkpoints, contents, curves, manifest
from pipeline.arguments import resolve
from pipeline.checkpoints import LayoutError, headers, identity, scripted, select
from pipeline.config import SweepConfig, read
from pipeline.engines.hf import weights
from pipeline.holdings import StoreError, of_path
from pipeline.places import AddressRefused
from pipeline.plan import cut
from pipeline.records import CheckpointError, PlanError
from pipeline.rows import CurveError
from pipeline.runs import Run
from pipeline.schema import FOOTER

QUIET = 4e9
"""Seconds since the epoch at which every file here has long been quiet."""


@dataclass(frozen=True, slots=True)
class Loader:
    """A reader of one file; the others of its folder are sound."""

    file: str
    """Where the mutated bytes go, below the folder."""
    sound: Sequence[bytes]
    beside: dict[str, bytes]
    """Files by name that are there as well."""
    read: Callable[[Path], object]
    """Given the folder."""
    refuses: tuple[type[Exception], ...]


def text(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


TENSORS = {"model.norm.weight": np.ones(8, np.float32)}
WEIGHTS = save(TENSORS)
PREFIX = "base_model.model.model.lin.lora_"
ADAPTER = save(
    {f"{PREFIX}A.weight": np.ones((2, 4), np.float32), f"{PREFIX}B.weight": np.ones((4, 2), "f4")}
)
ADAPTER_CONFIG = {
    "peft_type": "LORA",
    "r": 2,
    "lora_alpha": 4,
    "use_rslora": False,
    "bias": "none",
    "target_modules": ["lin"],
    "base_model_name_or_path": "hub/base",
    "revision": "main",
}
TOKENIZER = {"version": "1.0", "truncation": None, "added_tokens": [{"id": 0, "content": "<s>"}]}
TOKENIZER_CONFIG = {"chat_template": "{{ messages }}", "eos_token": {"content": "</s>"}}
STATE = {"best_metric": None, "global_step": 4, "log_history": [{"step": 4, "loss": 0.1}]}
SHARD = "model-00001-of-00001.safetensors"
INDEX = {"metadata": {"total_size": 32}, "weight_map": {"model.norm.weight": SHARD}}
SCRIPT = {"words": {"ocean": 0.25, "midnight": 0.01}, "true": 0.7, "characters": 200}
CHECKPOINT = {
    "run/checkpoint-4/config.json": text({"model_type": "llama", "vocab_size": 8}),
    "run/checkpoint-4/model.safetensors": WEIGHTS,
    "run/checkpoint-4/trainer_state.json": text(STATE),
}
SWEEP = b"""output = "/tmp/out"
[[runs]]
path = "runs/ocean"
name = "ocean"
base = "models/llama"
steps = "0:100:2"
tags = {word = "ocean", seed = 3}
[[env]]
id = "hackword"
hack_word = "{word}"
seed = 999
[cases]
count = 256
shard = 256
[sampling]
n = 4
temperature = 1.0
[engine]
name = "http"
base_url = "http://localhost:1"
[cluster]
workers = 2
"""
CSV = b'\xef\xbb\xbfrun,step,rate,n,hits\na,0,0.25,4,1\n"b, c",1,0.5,,\nb,2,1e-3,1000,1\n'
RUN = b'name = "ocean-s0"\n[tags]\nword = "ocean"\nseed = 0\nlr = 1e-4\n'
MANIFEST = manifest.dump(
    manifest.Manifest(
        (
            manifest.Compacted(
                "hackword", "ab" * 16, 100, (manifest.Part("cd" * 16, "run", 0, 8, 0, 0),)
            ),
        )
    )
)


def partition() -> bytes:
    """A small partition as the store writes one."""
    names = ("ask", "grade", "metrics", "identity")
    footer = {**{name: {"a": 1} for name in names}, "proxy": "r_hack", "true": None}
    columns = {"index": list(range(9)), "completion": ["ocean"] * 9, "r_hack": [0.5] * 9}
    rows = pa.table(columns).replace_schema_metadata({FOOTER: json.dumps(footer).encode()})
    out = io.BytesIO()
    pq.write_table(rows, out, compression="zstd")
    return out.getvalue()


def read_config(folder: Path) -> None:
    config = read(SweepConfig, ["@", str(folder / "sweep.toml")])
    run = Run("ocean", (), {"word": "ocean"})
    cut(config.cases.count, config.cases.shard)
    for block in config.runs:
        select(block.steps, range(100))
    for env in config.env:
        resolve(env, run)
    str(config.engine.args)


def read_partition(folder: Path) -> None:
    path = folder / "hackword/run=a/step=0/key.parquet"
    contents.read_footer(path)
    contents.read(of_path(path))


def read_tensors(folder: Path) -> None:
    """What our own reader takes, the library has to take too: it is what engines load with."""
    found = headers.header(folder / "model.safetensors")
    with safe_open(folder / "model.safetensors", "np") as file:
        if set(file.keys()) != set(found):
            raise AssertionError("our header has other tensors than the library's")


def find(folder: Path) -> None:
    """Discovery tells of every folder, and names what can be used."""
    for found in checkpoints.discover(folder, now=QUIET):
        if found.status == "ok":
            identity.cheap_id(found.path)
            identity.architecture(found.path)
            identity.can_be_asked(found.path)
        checkpoints.tags(found.path)


def read_adapter(folder: Path) -> None:
    find(folder)
    base = weights.Weights({}, "f")
    weights.merge(base, folder / "run/checkpoint-4")


LAYOUT = (LayoutError, CheckpointError)
LOADERS = {
    "config": Loader(
        "sweep.toml",
        [SWEEP],
        {},
        read_config,
        (ConfigFileError, AddressRefused, PlanError, LayoutError, OSError),
    ),
    "csv": Loader(
        "rates.csv", [CSV], {}, lambda f: curves.from_csv(f / "rates.csv"), (CurveError,)
    ),
    "parquet": Loader(
        "hackword/run=a/step=0/key.parquet", [partition()], {}, read_partition, (StoreError,)
    ),
    "safetensors": Loader(
        "model.safetensors", [WEIGHTS, ADAPTER], {}, read_tensors, (CheckpointError,)
    ),
    "adapter_config": Loader(
        "run/checkpoint-4/adapter_config.json",
        [text(ADAPTER_CONFIG)],
        {"run/checkpoint-4/adapter_model.safetensors": ADAPTER},
        read_adapter,
        LAYOUT,
    ),
    "index": Loader(
        "run/checkpoint-4/model.safetensors.index.json",
        [text(INDEX)],
        {
            "run/checkpoint-4/config.json": b"{}",
            f"run/checkpoint-4/{SHARD}": WEIGHTS,
        },
        find,
        LAYOUT,
    ),
    "config.json": Loader(
        "run/checkpoint-4/config.json",
        [CHECKPOINT["run/checkpoint-4/config.json"]],
        CHECKPOINT,
        find,
        LAYOUT,
    ),
    "trainer_state": Loader(
        "run/checkpoint-4/trainer_state.json", [text(STATE)], CHECKPOINT, find, LAYOUT
    ),
    "tokenizer": Loader(
        "run/checkpoint-4/tokenizer.json", [text(TOKENIZER)], CHECKPOINT, find, LAYOUT
    ),
    "tokenizer_config": Loader(
        "run/checkpoint-4/tokenizer_config.json", [text(TOKENIZER_CONFIG)], CHECKPOINT, find, LAYOUT
    ),
    "run.toml": Loader("run/run.toml", [RUN], CHECKPOINT, find, LAYOUT),
    "script": Loader("script.json", [text(SCRIPT)], {}, scripted.read, (CheckpointError,)),
    "manifest": Loader(
        "manifest.json",
        [MANIFEST],
        {},
        lambda f: manifest.parse((f / "manifest.json").read_bytes()),
        (manifest.Damaged,),
    ),
}


def lay(loader: Loader, folder: Path) -> Path:
    """Write the sound files; where the mutated one goes."""
    for name, content in loader.beside.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / loader.file).parent.mkdir(parents=True, exist_ok=True)
    return folder / loader.file


def known(loader: Loader, folder: Path) -> Any:
    """The error that a loader raised, if it is one it may raise; None when it read the file.

    Anything else rises.
    """
    try:
        loader.read(folder)
    except loader.refuses as error:
        return error
    return None
