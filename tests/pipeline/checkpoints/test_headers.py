import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save, save_file

from pipeline.checkpoints.headers import Extent, header, parse, read_json
from pipeline.records import CheckpointError

GOOD = save({"b": np.zeros((2, 3), np.float32), "a": np.ones(4, np.int8)})


def encode(entries: Any, data: bytes = b"") -> bytes:
    raw = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return len(raw).to_bytes(8, "little") + raw + data


def entry(begin: int, end: int, dtype: str = "U8", shape: Any = None) -> dict[str, Any]:
    shape = [end - begin] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_a_file_of_the_library_reads_as_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"w": np.zeros((2, 3), np.float32), "n": np.ones(4, np.int8)}, path, {"format": "pt"})
    assert header(path) == {"w": Extent("F32", (2, 3), 0, 24), "n": Extent("I8", (4,), 24, 28)}


def test_a_file_short_of_five_bytes_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(GOOD[:-5])
    with pytest.raises(CheckpointError, match=rf"torn: {len(GOOD) - 5} bytes .* {len(GOOD)}"):
        header(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "torn: 0 bytes"),
        (b"\x10\0\0", "torn: 3 bytes"),
        ((2**63).to_bytes(8, "little") + b"{}", "torn: 10 bytes"),
        (encode(b" " * (2**24 + 1)), "16,777,216 at most"),
        (encode(b"[]"), "no JSON object"),
        (encode(b"{" * 100_000), "not a sound"),
        (encode(b"\xff\xfe"), "not a sound"),
        (encode({"w": entry(0, 4)}, b"12345"), "torn"),
        (encode({"w": entry(0, 4), "v": entry(2, 6)}, b"123456"), "bytes 2 to 4 are in two"),
        (encode({"w": entry(0, 4), "v": entry(6, 8)}, b"12345678"), "bytes 4 to 6 are in no"),
        (encode({"w": entry(4, 8)}, b"12345678"), "bytes 0 to 4 are in no"),
        (encode({"w": entry(0, 4, "F32", [2])}, b"1234"), "cannot fill"),
        (encode({"w": entry(0, 1, "F4", [3])}, b"1"), "cannot fill"),
        (encode({"w": entry(0, 4, "F128")}, b"1234"), "unknown dtype"),
        (encode({"w": entry(0, 4, ["F32"])}, b"1234"), "unknown dtype"),  # type: ignore[arg-type]
        (encode({"w": entry(0, 1, shape=[True])}, b"1"), "no sizes"),
        (encode({"w": entry(0, 1, shape=[-1])}, b"1"), "no sizes"),
        (encode({"w": entry(0, 4) | {"more": 1}}, b"1234"), "no more"),
        (encode({"w": 3}), "needs dtype"),
        (encode(b'{"\\ud800": ' + json.dumps(entry(0, 1)).encode() + b"}", b"1"), "not a sound"),
        (encode(b'{"__metadata__": {}, "__metadata__": {}}'), "twice"),
        (encode({"__metadata__": {"step": 3}}), "__metadata__"),
    ],
)
def test_an_unsound_header_is_one_clear_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=said) as caught:
        header(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_a_folder_and_a_pipe_are_no_checkpoint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("gone", "No such file or directory; copy it there, or save the "),
        ("pipe", "not a file"),
        ("", "not a file"),
    ):
        with pytest.raises(CheckpointError, match=said):
            header(tmp_path / name)


def accepted(path: Path) -> bool:
    try:
        return bool(header(path)) or True
    except CheckpointError:
        return False


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.safetensors"
    path.write_bytes(data)
    assert accepted(path) in (True, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["U8", "F32", "BF16", "F4", "I64", "X"]) | JSON,
        "shape": st.lists(st.integers(-1, 5), max_size=3) | JSON,
        "data_offsets": st.lists(st.integers(-1, 40), max_size=3) | JSON,
    }
)


@given(st.dictionaries(st.text(max_size=3), ENTRY | JSON), st.integers(0, 40))
def test_any_header_that_we_accept_is_one_the_library_accepts(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[str, Any], data: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "entries.safetensors"
    path.write_bytes(encode(entries, bytes(data)))
    if accepted(path):
        with safe_open(path, "np") as file:
            assert set(file.keys()) == set(header(path))


@given(
    st.sampled_from(["cut", "flip", "grow"]),
    st.integers(0, len(GOOD) - 1),
    st.integers(0, 7),
)
def test_a_damaged_file_that_we_accept_is_one_the_library_accepts(
    tmp_path_factory: pytest.TempPathFactory, damage: str, at: int, bit: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    flipped = GOOD[:at] + bytes([GOOD[at] ^ 1 << bit]) + GOOD[at + 1 :]
    path.write_bytes({"cut": GOOD[:at], "flip": flipped, "grow": GOOD + GOOD[: at + 1]}[damage])
    try:
        with safe_open(path, "np") as file:
            sound = set(file.keys())
    except SafetensorError:
        sound = None
    assert (set(header(path)) if accepted(path) else None) == sound


def test_equal_headers_are_parsed_once() -> None:
    raw = b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    assert parse(raw) is parse(bytes(bytearray(raw)))


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_json_file_that_holds_no_object_is_no_checkpoint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.json: (torn|holds no)"):
        read_json(tmp_path / "config.json")
