"""Whether an output holds what it says: every key, hash and seed again, and a sample of grades.

onset verify outputs/story
onset verify outputs/story --deep --sample 10000
"""

import sys
from collections import Counter
from collections.abc import Sequence

from jobs import command, terminal
from jobs.curves import folder
from pipeline.config import VerifyConfig, read
from pipeline.findings import Report, as_records
from pipeline.printable import one_line
from pipeline.verify import verify

LINES = 20
"""Findings of one kind that are printed; --json has them all."""


def main(argv: Sequence[str]) -> int:
    """Print what is found; 0 when the output is sound, 1 when something is wrong."""
    config = read(VerifyConfig, argv, positional="path")
    report = verify(folder(config.path), sample=config.sample, deep=config.deep)
    if config.json:
        terminal.as_json(as_records(report))
    else:
        show(report)
    return 0 if report.is_sound else 1


def show(report: Report) -> None:
    """One line a finding, as many of each kind, then the summary."""
    counts: Counter[str] = Counter()
    for finding in report.findings:
        counts[finding.kind] += 1
        if counts[finding.kind] <= LINES:
            print(one_line(f"{finding.kind}: {finding.where}: {finding.what}"))
    for kind, count in counts.items():
        if count > LINES:
            print(f"{kind}: and {count - LINES} more; --json has them all")
    read_again = f", {report.checkpoints} checkpoints read again" if report.checkpoints else ""
    wrong = ", ".join(f"{kind}: {n:,}" for kind, n in counts.items()) or "nothing wrong"
    print(
        f"{'sound' if report.is_sound else 'NOT sound'}: {report.partitions:,} partitions, "
        f"{report.rows:,} rows, {report.graded:,} graded again{read_again}; {wrong}"
    )


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
