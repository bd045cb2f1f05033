"""What the state of a run takes on disk: its store and its checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

from engine.store import Store
from engine.store.file import files_of


def store_bytes(store: Store, path: Path | None) -> int:
    """Return the size of a store: of its file at `path` with the files beside it, or, for None, of a database on a server."""
    return store.statuses().size_bytes() if path is None else sum(map(_size_bytes, files_of(path)))


def checkpoint_bytes(folder: Path) -> int | None:
    """Return the size of the files of a checkpoint; None when it is not on this machine, or this user may not enter it."""
    try:
        if not folder.is_dir():
            return None
    except OSError:
        return None
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sum(map(_size_bytes, files))


def _size_bytes(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:  # removed by the run meanwhile
        return 0
