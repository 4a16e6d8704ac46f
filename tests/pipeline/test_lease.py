"""One sweep at a time on an object store; a killed one holds nobody up for long."""

import threading
import time
from typing import Any

import pytest

from pipeline import files, lease
from pipeline.places import Remote, where

RENEWAL, PATIENT = 0.2, 2.0
"""Seconds. Who looks is patient: a busy machine may starve the one that renews."""


def folder(bucket: str) -> Remote:
    place = where(f"{bucket}/out/staging/leases")
    assert isinstance(place, Remote)
    return place


def test_a_second_sweep_is_refused_while_the_first_renews_and_free_afterwards(bucket: str) -> None:
    here = folder(bucket)
    with lease.held(here, RENEWAL):
        with pytest.raises(lease.Taken), lease.held(here, PATIENT):
            pass
        assert len(files.below(here)) == 1
    assert files.below(here) == []
    with lease.held(here, RENEWAL):
        pass


def test_of_two_that_begin_at_once_at_most_one_goes_on(bucket: str) -> None:
    here, begun, all_tried = folder(bucket), [], threading.Barrier(4)

    def sweep() -> None:
        try:
            with lease.held(here, PATIENT / 2):
                begun.append(1)
                all_tried.wait()
        except lease.Taken:
            all_tried.wait()

    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) <= 1


def test_what_a_killed_sweep_left_is_watched_then_cleared(bucket: str) -> None:
    here = folder(bucket)
    killed = here / "killed.json"
    files.put(b'{"owner": "killed", "renewals": 7}', killed, here)
    began = time.monotonic()
    with lease.held(here, RENEWAL):
        assert time.monotonic() - began >= lease.MISSED * RENEWAL
        assert not files.exists(killed)


def test_a_lease_that_is_old_by_the_stores_own_clock_is_not_waited_for(
    store_server: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = folder(bucket)
    files.put(b"{}", here / "killed.json", here)
    time.sleep(3.1)
    monkeypatch.setattr(time, "monotonic", lambda: pytest.fail("it was waited for"))
    with lease.held(here, 0.3):
        assert [o.at.name for o in files.below(here)] != ["killed.json"]
    assert files.below(here) == []


def test_a_lease_is_kept_through_errors_of_the_store(store_server: Any, bucket: str) -> None:
    here = folder(bucket)
    with lease.held(here, RENEWAL):
        store_server.first(3, "503", "^PUT .*leases")
        with pytest.raises(lease.Taken), lease.held(here, PATIENT):
            pass
