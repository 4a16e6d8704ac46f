"""A checkpoint comes near once a node, whole, checked, and within the limit of the cache."""

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import cache, files
from pipeline.cache import Near
from pipeline.checkpoints import scripted
from pipeline.checkpoints.identity import cheap_id
from pipeline.places import Remote, where
from pipeline.records import Checkpoint, CheckpointError

BYTES = 200_000
LIMIT = 10**9


def remote(text: str) -> Remote:
    place = where(text)
    assert isinstance(place, Remote)
    return place


def planted(folder: Path, bucket: str, step: int, base: str | None = None) -> Checkpoint:
    """A checkpoint of some more than BYTES on the store, and what a plan says of it."""
    here = scripted.write(folder / f"checkpoint-{step}", {"ocean": step / 100})
    (here / "other.bytes").write_bytes(bytes([step]) * BYTES)
    place = remote(bucket) / "run" / here.name
    for path in here.iterdir():
        files.put(path.read_bytes(), place / path.name, place)
    files.put(bytes(10**6), place / "optimizer.pt", place)
    return Checkpoint("run", step, str(place), "script", cheap_id(here, base), base)


def whole(checkpoint: Checkpoint) -> bool:
    folder = Path(checkpoint.path)
    content = bytes([checkpoint.step]) * BYTES
    return cheap_id(folder) == checkpoint.cheap_id and (
        (folder / "other.bytes").read_bytes() == content
    )


def brought(home: Path) -> list[Path]:
    return sorted((home / "checkpoints").iterdir())


def test_what_comes_is_what_was_planned_without_the_optimizers_states(
    bucket: str, tmp_path: Path
) -> None:
    wanted = planted(tmp_path / "run", bucket, 3)
    local = Near(tmp_path / "cache", LIMIT).bring(wanted)
    assert whole(local)
    assert not (Path(local.path) / "optimizer.pt").exists()
    assert replace(local, path=wanted.path) == wanted


def test_a_local_checkpoint_is_used_where_it_lies(tmp_path: Path) -> None:
    wanted = Checkpoint("run", 1, str(tmp_path), "full", "c" * 32, "meta/llama")
    assert Near(tmp_path / "cache", 1).bring(wanted) is wanted
    assert not (tmp_path / "cache").exists()


def test_a_file_of_several_chunks_is_whole(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "CHUNK_BYTES", 4097)
    assert whole(Near(tmp_path / "cache", LIMIT).bring(planted(tmp_path / "run", bucket, 3)))


@pytest.mark.parametrize("fault", ["500", "503", "reset", "truncated", "slow"])
def test_fetching_outlasts_what_passes(
    store_server: Any, bucket: str, tmp_path: Path, fault: str
) -> None:
    wanted = planted(tmp_path / "run", bucket, 3)
    store_server.first(1, fault, "^GET .*(script.json|other.bytes)")
    assert whole(Near(tmp_path / "cache", LIMIT).bring(wanted))


def test_a_fetch_that_fails_leaves_nothing_and_says_so(
    store_server: Any, bucket: str, tmp_path: Path
) -> None:
    wanted = planted(tmp_path / "run", bucket, 3)
    store_server.first(10**6, "403", "^GET .*other.bytes")
    near = Near(tmp_path / "cache", LIMIT)
    with pytest.raises(CheckpointError, match=r"cannot be fetched: .*ACCESS_DENIED"):
        near.bring(wanted)
    assert brought(tmp_path / "cache") == []
    store_server.first(0, "500", "x")
    assert whole(near.bring(wanted))


def test_threads_of_one_process_fetch_it_once(
    store_server: Any, bucket: str, tmp_path: Path
) -> None:
    wanted = planted(tmp_path / "run", bucket, 3)
    store_server.seen.clear()
    near, found = Near(tmp_path / "cache", LIMIT), []
    threads = [
        threading.Thread(target=lambda: found.append(whole(near.bring(wanted)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert store_server.count("^GET .*other.bytes") == 1


def steps(home: Path) -> set[int]:
    return {(path / "other.bytes").read_bytes()[0] for path in brought(home)}


def asked(near: Near, wanted: Sequence[Checkpoint]) -> None:
    for checkpoint in wanted:
        near.keep([checkpoint])
        near.bring(checkpoint, patience=0)
        time.sleep(0.02)


def test_those_used_least_recently_make_room(bucket: str, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    one, two, three = (planted(tmp_path / "run", bucket, step) for step in (1, 2, 3))
    near = Near(home, 2 * BYTES + 10_000)
    asked(near, [one, two, one, three])
    assert steps(home) == {1, 3}


def test_one_in_use_never_makes_room(bucket: str, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    one, two, three = (planted(tmp_path / "run", bucket, step) for step in (1, 2, 3))
    near, other = Near(home, 2 * BYTES + 10_000), Near(home, 2 * BYTES + 10_000)
    first = near.bring(one)
    asked(other, [two, three])
    assert steps(home) == {1, 3}
    with pytest.raises(CheckpointError, match=r"no room for .* raise cluster.cache_size"):
        near.bring(two, patience=0)
    assert whole(first)
    other.keep([])
    assert whole(near.bring(two, patience=0))
    assert steps(home) == {1, 2}


def test_one_larger_than_the_cache_is_refused_with_the_setting(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"larger than cluster.cache_size, {BYTES}"):
        Near(tmp_path / "cache", BYTES).bring(planted(tmp_path / "run", bucket, 1))


def test_one_that_was_replaced_since_the_plan_is_refused(bucket: str, tmp_path: Path) -> None:
    wanted = planted(tmp_path / "run", bucket, 1)
    near = Near(tmp_path / "cache", LIMIT)
    near.bring(wanted)
    place = remote(wanted.path)
    files.put(b'{"words": {"ocean": 0.9}}', place / "script.json", place)
    with pytest.raises(CheckpointError, match="was replaced during the sweep"):
        near.bring(wanted)
    for found in files.below(place):
        files.delete(found.at)
    with pytest.raises(CheckpointError, match="nothing is there"):
        near.bring(wanted)


def test_one_that_a_killed_process_left_half_fetched_is_fetched_again(
    bucket: str, tmp_path: Path
) -> None:
    home, wanted = tmp_path / "cache", planted(tmp_path / "run", bucket, 1)
    Near(home, LIMIT).bring(wanted)
    (folder,) = brought(home)
    folder.rename(folder.with_suffix(".part"))
    (folder.with_suffix(".part") / "other.bytes").write_bytes(b"torn")
    assert whole(Near(home, LIMIT).bring(wanted))
    assert brought(home) == [folder]
    shutil.rmtree(folder)
    assert whole(Near(home, LIMIT).bring(wanted))


def test_a_base_is_brought_as_its_adapter_is(bucket: str, tmp_path: Path) -> None:
    base = planted(tmp_path / "base", bucket, 1)
    wanted = planted(tmp_path / "run", bucket, 2)
    local = Near(tmp_path / "cache", LIMIT).bring(replace(wanted, base=base.path))
    assert local.base
    assert (Path(local.base) / "other.bytes").read_bytes()[0] == 1


def test_what_was_read_ahead_keeps_no_other_process_waiting(bucket: str, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    one, two, three = (planted(tmp_path / "run", bucket, step) for step in (1, 2, 3))
    near, other = Near(home, 2 * BYTES + 10_000), Near(home, 2 * BYTES + 10_000)
    near.keep([one])
    first = near.bring(one)
    near.bring(two, patience=0)
    near.leave_others()
    other.keep([three])
    assert whole(other.bring(three, patience=0))
    assert whole(first)
    assert steps(home) == {1, 3}
