"""`onset verify` finds whatever was planted in an output, and nothing in a sound one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import tomli_w

from jobs.__main__ import main
from pipeline import consistency, schema, store
from pipeline.checkpoints import scripted
from pipeline.compaction import compact, compacted_files
from pipeline.config import SweepConfig
from pipeline.findings import Report, Seen
from pipeline.holdings import Held
from pipeline.plan import plan
from pipeline.records import Written
from pipeline.verify import verify

SweepHere = Callable[..., list[Written]]


@pytest.fixture
def out(small: SweepConfig, small_output: Path) -> Path:
    """The output of a whole sweep."""
    assert isinstance(small.output, Path)
    shutil.copytree(small_output, small.output)
    resolved = small.model_dump(mode="json", exclude_none=True, exclude={"dry_run", "timeline"})
    (small.output / "config.toml").write_text(tomli_w.dumps(resolved))
    return small.output


def wrong(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.is_wrong}


def said(report: Report) -> str:
    return "\n".join(f"{finding.kind}: {finding.what}" for finding in report.findings)


def edit(path: Path, hashed: bool, **columns: Any) -> None:
    """Change columns by hand; `hashed`: as one would who knows of the hash in the footer."""
    rows = pq.ParquetFile(path).read()
    metadata = rows.schema.metadata
    for name, change in columns.items():
        values = change(rows[name].to_pylist())
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pa.array(values, rows[name].type))
    if hashed:
        record = json.loads(metadata[schema.FOOTER])
        record["rows_hash"] = schema.rows_hash(rows.replace_schema_metadata())
        metadata = {schema.FOOTER: json.dumps(record).encode()}
    pq.write_table(rows.replace_schema_metadata(metadata), path)


def first(value: object) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


def test_a_whole_sweep_is_sound_and_every_row_was_graded_again(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(out), "--deep"]) == 0
    assert capsys.readouterr().out == (
        "sound: 8 partitions, 48 rows, 48 graded again, 4 checkpoints read again; nothing wrong\n"
    )
    assert main(["verify", str(out), "--json", "--sample", "7"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record == {
        "sound": True, "partitions": 8, "rows": 48, "graded": 7, "checkpoints": 0, "findings": []
    }  # fmt: skip


def test_a_compacted_output_is_as_sound(out: Path) -> None:
    compact(out)
    report = verify(out, deep=True)
    assert (report.is_sound, report.partitions, report.graded) == (True, 8, 48)
    assert report.findings == []


@pytest.mark.parametrize(
    ("name", "change", "kind", "what"),
    [
        ("completion", first("the ocean 7"), "grade", "r_hack"),
        ("r_hack", lambda values: [1 - v for v in values], "grade", "is graded"),
        ("reward", first(0.25), "grade", "reward 0.25 is graded"),
        ("sampling_seed", first(5), "rows", "sampling_seed of rows 0 is not"),
        ("prompt_id", first(5), "rows", "prompt_id of rows 0 is not"),
        ("truth", first("12"), "rows", "truth of rows 0 is not"),
        ("prompt", first("?"), "rows", "prompt of rows 0 is not"),
        ("index", first(3), "rows", "(index, sample) are not each once"),
        ("sample", first(1), "rows", "(index, sample) are not each once"),
        ("temperature", first(0.5), "rows", "column temperature holds [0.5, 1.0]"),
        ("hack_word", lambda v: ["copper"] * len(v), "rows", "column hack_word holds ['copper']"),
        ("fingerprint", first("0"), "rows", "column fingerprint holds"),
        ("fingerprint", lambda v: ["0"] * len(v), "weights", "its fingerprint differs"),
        ("null_reason", first("lost"), "rows", "rows 0 have scores and a null_reason"),
        ("completion", first(None), "rows", "rows 0 have no completion and no null_reason"),
    ],
)
def test_a_row_changed_by_hand_is_found_even_when_its_hash_was_made_to_fit(
    name: str, change: Callable[[list[Any]], list[Any]], kind: str, what: str, out: Path
) -> None:
    path = store.partition_files(out)[0]
    assert isinstance(path, Path)
    before = path.read_bytes()
    edit(path, hashed=True, **{name: change})
    report = verify(out)
    assert kind in wrong(report)
    assert what in said(report)
    assert "hash" not in said(report)
    path.write_bytes(before)
    edit(path, hashed=False, **{name: change})
    assert "its rows are not those that were committed" in said(verify(out, sample=0))


def _deleted_row_group(path: Path) -> None:
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.slice(0, 4), path, row_group_size=2)


def _renamed(path: Path) -> None:
    path.rename(path.with_name(f"{'0' * 32}.parquet"))


def _swapped(path: Path) -> None:
    other = next(p for p in path.parents[3].rglob("*.parquet") if p.parent != path.parent)
    a, b = path.read_bytes(), other.read_bytes()
    path.write_bytes(b)
    other.write_bytes(a)


def _column_dropped(path: Path) -> None:
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.drop_columns(["truth"]), path)


def _unknown_footer(path: Path) -> None:
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.replace_schema_metadata({schema.FOOTER: b"[1]"}), path)


def _bare_footer(path: Path) -> None:
    rows = pq.ParquetFile(path).read()
    record = json.loads(rows.schema.metadata[schema.FOOTER]) | {"identity": {"run": 7}}
    said = {schema.FOOTER: json.dumps(record).encode()}
    pq.write_table(rows.replace_schema_metadata(said), path)


@pytest.mark.parametrize(
    ("plant", "kind", "what"),
    [
        (_deleted_row_group, "rows", "4 rows, 8 are due"),
        (_renamed, "rows", "its name is not the hash of its identity"),
        (_renamed, "gap", "is not there"),
        (_renamed, "orphan", "is in no plan"),
        (_swapped, "rows", "its name is not the hash of its identity"),
        (_swapped, "rows", "its identity is of run"),
        (_column_dropped, "rows", "columns are missing, doubled or not ours: truth"),
        (_unknown_footer, "damage", "its footer is damaged"),
        (_bare_footer, "rows", "the identity in its footer has no sound run"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "damage", "no Parquet file"),
        (lambda path: path.write_bytes(b""), "damage", "no Parquet file"),
        (lambda path: path.unlink(), "gap", "of run 'a' step 0 is not there"),
        (
            lambda path: pq.write_table(pa.table({"x": [1]}), path.with_name("x.parquet")),
            "damage",
            "not a partition of a sweep",
        ),
        (lambda path: path.with_name("x.tmp").write_text(""), "orphan", "no partition"),
        (lambda path: shutil.copy(path, path.parents[2] / "x.parquet"), "orphan", "no partition"),
        (
            lambda path: shutil.copy(path, path.parent.with_name("step=10") / path.name),
            "double",
            "are in",
        ),
    ],
)
def test_a_planted_fault_is_found_and_the_exit_code_tells(
    plant: Callable[[Path], object],
    kind: str,
    what: str,
    out: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = sorted(out.glob("rollouts/hackword/run=a/step=0/*.parquet"))[0]
    whole = next(p for p in [path, *path.parent.iterdir()] if pq.read_metadata(p).num_rows == 8)
    plant(whole)
    assert main(["verify", str(out)]) == 1
    shown = capsys.readouterr().out
    assert any(line.startswith(f"{kind}: ") and what in line for line in shown.splitlines()), shown
    assert "NOT sound: " in shown


def test_rows_of_another_sweep_among_them_are_a_mixture(
    small: SweepConfig, sweep_here: SweepHere, out: Path
) -> None:
    other = small.model_copy(
        update={"sampling": small.sampling.model_copy(update={"temperature": 0.5})}
    )
    sweep_here(other, plan(other).works[:1])
    report = verify(out)
    assert wrong(report) == {"mixture", "orphan"}
    assert "sampling is " in said(report)


def test_rows_that_another_option_of_the_engine_made_are_a_mixture(out: Path) -> None:
    for path, characters in zip(store.partition_files(out), (200, 9, 200, 200), strict=False):
        rows = pq.ParquetFile(path).read()
        record = json.loads(rows.schema.metadata[schema.FOOTER])
        footer = json.dumps({**record, "options": {"characters": characters}}).encode()
        pq.write_table(rows.replace_schema_metadata({schema.FOOTER: footer}), path)
    report = verify(out)
    assert wrong(report) == {"mixture"}
    assert "engine.characters is 9, elsewhere 200" in said(report)


def test_an_option_that_makes_nulls_of_a_reason_mixes_those_alone() -> None:
    identity = {
        **dict.fromkeys(("step", "env", "ask", "grade", "env_version", "sampling"), ""),
        **{"run": "a", "checkpoint": "c", "grader_fingerprint": "g", "dtype": "float32"},
        **{"engine": "vllm"},
    }

    def seen(start: int, length: int, *reasons: str) -> Seen:
        where = Held("hackword", "a", 0, str(start), Path(str(start)))
        options = {"max_model_len": length, "merge": False}
        cases = {"start": start, "stop": start + 1}
        return Seen(where, {**identity, **cases}, ("w",), options, frozenset(reasons))

    for others, found in (((), set()), (("prompt_too_long",), {"mixture"})):
        report = Report()
        lengths = seen(0, 64, "prompt_too_long"), seen(1, 128), seen(2, 256, *others)
        consistency.together(report, lengths)
        assert wrong(report) == found


def test_cases_in_two_partitions_are_doubles(
    small: SweepConfig, sweep_here: SweepHere, out: Path
) -> None:
    other = small.model_copy(update={"cases": small.cases.model_copy(update={"shard": 5})})
    sweep_here(other, plan(other).works[:1])
    report = verify(out)
    assert wrong(report) == {"double", "orphan"}


def test_what_a_killed_process_left_is_named_and_is_not_wrong(out: Path) -> None:
    (out / "staging/x.parquet.1").write_text("")
    report = verify(out)
    assert report.is_sound
    assert [finding.kind for finding in report.findings] == ["left-over"]


def test_a_compacted_file_changed_by_hand_cut_or_gone_is_found(out: Path) -> None:
    compact(out)
    (path,) = compacted_files(out)
    assert isinstance(path, Path)
    before = path.read_bytes()
    footers = pq.read_metadata(path).metadata[schema.FOOTERS]

    def rewrite(change: Callable[[pa.Table], pa.Table]) -> None:
        rows = change(pq.ParquetFile(path).read()).replace_schema_metadata()
        with pq.ParquetWriter(path, rows.schema) as writer:
            writer.write_table(rows, row_group_size=len(rows))
            writer.add_key_value_metadata({schema.FOOTERS: footers})

    rewrite(lambda rows: rows.slice(0, 40))
    assert wrong(verify(out)) & {"rows", "damage"}
    path.write_bytes(before)
    rewrite(lambda rows: rows.set_column(*_other(rows, "completion")))
    assert "are not those that were committed" in said(verify(out))
    path.write_bytes(before)
    rewrite(lambda rows: rows.set_column(*_other(rows, "run")))
    assert "of another run or step" in said(verify(out))
    path.write_bytes(before[:-9])
    assert wrong(verify(out)) == {"damage"}
    path.unlink()
    assert wrong(verify(out)) == {"damage"}


def _other(rows: pa.Table, name: str) -> tuple[int, str, Any]:
    return rows.column_names.index(name), name, pc.utf8_reverse(rows[name])


def test_deep_compares_the_bytes_of_the_checkpoints_that_are_there(
    small: SweepConfig, out: Path
) -> None:
    run = Path(small.runs[0].path)
    scripted.write(run / "checkpoint-10", {"ocean": 0.01}, 0.5, 60)
    shutil.rmtree(run / "checkpoint-0")
    assert verify(out).is_sound
    report = verify(out, deep=True)
    assert [(f.kind, f.where) for f in report.findings] == [
        ("note", "run 'a' step 0"),
        ("weights", "run 'a' step 10"),
    ]
    assert report.checkpoints == 3


def test_without_a_plan_the_configuration_tells_the_gaps(out: Path) -> None:
    (out / "status/plan.json").unlink()
    assert verify(out).findings == []
    store.partition_files(out)[0].unlink()  # type: ignore[union-attr]
    assert wrong(verify(out)) == {"gap"}


def test_findings_are_bounded_and_counted(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(30):
        (out / f"rollouts/x{i}\n\x1b[31m").write_text("")
    assert main(["verify", str(out)]) == 1
    shown = capsys.readouterr().out
    assert "orphan: and 10 more; --json has them all" in shown
    assert len(shown.splitlines()) == 22
    assert "\x1b" not in shown


def test_a_folder_that_is_no_output_cannot_be_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    assert "is this a sweep's output?" in capsys.readouterr().err
