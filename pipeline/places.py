"""Where a file or folder lies: a local one is a `Path`, one on an object store a `Remote`."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

SCHEMES = ("s3", "gs")
BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,221}")


class AddressRefused(Exception):
    """An address that is not read, and not repeated: it may hold a key.

    No ValueError, whose input pydantic would print.
    """


@dataclass(frozen=True, slots=True, order=True)
class Remote:
    """A folder or an object on an object store; it need not exist."""

    scheme: str
    path: str
    """Bucket and key as they stand, nothing quoted."""

    def __truediv__(self, name: str) -> "Remote":
        return Remote(self.scheme, f"{self.path}/{name}")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> "Remote":
        """The folder it lies in; a bucket lies in itself."""
        return Remote(self.scheme, self.path.rpartition("/")[0] or self.path)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.split("/"))


Where = Path | Remote


def where(text: str | Path | Remote) -> Where:
    """The place that a person wrote: a path, file://, s3://bucket/folder or gs://bucket/folder.

    AddressRefused for another scheme, or an address that holds credentials or options.
    """
    if not isinstance(text, str | Path | Remote):
        raise AddressRefused("a path is a text")
    if "\0" in str(text):
        raise AddressRefused("a path or address with a NUL names nothing")
    if not isinstance(text, str) or "://" not in text:
        return text if isinstance(text, Remote) else Path(text)
    scheme, _, rest = text.partition("://")
    if scheme.lower() == "file":
        return Path(unquote(urlsplit(text).path))
    if scheme.lower() not in SCHEMES:
        raise AddressRefused(
            "an address of no file system that is read; write a path, s3://bucket/folder or gs://..."
        )
    if "?" in rest or "#" in rest or "@" in rest.partition("/")[0]:
        raise AddressRefused(
            "an address holds credentials or options, which have no place there; set "
            "AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL ... in the environment, write s3://bucket/folder"
        )
    parts = rest.rstrip("/").split("/")
    if not BUCKET.fullmatch(parts[0]) or {"", ".", ".."} & set(parts) or "\0" in rest:
        raise AddressRefused("an address names no bucket and folder; write s3://bucket/folder")
    return Remote(scheme.lower(), "/".join(parts))


def is_address(text: str | None) -> bool:
    """Whether a text names a place on an object store."""
    scheme, mark, _ = (text or "").partition("://")
    return bool(mark) and scheme.lower() in SCHEMES


def endpoint() -> str | None:
    """Where an S3 store other than Amazon's listens."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def region() -> str | None:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None


def polars_options(place: Where) -> dict[str, str]:
    """What `polars.scan_parquet` must be told to find the same store."""
    if isinstance(place, Path) or place.scheme != "s3":
        return {}
    found = {"aws_endpoint_url": endpoint(), "aws_region": region()}
    options = {name: value for name, value in found.items() if value}
    if (endpoint() or "").startswith("http://"):
        options["aws_allow_http"] = "true"
    return options
