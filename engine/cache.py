"""Derived data on disk. A file is written atomically, and removed when KEPT other files of its kind were used more recently.

Each file begins with a digest of its name and content, so reading returns exactly what was written under that name, or nothing.
The digest detects damage and mistakes. It is no protection against other users, who could write a digest as well; therefore a
folder that others can write to is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from msgspec import Struct

from engine.rights import distrusted, make_folder

KEPT = 8  # files of one kind
_FORMAT = b"tocsin cache 1\n"
_DIGEST_BYTES = 32


class DiskCache(Struct, frozen=True):
    """Files in `folder` (None: the user's cache folder). The kind of a file is the part of its name before the first dash.

    Reading and writing never raise: the data can be computed again. A folder that others can write to counts as empty.
    """

    folder: Path | None = None

    @property
    def refusal(self) -> str | None:
        """The reason why the folder is not used, and what to do; None when it can be used."""
        with contextlib.suppress(OSError, RuntimeError):
            folder = self._folder()
            if (why := distrusted(folder)) is not None:
                return f"the cache {folder} is not used, as {why}: rules are compiled anew each time. Remove that folder"
        return None

    def load(self, name: str) -> bytes | None:
        """Return the data stored under `name`; None when it is missing, unreadable or damaged."""
        try:
            file = self._folder() / name
            if distrusted(file.parent) or distrusted(file):
                return None
            data = file.read_bytes()
        except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
            return None
        with contextlib.suppress(OSError):
            os.utime(file)  # marks it as used: files unused for longest are removed first
        return _content(name, data)

    def store(self, name: str, data: bytes) -> None:
        """Write `name` atomically and remove all but the KEPT most recently used files of its kind; a failure is ignored."""
        with contextlib.suppress(OSError, RuntimeError):
            file = self._folder() / name
            if distrusted(file.parent):
                return
            make_folder(file.parent)
            _write(file, _head(name, data) + data)
            _prune(file.parent, f"{name.partition('-')[0]}-*{file.suffix}")

    def _folder(self) -> Path:
        return self.folder or _user_cache()


def _head(name: str, content: bytes) -> bytes:
    return _FORMAT + hashlib.sha256(name.encode() + b"\0" + content).digest()


def _content(name: str, data: bytes) -> bytes | None:
    """Return the content of a file; None when its digest is not that of `name` and the content."""
    content = data[len(_FORMAT) + _DIGEST_BYTES :]
    return content if data.startswith(_head(name, content)) else None


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


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tocsin"
