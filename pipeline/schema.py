"""The rows of a partition and its footer: one Arrow schema an environment."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hackbait.environment import Arg, Case, Environment, EnvironmentRefused, Score, reward_kind
from pipeline.records import Generated, Partition, Rollout, Sampling
from pipeline.rollout import prompt_id

FOOTER = b"onset"
FOOTERS = b"onset.compacted"
"""In a compacted file: the footer of each of its partitions, by key."""
PLACE = {"run": pa.string(), "step": pa.int32()}
"""Columns of a compacted file that a partition's path says instead."""
ARROW = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


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
    """Rows of one partition, columns as README lists them; one schema an environment.

    EnvironmentRefused where it calls an argument or a metric as one of our columns.
    """
    n = len(rollouts)
    columns: dict[str, pa.Array] = {}

    def constant(name: str, value: Any, kind: pa.DataType) -> None:
        if name in columns:
            raise EnvironmentRefused(
                f"environment {environment.id!r}: argument {name!r} is a column of ours; rename it"
            )
        columns[name] = pa.repeat(pa.scalar(value, kind), n)

    def column(name: str, values: Iterable[Any], kind: pa.DataType) -> None:
        if name in columns:
            raise EnvironmentRefused(
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

    prompts = {c.index: (prompt_id(c), prompt(c), c.truth) for c in cases}
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


def prompt(case: Case) -> str:
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
        "reward": reward_kind(environment),
        "proxy": environment.proxy,
        "true": environment.true,
        "gated": list(getattr(environment, "gated", ())),
        "identity": json.loads(partition.identity),
        **provenance,
    }
    return {FOOTER: json.dumps(record, sort_keys=True).encode()}


def rows_hash(rows: pa.Table) -> str:
    """32 hex digits of columns and values in their order, however they are stored or chunked."""
    digest = hashlib.sha256()
    for name in rows.column_names:
        digest.update(json.dumps([name, str(rows[name].type), len(rows)]).encode())
        parts = [hashlib.sha256(), hashlib.sha256(), hashlib.sha256()]
        for chunk in rows[name].chunks:
            for part, content in zip(parts, _contents(chunk), strict=True):
                part.update(content)
        for part in parts:
            digest.update(part.digest())
    return digest.hexdigest()[:32]


def _contents(values: pa.Array) -> tuple[Any, Any, Any]:
    """Which are null, how long each text is, and all of them in bytes."""
    null = values.is_null().cast(pa.uint8()).to_numpy()
    if pa.types.is_string(values.type):
        filled = values.fill_null("")
        _, offsets, text = filled.buffers()
        if not len(filled):
            return null, b"", b""
        ends = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1]
        inside = memoryview(text)[ends[0] : ends[-1]] if text is not None else b""
        return null, np.diff(ends), inside
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return null, b"", values.fill_null(0).to_numpy()
    return null, b"", repr(values.to_pylist()).encode()
