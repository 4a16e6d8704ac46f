"""A part of a bench in a process of its own, on one thread."""

import json
import os
import subprocess
import sys
from typing import Any


def child(module: str, *arguments: str) -> Any:
    """What a module prints last, as JSON, when it is run with these arguments."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
    )
    return json.loads(done.stdout.splitlines()[-1])
