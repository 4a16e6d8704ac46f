"""Many small partitions into few large files; every row counts once, and resume goes on.

onset compact outputs/story
"""

import sys
from collections.abc import Sequence

from jobs import command, terminal
from jobs.curves import folder
from pipeline.compaction import compact
from pipeline.config import CompactConfig, read


def main(argv: Sequence[str]) -> int:
    """Compact an output, while a sweep writes there or after; 0."""
    config = read(CompactConfig, argv, positional="path")
    done = compact(folder(config.path))
    terminal.line(
        f"{done.partitions} partitions that lay alone, {done.rows} rows now in {done.files} large "
        f"files; {done.left_out} partitions were in large ones already"
    )
    return 0


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
