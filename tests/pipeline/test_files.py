"""Writes are whole or not at all, errors that pass are met again, none tells a secret."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import files
from pipeline.places import AddressRefused, Remote, is_address, polars_options, where

MEGABYTE = 10**6


def remote(text: str) -> Remote:
    place = where(text)
    assert isinstance(place, Remote)
    return place


def test_a_place_is_what_a_person_wrote() -> None:
    assert where("runs/a b%20c") == Path("runs/a b%20c")
    assert where("file:///runs/a%20b") == Path("/runs/a b")
    assert where("s3://bucket/a%2Fb c/") == Remote("s3", "bucket/a%2Fb c")
    assert str(where("gs://bucket/x")) == "gs://bucket/x"
    assert str(remote("s3://bucket") / "x" / "y") == "s3://bucket/x/y"
    assert remote("s3://bucket/x/y").parent.name == "x"
    assert is_address("S3://b/x")
    assert not is_address("meta-llama/Llama")
    assert not is_address(None)


@pytest.mark.parametrize(
    "text",
    [
        "s3://KEY:SECRET@bucket/x",
        "s3://SECRET@bucket",
        "s3://bucket/x?access_key=SECRET",
        "s3://bucket/x#SECRET",
        "https://user:SECRET@host/x",
        "hdfs://SECRET/x",
        "s3://bucket/../SECRET",
        "s3://bucket//SECRET",
        "s3://bucket/SECRET\0",
        "s3:///SECRET",
    ],
)
def test_an_address_that_may_hold_a_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        where(text)
    assert "SECRET" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("boundary", ["staged", "synced", "renamed"])
def test_a_write_that_ends_at_a_boundary_is_there_whole_or_not_at_all(
    tmp_path: Path, boundary: str
) -> None:
    target = tmp_path / "deep" / "er" / "x"

    def end(name: str) -> None:
        if name == boundary:
            raise InterruptedError(name)

    with pytest.raises(InterruptedError):
        files.put(b"new", target, tmp_path / "staging", end)
    assert target.exists() == (boundary == "renamed")
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_local_write_is_synced_before_its_rename_and_its_folders_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    fsync: Callable[[int], None] = os.fsync

    def note(descriptor: int) -> None:
        said.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    target = tmp_path / "new" / "folder" / "x"
    files.put(b"1", target, tmp_path / "staging", said.append)
    staged, *rest = said[1:]
    assert said[0] == "staged"
    assert staged.startswith("x.")
    assert rest == ["synced", "renamed", "folder", "new", tmp_path.name]


def test_an_object_is_put_read_listed_and_deleted(bucket: str) -> None:
    home = remote(bucket) / "a%2Fb 海"
    files.put(b"12345", home / "y", home)
    files.put(b"1", home / "x", home)
    assert [(o.at.name, o.size) for o in files.below(home)] == [("x", 1), ("y", 5)]
    assert files.read_bytes(home / "y") == b"12345"
    assert files.exists(home / "y")
    assert not files.exists(home)
    files.delete(home / "y")
    files.delete(home / "y")
    assert [o.at.name for o in files.look([home / "x", home / "y"])] == ["x"]
    assert files.below(home / "none") == []
    with pytest.raises(FileNotFoundError) as missing:
        files.read_bytes(home / "y")
    assert missing.value.filename == str(home / "y")


@pytest.mark.parametrize("fault", ["500", "503", "reset", "truncated", "slow"])
def test_reading_and_writing_outlast_what_passes(
    store_server: Any, bucket: str, fault: str
) -> None:
    content, target = os.urandom(3 * MEGABYTE), remote(bucket) / "x"
    store_server.first(1, fault, "^PUT ")
    files.put(content, target, target.parent)
    store_server.first(1, fault, "^GET .*/x")
    assert files.read_bytes(target) == content


@pytest.mark.parametrize(
    ("fault", "matching"),
    [("500", "^HEAD "), ("503", "^GET "), ("reset", "^PUT "), ("truncated", "^GET .*x")],
)
def test_what_the_library_gives_up_on_is_asked_again(
    store_server: Any, bucket: str, fault: str, matching: str
) -> None:
    target = remote(bucket) / "x"
    files.put(b"12345", target, target.parent)
    store_server.seen.clear()
    store_server.first(files.REQUESTS, fault, matching)
    files.put(b"67890", target, target.parent)
    assert files.read_bytes(target) == b"67890"
    assert store_server.count(matching) > files.REQUESTS


def test_a_large_object_whose_part_fails_never_appears_torn(store_server: Any, bucket: str) -> None:
    target = remote(bucket) / "large"
    store_server.first(10**6, "403", "partNumber=2")
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        files.put(bytes(30 * MEGABYTE), target, target.parent)
    assert not files.exists(target)
    store_server.first(1, "500", "partNumber=2")
    files.put(bytes(30 * MEGABYTE), target, target.parent)
    assert [o.size for o in files.look([target])] == [30 * MEGABYTE]


def test_an_error_that_does_not_pass_is_one_line_without_a_secret(
    store_server: Any, bucket: str
) -> None:
    store_server.first(10**6, "503", "^GET ")
    target, asked = remote(bucket) / "x", []

    def ask(system: object) -> bytes:
        asked.append(system)
        raise OSError(
            f"AWS Error SLOW_DOWN\n of {os.environ['AWS_SECRET_ACCESS_KEY']} and "
            f"{os.environ['AWS_ACCESS_KEY_ID']}"
        )

    with pytest.raises(OSError, match="3 times") as failed:
        files.retried(target, ask, attempts=3, wait=0.01)
    assert len(asked) == 3
    assert str(failed.value).startswith(f"{target}: AWS Error SLOW_DOWN of <AWS_SECRET_ACCESS_KEY>")
    assert "PLANTED" not in str(failed.value).upper()
    assert "\n" not in str(failed.value)


def test_what_cannot_pass_is_not_asked_again(store_server: Any, bucket: str) -> None:
    nowhere = remote("s3://no-such-bucket-here/x")
    with pytest.raises(OSError, match="NO_SUCH_BUCKET"):
        files.put(b"1", nowhere, nowhere.parent)
    assert store_server.count("^PUT ") == 1


def test_keys_that_no_file_can_be_named_by_are_left_out(store_server: Any, bucket: str) -> None:
    home = remote(bucket)
    for key in ("run/ok", "run/%2E%2E/%2E%2E/etc/passwd", "run//x", f"run/{'n' * 300}"):
        store_server.plant(bucket, key, b"1")
    assert [o.at.name for o in files.below(home / "run")] == ["ok"]


def test_polars_is_told_of_the_endpoint_and_of_no_key(bucket: str) -> None:
    options = polars_options(where(bucket))
    assert options == {
        "aws_endpoint_url": os.environ["AWS_ENDPOINT_URL"],
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    assert polars_options(Path("/x")) == {}


def test_a_full_disk_stays_an_error_of_the_system(tmp_path: Path) -> None:
    blocked = tmp_path / "staging"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(OSError, match="File exists") as failed:
        files.put(b"1", tmp_path / "x", blocked)
    assert failed.value.errno == errno.EEXIST
