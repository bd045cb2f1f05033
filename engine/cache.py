"""Derived data on disk: written in one step, so that a reader finds all of it or nothing; dropped when many
others of its kind have been used since."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from msgspec import Struct

KEPT = 8  # files of a kind


class Cache(Struct, frozen=True):
    """Files in `folder`; None: the user's cache folder. A kind of file is what its name begins with, up to the first dash.

    Reading and writing never fail: what is kept here can be made again.
    """

    folder: Path | None = None

    def load(self, name: str) -> bytes | None:
        """Return what `name` holds, None when it is not there or cannot be read."""
        try:
            file = self._file(name)
            data = file.read_bytes()
        except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
            return None
        with contextlib.suppress(OSError):
            os.utime(file)  # it is in use: what is no longer asked for goes first
        return data

    def store(self, name: str, data: bytes) -> None:
        """Write `name` in one step and drop all but those of its kind that were used last; nothing where it may not write."""
        with contextlib.suppress(OSError, RuntimeError):
            file = self._file(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, data)
            _prune(file.parent, f"{name.partition('-')[0]}-*{file.suffix}")

    def _file(self, name: str) -> Path:
        return (self.folder or _users()) / name


def _write(file: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _prune(folder: Path, kind: str) -> None:
    files = sorted(folder.glob(kind), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT:]:
        file.unlink(missing_ok=True)


def _users() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tocsin"
