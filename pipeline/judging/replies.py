"""Replies of judges on disk, each paid once, and what each output has spent on them."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hackbait.judge import Reply

PATIENCE = 60.0
"""Seconds to wait while another process writes."""
PAUSE = 0.02
"""Seconds until it is tried again."""
LEASE = 30.0
"""Seconds for which a call is its owner's alone, who renews it while the call is under way."""
TABLES = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, text TEXT NOT NULL, whole INT NOT NULL);
CREATE TABLE IF NOT EXISTS spent (
    account TEXT PRIMARY KEY, calls INT NOT NULL DEFAULT 0, tokens INT NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS asking (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
"""


class Replies:
    """One SQLite file that any number of processes share; `opened` makes it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def get(self, key: str) -> Reply | None:
        """What was answered to the call of this key, if it was."""
        row = self._db.execute("SELECT text, whole FROM replies WHERE key = ?", (key,)).fetchone()
        return Reply(row[0], bool(row[1])) if row else None

    def put(self, key: str, reply: Reply, account: str, tokens: int) -> None:
        """Keep a reply and add what it cost: both or neither, whenever the process ends."""
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            values = key, reply.text, reply.whole
            self._db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", values)
            self._add(account, 0, tokens)

    def claim(self, key: str, owner: str, now: float) -> bool:
        """Whether the call is ours to make: its reply is not there, and nobody else asks for it.

        now: seconds since the epoch.
        """
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            if self.get(key):
                return False
            self._db.execute("DELETE FROM asking WHERE until <= ?", (now,))
            values = key, owner, now + LEASE
            return bool(
                self._db.execute("INSERT OR IGNORE INTO asking VALUES (?, ?, ?)", values).rowcount
            )

    def renew(self, owner: str, now: float) -> None:
        """All that an owner asks for stays its own."""
        self._db.execute("UPDATE asking SET until = ? WHERE owner = ?", (now + LEASE, owner))

    def release(self, key: str) -> None:
        """Let others make the call, if its reply is not there."""
        self._db.execute("DELETE FROM asking WHERE key = ?", (key,))

    def take(self, account: str, calls: int | None, tokens: int | None) -> bool:
        """Count one call that is about to be paid; False where the budget is spent."""
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            paid, used = self.spent(account)
            if (calls is not None and paid >= calls) or (tokens is not None and used >= tokens):
                return False
            self._add(account, 1, 0)
            return True

    def add(self, account: str, calls: int) -> None:
        """Count more tries of a call."""
        self._add(account, calls, 0)

    def spent(self, account: str) -> tuple[int, int]:
        """Calls and tokens so far."""
        row = self._db.execute(
            "SELECT calls, tokens FROM spent WHERE account = ?", (account,)
        ).fetchone()
        return row or (0, 0)

    def _add(self, account: str, calls: int, tokens: int) -> None:
        self._db.execute(
            "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT (account) DO UPDATE SET "
            "calls = calls + excluded.calls, tokens = tokens + excluded.tokens",
            (account, calls, tokens),
        )


@contextmanager
def opened(folder: Path) -> Iterator[Replies]:
    """The replies of a folder, which is made. sqlite3.Error where its file is none of ours."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "judge.sqlite3"
    with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as connection:
        _prepare(connection)
        yield Replies(connection)


def _prepare(connection: sqlite3.Connection) -> None:
    """Patient: SQLite waits for no other process while it switches to a write-ahead log."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(TABLES)
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > until:
                raise
        time.sleep(PAUSE)
