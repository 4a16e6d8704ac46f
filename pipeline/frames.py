"""The rows of an output for polars, and the file that is to blame where they cannot be read."""

from collections.abc import Callable
from typing import Any, TypeVar

from pipeline import contents, store
from pipeline.holdings import settled
from pipeline.places import Where
from pipeline.rows import Unreadable, scan
from pipeline.store import About

T = TypeVar("T")


def reading(out: Where, about: About, use: Callable[[Any], T]) -> T:
    """What `use` makes of the frame of one environment's rows, read again where they moved.

    StoreError that names the file which is damaged; CurveError for all else.
    """

    def once() -> T:
        files = store.row_files(out, about.environment)
        try:
            return use(scan(files, about.gated))
        except Unreadable:
            contents.refuse_damaged(files)
            raise

    return settled(once)
