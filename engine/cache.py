"""Derived data on disk: written in one step, so that a reader finds all of it or nothing; dropped when many
others of its kind have been used since.

What is read back is what was written there under that name, or nothing: each file begins with a digest of its name and content.
That tells damage and mistakes. Against somebody else's work it is no help, for who can write a file can write its digest; so a
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

KEPT = 8  # files of a kind
_FORMAT = b"tocsin cache 1\n"
_DIGEST_BYTES = 32


class DiskCache(Struct, frozen=True):
    """Files in `folder`; None: the user's cache folder. A kind of file is what its name begins with, up to the first dash.

    Reading and writing never fail: what is kept here can be made again. A folder that others can write to holds nothing.
    """

    folder: Path | None = None

    @property
    def refusal(self) -> str | None:
        """Why the folder is not used, and what to do; None when it is, or can be."""
        with contextlib.suppress(OSError, RuntimeError):
            folder = self._folder()
            if (why := distrusted(folder)) is not None:
                return f"the cache {folder} is not used, as {why}: rules are compiled anew each time. Remove that folder"
        return None

    def load(self, name: str) -> bytes | None:
        """Return what was stored as `name`, None when it is not there, cannot be read or is not what was stored."""
        try:
            file = self._folder() / name
            if distrusted(file.parent) or distrusted(file):
                return None
            data = file.read_bytes()
        except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
            return None
        with contextlib.suppress(OSError):
            os.utime(file)  # it is in use: what is no longer asked for goes first
        return _content(name, data)

    def store(self, name: str, data: bytes) -> None:
        """Write `name` in one step and drop all but those of its kind that were used last; nothing where it may not write."""
        with contextlib.suppress(OSError, RuntimeError):
            file = self._folder() / name
            if distrusted(file.parent):
                return
            make_folder(file.parent)
            _write(file, _head(name, data) + data)
            _prune(file.parent, f"{name.partition('-')[0]}-*{file.suffix}")

    def _folder(self) -> Path:
        return self.folder or _users()


def _head(name: str, content: bytes) -> bytes:
    return _FORMAT + hashlib.sha256(name.encode() + b"\0" + content).digest()


def _content(name: str, data: bytes) -> bytes | None:
    """Return the content of a file of this name, None when that was not written as it."""
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


def _users() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tocsin"
