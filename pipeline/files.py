"""File systems: folders here and on object stores, read and written through one set of verbs.

Credentials and endpoint come from the environment alone (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...
and Google's own defaults).
"""

import errno
import os
import random
import re
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pyarrow import fs

from pipeline.places import Remote, Where, endpoint, region

T = TypeVar("T")

ATTEMPTS = 6
FIRST_WAIT = 0.5
"""Seconds before the second attempt; doubled for each one after, about 16 s in all."""
REQUESTS = 3
"""Of one attempt: pyarrow asks again by itself, after tens of milliseconds."""
AT_ONCE = 16
PASSING = re.compile(
    r"HTTP status (429|5\d\d)|NETWORK_CONNECTION|SLOW_DOWN|THROTTLING|REQUEST_TIME|curlCode"
    r"|INTERNAL_FAILURE|SERVICE_UNAVAILABLE|UNAVAILABLE|DEADLINE_EXCEEDED"
)
"""What the libraries call an error of a store that may be gone when one asks again."""
NAME_BYTES = 255
"""Of the longest name that a disk takes."""
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
REQUEST_SECONDS = 30.0
"""A store that sends nothing for so long is asked again."""


@dataclass(frozen=True, slots=True, order=True)
class Object:
    """One object as a listing shows it."""

    at: Remote
    size: int
    changed: int
    """Nanoseconds since the epoch, by the store's clock."""


def below(folder: Remote) -> list[Object]:
    """Every object under a folder, sorted; none where there is no such folder.

    A key that no file could be named by (`a//b`, `../x`) is left out.
    """
    select = fs.FileSelector(folder.path, recursive=True, allow_not_found=True)
    found = retried(folder, lambda system: system.get_file_info(select))
    named = [info for info in found if info.is_file and _is_plain(info.path)]
    return sorted(Object(Remote(folder.scheme, i.path), i.size, i.mtime_ns or 0) for i in named)


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    short = all(len(os.fsencode(part)) <= NAME_BYTES for part in parts)
    return short and "\0" not in path and not {"", ".", ".."} & set(parts)


def look(places: Sequence[Remote]) -> list[Object]:
    """Those of the objects that are there, asked for one by one: no listing is trusted."""

    def ask(place: Remote) -> Any:
        return retried(place, lambda system: system.get_file_info(place.path))

    # Each on its own: of many asked together, one that fails would have all asked again.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = zip(places, pool.map(ask, places), strict=True)
        return [Object(at, info.size, info.mtime_ns or 0) for at, info in found if info.is_file]


def exists(place: Where) -> bool:
    return place.is_file() if isinstance(place, Path) else bool(look([place]))


def reading(place: Where, use: Callable[[Any], T]) -> T:
    """What `use` makes of the open file (pyarrow's, with `read_at` and `size`).

    `use` is called again after an error that passes.
    """
    if isinstance(place, Path):
        with fs.LocalFileSystem().open_input_file(str(place)) as file:
            return use(file)

    def opened(system: Any) -> T:
        with system.open_input_file(place.path) as file:
            return use(file)

    return retried(place, opened)


def read_part(file: Any, offset: int, length: int) -> bytes:
    """That many bytes of a file that `reading` opened; a shorter answer is an error that passes."""
    content = bytes(file.read_at(length, offset))
    if len(content) != length:
        raise ConnectionError(f"{len(content)} bytes came where {length} were asked for")
    return content


def read_bytes(place: Where) -> bytes:
    """FileNotFoundError where nothing is there."""
    if isinstance(place, Path):
        return place.read_bytes()
    return reading(place, lambda file: bytes(file.read()))


def no_boundary(name: str) -> None:
    """What `put` calls at each write boundary, unless a test stops it there."""


def put(
    data: bytes | memoryview, to: Where, staging: Where, at: Callable[[str], None] = no_boundary
) -> None:
    """Make a file appear, whole or not at all, in place of another if one is there.

    A local one is staged in `staging` on the same disk, synced, renamed, and its folders synced; an
    object is put from memory. `at` hears "staged", "synced", "renamed" and "put" as it comes by.
    """
    if isinstance(to, Remote):
        _upload(data, to)
        at("put")
        return
    if not isinstance(staging, Path):
        raise TypeError("a local file is staged locally")
    staging.mkdir(parents=True, exist_ok=True)
    staged = staging / f"{to.name}.{uuid.uuid4().hex}"
    try:
        with staged.open("wb") as file:
            file.write(data)
            file.flush()
            at("staged")
            os.fsync(file.fileno())
        at("synced")
        changed = _make(to.parent)
        staged.replace(to)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            raise OSError(error.errno, os.strerror(error.errno), str(to)) from error
        raise
    at("renamed")
    for folder in changed:
        sync(folder)


def _upload(data: bytes | memoryview, to: Remote) -> None:
    def upload(system: Any) -> None:
        # One write call: closing a stream that an error left half written would publish the half.
        with system.open_output_stream(to.path) as stream:
            stream.write(data)
        if system.get_file_info(to.path).size != len(data):
            raise ConnectionError("the object that was put has another size")

    retried(to, upload)


def _make(folder: Path) -> list[Path]:
    """Make a folder; those whose entries a rename into it will have changed, innermost first."""
    missing = []
    for above in (folder, *folder.parents):
        if above.is_dir():
            break
        missing.append(above)
    folder.mkdir(parents=True, exist_ok=True)
    return [folder, *(above.parent for above in missing)]


def sync(folder: Path) -> None:
    """Have a folder's entries survive a loss of power, where its file system knows how."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def delete(place: Where) -> None:
    """It need not be there."""
    if isinstance(place, Path):
        place.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):
        retried(place, lambda system: system.delete_file(place.path))


def retried(
    place: Remote,
    ask: Callable[[Any], T],
    attempts: int = ATTEMPTS,
    wait: float = FIRST_WAIT,
) -> T:
    """What the place's file system answers; an error that passes is met by asking again.

    OSError of one line, without credentials, when it does not pass; FileNotFoundError as it is.
    """
    for attempt in range(attempts):
        try:
            return ask(_file_system(place.scheme, place.parts[0]))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "nothing is there", str(place)) from None
        except OSError as error:
            passing = isinstance(error, ConnectionError) or PASSING.search(str(error))
            if not passing or attempt == attempts - 1:
                tried = f" ({attempts} times)" if passing else ""
                raise OSError(f"{place}: {_without_secrets(error)}{tried}") from None
        # Many workers meet one slow store: their next attempts are spread over time.
        time.sleep(wait * 2**attempt * random.uniform(0.5, 1.0))
    raise AssertionError("unreachable: the last attempt returns or raises")


def _without_secrets(error: OSError) -> str:
    text = " ".join(str(error).split())
    for name in SECRETS:
        if secret := os.environ.get(name):
            text = text.replace(secret, f"<{name}>")
    return text


@cache
def _file_system(scheme: str, bucket: str) -> Any:
    if scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS / REQUESTS))
    at = endpoint()
    return fs.S3FileSystem(
        endpoint_override=at,
        region=region() or (None if at else fs.resolve_s3_region(bucket)),
        request_timeout=REQUEST_SECONDS,
        connect_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=REQUESTS),
        # In the background, a part that fails is told at the close, and nothing appears.
        background_writes=True,
        allow_delayed_open=True,
    )
