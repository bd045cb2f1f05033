"""The file that a store is kept in: whether it is still the one that was opened, and saving what it held when it is not.

A process that has a file open can read it after somebody has removed it, which nothing else can; so a store that is removed
under a running job is written back from there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from engine.rights import make_file, make_folder

BESIDE = ("-wal", "-shm")  # what SQLite keeps beside the file, by the end of its name


class StoreFile:
    """The file at `path`, which is there. Holds it open; every method that fails raises OSError or sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identity(path)
        self._held = connected(path, check_same_thread=False)
        self._held.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the files of the WAL too
        self._spent = False

    def lost(self) -> str | None:
        """Return what became of the file, `removed` or `replaced`; None while it is the one that was opened. One `stat`."""
        if self._spent:
            return "removed"
        now = _identity(self.path)
        if now is None:
            return "removed"
        return None if now == self._identity else "replaced"

    def save(self) -> Path:
        """Write what the lost file held, to its place if that is free, else beside it; return where. Nobody may write any more,
        and nothing of this process may have it open but this object, whose last act it is."""
        free = self.lost() == "removed"
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        copy = self.path.with_name(f"{self.path.name}.saved-{stamp}")
        make_folder(copy.parent)
        make_file(copy)
        with closing(connected(copy)) as target:
            self._held.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # all of it in one file
        if not free:
            return copy  # the connection stays open: closing it would take the new file's WAL away
        self.close()
        for beside in files_of(self.path)[1:]:
            beside.unlink(missing_ok=True)  # of the lost file: they do not fit the copy
        return copy.rename(self.path)

    def close(self) -> None:
        """Let go of the file."""
        self._spent = True
        with suppress(sqlite3.Error):
            self._held.close()


def files_of(path: Path) -> Sequence[Path]:
    """Return the file of a store and those that SQLite keeps beside it, whether they exist or not."""
    return [path, *(path.with_name(path.name + end) for end in BESIDE)]


def create(path: Path) -> None:
    """Make an empty file where there is none, and the folders that it is in."""
    make_folder(path.parent)
    make_file(path)


def connected(path: Path, *, timeout: float = 5.0, check_same_thread: bool = True) -> sqlite3.Connection:
    """Connect to the file at `path`; unlike SQLite by itself never makes one, which would look like an empty store."""
    address = f"file:{quote(str(path.absolute()))}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=check_same_thread)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino
