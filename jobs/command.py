"""How a verb is started from a shell: exit codes, and one line instead of a traceback."""

import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper

from pydantic_config import ConfigFileError

from hackbait.environment import EnvironmentRefused
from pipeline.checkpoints import LayoutError
from pipeline.engines import EngineError
from pipeline.judging import JudgeBusy, JudgeError
from pipeline.places import AddressRefused
from pipeline.printable import printable
from pipeline.records import CheckpointError, ClusterError, PlanError
from pipeline.rows import CurveError
from pipeline.store import StoreError

REFUSALS = (
    AddressRefused,
    CheckpointError,
    ClusterError,
    ConfigFileError,
    CurveError,
    EngineError,
    EnvironmentRefused,
    JudgeBusy,
    JudgeError,
    LayoutError,
    PlanError,
    StoreError,
    OSError,
)
"""What a person or the disk can mend; anything else is a fault of ours and shows its traceback."""

REFUSED, INTERRUPTED = 2, 130
LINE_CHARACTERS = 2_000
"""Of an error: it may quote what somebody wrote."""


def start(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Run a verb; its exit code. A refusal is one line on stderr and 2, Ctrl-C is 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that lacks a letter of a name is no reason to end.
            stream.reconfigure(errors="backslashreplace")
    try:
        return main(argv)
    except REFUSALS as error:
        said = printable(one_line(error))
        more = " ..." if len(said) > LINE_CHARACTERS else ""
        print(f"error: {said[:LINE_CHARACTERS]}{more}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def one_line(error: BaseException) -> str:
    """The error's message on one line; file and reason for errors of the operating system."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip())
