"""Ray's processes leave our process group: a signal to all of that is ours alone to answer."""

import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

LEAVING = ContextVar("LEAVING", default=False)
"""Whether a process that is forked now is to be the first of a group of its own."""


def apart(start: Callable[[], T]) -> T:
    """What `start` returns. Ctrl-C in a terminal reaches none of the processes that it makes.

    On Linux only, where Ray has its processes end with ours by themselves; elsewhere it ends their
    group. Ray runs Python between fork and exec, so that the hook below is called there.
    """
    token = LEAVING.set(sys.platform == "linux")
    try:
        return start()
    finally:
        LEAVING.reset(token)


def _leave() -> None:
    if LEAVING.get():
        os.setpgrp()


os.register_at_fork(after_in_child=_leave)
