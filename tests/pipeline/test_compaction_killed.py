"""A compaction that is killed by the system at a boundary loses and doubles nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from pipeline import store
from pipeline.compaction import compact, compacted_files
from pipeline.config import SweepConfig
from pipeline.plan import plan
from pipeline.records import Written
from pipeline.rows import scan

SweepHere = Callable[..., list[Written]]
KILLED = """
import os, signal, sys
from pathlib import Path
from pipeline.compaction import compact

def at(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

compact(Path(sys.argv[1]), at)
"""


@pytest.mark.parametrize("boundary", ["file renamed", "manifest renamed"])
def test_sigkill_at_a_boundary_loses_no_row_and_the_next_compaction_clears(
    boundary: str, small: SweepConfig, sweep_here: SweepHere
) -> None:
    sweep_here(small)
    out = small.output
    order = "run", "step", "index", "sample"
    before = scan(store.row_files(out)).collect().sort(order)
    command = [sys.executable, "-c", KILLED, str(out), boundary]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
    assert store.done(out, plan(small).partitions) == {p.key for p in plan(small).partitions}
    after = scan(store.row_files(out)).collect().sort(order)
    assert after.select(before.columns).equals(before)
    compact(out)
    assert store.partition_files(out) == []
    assert len(compacted_files(out)) == 1
    assert [path.name for path in (out / "staging/compaction").iterdir()] == ["lock"]
