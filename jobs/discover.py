"""List the checkpoints under a path, and why some are none.

onset discover runs/
onset discover runs/ocean-s0 --json
"""

import sys
from collections.abc import Sequence

from jobs import command, terminal
from pipeline.config import DiscoverConfig, read
from pipeline.skeleton import Skeletons


def main(argv: Sequence[str]) -> int:
    """0 when every checkpoint is usable, else 1."""
    config = read(DiscoverConfig, argv, positional="path")
    skeletons = Skeletons()
    with skeletons.told():
        found = skeletons.discover(str(config.path), config.layout)
    rows = [
        {"run": f.run, "step": f.step, "kind": f.kind, "status": f.status, "why": f.why or ""}
        for f in found
    ]
    if config.json:
        paths = [skeletons.back(str(f.path)) for f in found]
        terminal.as_json({**row, "path": p} for row, p in zip(rows, paths, strict=True))
    else:
        terminal.table(rows, ["run", "step", "kind", "status", "why"])
    return 0 if all(f.status == "ok" for f in found) else 1


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
