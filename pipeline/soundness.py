"""What must hold of one partition: its key, its rows, its columns, recomputed. Pure."""

import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from hackbait.environment import Case, Environment, canonical
from pipeline import schema
from pipeline.holdings import Held, folder_of
from pipeline.plan import key_of
from pipeline.records import Completion, Rollout, Sampling
from pipeline.rollout import grade, prompt_id, sampling_seed

FIELDS = {
    "run": str, "step": int, "checkpoint": str, "env": str, "env_version": str, "ask": dict,
    "grade": dict, "grader_fingerprint": str, "start": int, "stop": int, "sampling": dict,
    "engine": str, "dtype": str,
}  # fmt: skip
"""Of an identity."""
SAME = ("engine", "dtype", "determinism", "fingerprint")
OWN = (
    "index", "sample", "sampling_seed", "prompt_id", "prompt", "truth", "completion", "reasoning",
    "finish_reason", "prompt_tokens", "completion_tokens", "null_reason",
)  # fmt: skip
SURROGATE = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")
FIRST = 3
"""Rows that a finding names."""

Identity = Mapping[str, Any]
Drawn = tuple[int, str, int, dict[str, Any]]
"""A hash, a key, a number of a row, and what its scores were said to be."""


def identity_of(held: Held, record: Mapping[str, Any]) -> tuple[Identity | None, list[str]]:
    """The identity in a footer, None when it is none, and what is wrong with it."""
    said = record.get("identity")
    if not isinstance(said, dict) or not isinstance(record.get("metrics"), dict):
        return None, ["its footer holds no identity, or no metrics"]
    bad = [name for name, kind in FIELDS.items() if type(said.get(name)) is not kind]
    if bad or not 0 <= said["start"] < said["stop"]:
        return None, [f"the identity in its footer has no sound {bad[0] if bad else 'case range'}"]
    try:
        Sampling(**said["sampling"])
    except TypeError:
        return None, ["the identity in its footer has no sound sampling"]
    return said, [*_misnamed(held, said), *_contradicted(record, said)]


def _misnamed(held: Held, said: Identity) -> Iterator[str]:
    key = key_of(canonical(said))
    if key != held.key:
        yield f"its name is not the hash of its identity, which is {key}"
    place = held.environment, held.run, held.step
    if place != (folder_of(said["env"]), said["run"], said["step"]):
        yield f"its identity is of run {said['run']!r} step {said['step']} of {said['env']!r}"


def _contradicted(record: Mapping[str, Any], said: Identity) -> Iterator[str]:
    for name in ("env", "env_version", "ask", "grade"):
        if record.get(name) != said[name]:
            yield f"its footer says {name} twice, and differently"


def of_rows(rows: Any, record: Mapping[str, Any], said: Identity) -> Iterator[str]:
    """What is wrong with the rows by themselves: count, hash, columns, seeds apart.

    rows: a pyarrow table. Nothing more is looked at where columns are missing.
    """
    expected = [*_constants(said), *SAME[2:], *OWN, *record.get("metrics", {}), "reward"]
    strange = set(expected) ^ set(rows.column_names)
    if strange or len(rows.column_names) != len(set(rows.column_names)):
        yield f"columns are missing, doubled or not ours: {', '.join(sorted(strange)[:FIRST])}"
        return
    count = (said["stop"] - said["start"]) * said["sampling"]["n"]
    if len(rows) != count or record.get("rows", count) != count:
        yield f"{len(rows)} rows, {count} are due"
    if record.get("rows_hash") not in (None, schema.rows_hash(rows)):
        yield "its rows are not those that were committed (their hash differs)"
    places = list(zip(*_columns(rows, "index", "sample"), strict=True))
    due = {(i, j) for i in range(said["start"], said["stop"]) for j in range(said["sampling"]["n"])}
    if len(places) != len(set(places)) or set(places) != due:
        yield f"(index, sample) are not each once: {_first(set(places) ^ due) or 'some are twice'}"
    constants = _constants(said)
    for name in (*constants, *SAME[2:]):
        values = rows[name].unique().to_pylist()
        if len(values) > 1 or (name in constants and values not in ([], [constants[name]])):
            yield f"column {name} holds {values[:FIRST]!r}, not one value, that of the identity"
    yield from _nulls(rows, record)


