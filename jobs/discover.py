"""List the checkpoints under a path, and why some are none.

onset discover runs/
onset discover runs/ocean-s0 --json
"""

import sys
from collections.abc import Sequence

from jobs import command, terminal
from pipeline import checkpoints
from pipeline.config import DiscoverConfig, read


def main(argv: Sequence[str]) -> int:
    """0 when every checkpoint is usable, else 1."""
    config = read(DiscoverConfig, argv, positional="path")
    found = checkpoints.discover(config.path, config.layout)
    rows = [
        {"run": f.run, "step": f.step, "kind": f.kind, "status": f.status, "why": f.why or ""}
        for f in found
    ]
    if config.json:
        terminal.as_json({**row, "path": str(f.path)} for row, f in zip(rows, found, strict=True))
    else:
        terminal.table(rows, ["run", "step", "kind", "status", "why"])
    return 0 if all(f.status == "ok" for f in found) else 1


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
