"""Files of checkpoints as the machine sees them."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def read_ahead(files: Iterable[Path]) -> None:
    """Ask the kernel to read files into its page cache; returns at once, and never raises."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in files:
        with suppress(OSError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
