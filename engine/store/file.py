"""Watch the file of a store for removal and replacement, and save its content when that happens.

A process that has a file open can still read it after the file was removed; no other process can. So a store that is removed
under a running job is written back from the open connection.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from engine.rights import make_file, make_folder

SIDE_FILE_SUFFIXES = ("-wal", "-shm")  # of the files that SQLite keeps beside the database


class StoreFile:
    """The existing database file at `path`, held open. Methods that fail raise OSError or sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identity(path)
        self._connection = open_connection(path, check_same_thread=False)
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the files of the WAL too
        self._closed = False

    def lost(self) -> str | None:
        """Return `removed` or `replaced` when that happened to the file, None while it is in place. Costs one `stat`."""
        if self._closed:
            return "removed"
        identity = _identity(self.path)
        if identity is None:
            return "removed"
        return None if identity == self._identity else "replaced"

    def save(self) -> Path:
        """Write the content of the lost file to its path if that is free, else to a file beside it; return where.

        No process may write to the lost file any more, and no other object of this process may have it open. The object cannot
        be used afterwards.
        """
        is_free = self.lost() == "removed"
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        copy = self.path.with_name(f"{self.path.name}.saved-{stamp}")
        make_folder(copy.parent)
        make_file(copy)
        with closing(open_connection(copy)) as target:
            self._connection.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # no side files
        if not is_free:
            return copy  # the connection stays open: closing it would delete the WAL of the new file
        self.close()
        for side_file in files_of(self.path)[1:]:
            side_file.unlink(missing_ok=True)  # belongs to the lost file, not to the copy
        return copy.rename(self.path)

    def close(self) -> None:
        """Close the file."""
        self._closed = True
        with suppress(sqlite3.Error):
            self._connection.close()


def files_of(path: Path) -> Sequence[Path]:
    """Return the file of a store and its side files, whether they exist or not."""
    return [path, *(path.with_name(path.name + suffix) for suffix in SIDE_FILE_SUFFIXES)]


def create(path: Path) -> None:
    """Create an empty file, and its folders, where they are missing."""
    make_folder(path.parent)
    make_file(path)


def open_connection(path: Path, *, timeout: float = 5.0, check_same_thread: bool = True) -> sqlite3.Connection:
    """Connect to the file at `path`. Unlike SQLite's default this never creates the file, which would look like an empty
    store."""
    address = f"file:{quote(str(path.absolute()))}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=check_same_thread)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