def _constants(said: Identity) -> dict[str, Any]:
    sampling = said["sampling"]
    drawn = {name: sampling[name] for name in ("temperature", "top_p", "top_k", "max_tokens")}
    return {
        "env_version": said["env_version"],
        **said["ask"],
        **said["grade"],
        "grader_fingerprint": said["grader_fingerprint"],
        **drawn,
        "sweep_seed": sampling["seed"],
        "engine": said["engine"],
        "dtype": said["dtype"],
    }


def _nulls(rows: Any, record: Mapping[str, Any]) -> Iterator[str]:
    """A null reason stands where nothing could be scored, and only there."""
    names = [*record.get("metrics", {}), "reward"]
    reasons, texts = _columns(rows, "null_reason", "completion")
    scored = [any(v is not None for v in row) for row in zip(*_columns(rows, *names), strict=True)]
    both = [i for i, reason in enumerate(reasons) if reason is not None and scored[i]]
    none = [i for i, text in enumerate(texts) if text is None and reasons[i] is None]
    if both:
        yield f"rows {_first(both)} have scores and a null_reason"
    if none:
        yield f"rows {_first(none)} have no completion and no null_reason"


def of_cases(rows: Any, said: Identity, cases: Sequence[Case]) -> Iterator[str]:
    """Prompts, truths, prompt ids and sampling seeds, recomputed from the cases."""
    due = {case.index: (prompt_id(case), schema.prompt(case), case.truth, case) for case in cases}
    names = "index", "sample", "sampling_seed", "prompt_id", "prompt", "truth"
    wrong: dict[str, list[int]] = {}
    for number, row in enumerate(zip(*_columns(rows, *names), strict=True)):
        index, sample, *found = row
        if index not in due:
            continue
        *asked, case = due[index]
        seed = sampling_seed(said["sampling"]["seed"], case, sample)
        for name, value, wanted in zip(names[2:], found, (seed, *asked), strict=True):
            if value != wanted:
                wrong.setdefault(name, []).append(number)
    for name, numbers in wrong.items():
        yield f"{name} of rows {_first(numbers)} is not what the case and its seed give"


@dataclass(slots=True)
class Sample:
    """So many scored rows of all that were offered, chosen by a hash of key and place."""

    size: int
    rows: list[Drawn] = field(default_factory=list)

    def offer(self, key: str, rows: Any, names: Sequence[str]) -> None:
        """names: the columns of metrics and reward."""
        places = zip(*_columns(rows, "index", "sample", "null_reason"), strict=True)
        for number, (index, sample, reason) in enumerate(places):
            digest = blake2b(f"{key} {index} {sample}".encode(), digest_size=8).digest()
            # The heap gives up its least first; what is to be kept has the smallest hashes.
            rank = -int.from_bytes(digest, "big")
            full = len(self.rows) >= self.size
            if reason is not None or self.size == 0 or (full and rank <= self.rows[0][0]):
                continue
            thought = ["reasoning"] if "reasoning" in rows.column_names else []
            kept = ["index", "sample", "completion", *thought, *names]
            row = rows.select(kept).slice(number, 1).to_pylist()[0]
            (heapq.heapreplace if full else heapq.heappush)(self.rows, (rank, key, number, row))


def misgraded(
    environment: Environment, cases: Mapping[int, Case], row: Mapping[str, Any]
) -> str | None:
    """What a row's scores should have been; None where they are right.

    A lone surrogate was written as its escape, and may have been graded as it was.
    """
    case = cases[row["index"]]
    texts = [row["completion"], _as_generated(row["completion"] or "")]
    said = {name: row[name] for name in (*environment.metrics, "reward")}
    due = None
    for text in texts:
        completion = Completion(text, "stop", None, None, reasoning=row.get("reasoning"))
        rollout = Rollout(case.index, row["sample"], 0, completion)
        _, (score,) = grade(environment, [case], [rollout])
        due = {**score.metrics, "reward": score.reward}
        if all(_equal(said[name], due[name]) for name in said):
            return None
    wrong = [name for name in said if not _equal(said[name], (due or {})[name])]
    return ", ".join(f"{name} {said[name]} is graded {(due or {})[name]} here" for name in wrong)


def _as_generated(text: str) -> str:
    return SURROGATE.sub(lambda found: chr(int(found[1], 16)), text)


def _equal(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def _columns(rows: Any, *names: str) -> list[list[Any]]:
    return [rows[name].to_pylist() for name in names]


def _first(values: Any) -> str:
    few = sorted(values)
    return ", ".join(map(str, few[:FIRST])) + (" ..." if len(few) > FIRST else "")
