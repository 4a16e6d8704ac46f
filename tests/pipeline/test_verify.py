"""An output on an object store is verified as a local one."""

from collections.abc import Callable

import pytest

from pipeline import files, standing, store
from pipeline.compaction import compact
from pipeline.config import SweepConfig
from pipeline.findings import Report
from pipeline.holdings import holdings
from pipeline.places import Remote, where
from pipeline.plan import plan
from pipeline.records import Written
from pipeline.soundness import Sample
from pipeline.verify import read_all, verify

SweepHere = Callable[..., list[Written]]


def test_an_output_on_an_object_store_is_sound_compacted_or_not_and_faults_are_found(
    small: SweepConfig, sweep_here: SweepHere, bucket: str
) -> None:
    far = small.model_copy(update={"output": where(f"{bucket}/out")})
    with store.writing(far.output, ""), standing.told(far.output, plan(far)):
        sweep_here(far)
    assert verify(far.output).findings == []
    lost, torn, *_ = store.partition_files(far.output)
    whole = {path: files.read_bytes(path) for path in (lost, torn)}
    files.delete(lost)
    files.put(whole[torn][:-50], torn, far.output)
    assert {finding.kind for finding in verify(far.output).findings} == {"gap", "damage"}
    for path, content in whole.items():
        files.put(content, path, far.output)
    compact(far.output)
    report = verify(far.output)
    assert (report.findings, report.partitions) == ([], 8)
    assert isinstance(far.output, Remote)


def test_an_output_that_is_not_there_is_refused(bucket: str) -> None:
    with pytest.raises(store.StoreError, match="is this a sweep's output"):
        verify(where(f"{bucket}/none"))


def test_what_is_compacted_while_it_is_verified_is_read_where_it_lies_then(
    small: SweepConfig, sweep_here: SweepHere
) -> None:
    with store.writing(small.output, ""), standing.told(small.output, plan(small)):
        sweep_here(small)
    before = holdings(small.output).held
    compact(small.output)
    report = Report()
    assert {one.held.key for one in read_all(small.output, before, report, Sample(5))} == {
        one.key for one in before
    }
    assert (report.findings, report.partitions) == ([], 8)
