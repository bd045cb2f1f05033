"""Identifies the content of files by digests, so that it is recognised under any name, and after compression or copying.

Digests are cached as long as a file's size and modification time stay the same. A step of the clock may hide a change that
follows at once, so nothing of a file is cached before it has been unchanged for a moment.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct

from connectors.files.opening import BLOCK_BYTES, BROKEN, content, damaged, opened, refused, text_start
from connectors.files.positions import Cursor, Fingerprint
from connectors.files.reading import line_ends
from connectors.files.rotation import is_compressed
from engine.errors import SourceMissing

HEAD_BYTES = 4096
TAIL_BYTES = 1024
FIRST_BYTES = 1024

T = TypeVar("T")


class FileState(Struct, frozen=True):
    """A file on disk at one look: `path` with links resolved, `bytes` its size on disk. `limit`: how many bytes may be read."""

    path: str
    inode: str
    bytes: int
    changed_ns: int
    limit: int

    @property
    def packed(self) -> int:
        """Its size on disk in bytes when it is compressed, else 0."""
        return self.bytes if is_compressed(self.path) else 0

    @property
    def changed(self) -> int:
        """The time of its last change, in seconds since 1970."""
        return self.changed_ns // 1_000_000_000


class Unpacked(Struct, frozen=True):
    """The content of a compressed file: `size`, the number of readable bytes; `lines`, the number of lines that end after a
    given offset; `damage`, why it cannot be read to its end ("" when it can)."""

    size: int
    lines: int
    damage: str


class Contents:
    """Reads sizes and digests of files, cached. Every method raises SourceError when a file cannot be read.

    Args:
        rests: returns whether a file has been unchanged for so long that another change would show in its modification time.
    """

    def __init__(self, rests: Callable[[FileState], bool]) -> None:
        self._rests = rests
        self._cache: dict[tuple[str, int, int], dict[Any, Any]] = {}
        self._stable: set[tuple[str, int, int]] = set()

    def begin(self) -> None:
        """Begin the next look: drop from the cache all results that the last look did not use, or that are of files not at
        rest."""
        self._cache = {key: results for key, results in self._cache.items() if key in self._stable}
        self._stable = set()

    def size(self, state: FileState) -> int:
        """Return the size of the content that can be read, in bytes."""
        if not state.packed:
            return min(state.bytes, state.limit)
        return self._cached(state, "size", lambda: self.unpacked(state, 0).size)

    def unpacked(self, state: FileState, at: int) -> Unpacked:
        """Return the content of a compressed file, with its lines counted from `at`."""
        unpacked = self._cached(state, ("unpacked", at), lambda: _unpacked(state, at))
        self._cached(state, "size", lambda: unpacked.size)
        return unpacked

    def first(self, state: FileState, final: bool = False) -> tuple[str, int]:
        """Return the digest of the first line ("" while it has no end) and its start, which is behind any NULs.

        Raises SourceError for a binary file. `final`: the line counts also without a line end.
        """
        return self._cached(state, ("first", final), lambda: _first(state, final))

    def holds(self, state: FileState, cursor: Cursor) -> bool:
        """Return whether `state` has the content of the file of `cursor`: its head, and the bytes before its position."""
        if not state.packed and state.bytes < max(cursor.at, cursor.head.end):
            return False
        prints = (cursor.head, cursor.tail)
        return all(self.fingerprint_of(state, expected.start, expected.end) == expected for expected in prints)

    def fingerprint_of(self, state: FileState, start: int, end: int) -> Fingerprint | None:
        """Return the fingerprint of bytes [start, end); None when the content is shorter."""
        if start == end:
            return Fingerprint(start, end)
        return self._cached(state, (start, end), lambda: _fingerprint_of(state, start, end))

    def begun(self, state: FileState, first: str, start: int, at: int, line: int = 1) -> Cursor:
        """Return a cursor at offset `at` of a file that is new; its first line starts at `start` and has the digest `first`."""
        head = Fingerprint(start, start)
        return self.at(state, Cursor(state.path, state.inode, first, head, line=line), at)

    def at(self, state: FileState, cursor: Cursor, at: int) -> Cursor:
        """Return `cursor` moved to offset `at` of `state`. Raises SourceMissing when the file was cut meanwhile."""
        size = self.size(state)
        start = cursor.head.start
        head = self.fingerprint_of(state, start, max(start, min(size, start + HEAD_BYTES)))
        tail = self.fingerprint_of(state, max(start, at - TAIL_BYTES), at)
        if head is None or tail is None:
            raise SourceMissing(f"{state.path}: was cut while it was being read")
        return Cursor(
            state.path,
            state.inode,
            cursor.first,
            head,
            tail,
            at,
            cursor.line,
            size,
            state.changed,
            state.packed,
            cursor.settled,
        )

    def begins_like(self, state: FileState, other: FileState) -> bool:
        """Return whether the content of `state` equals that of `other` or a beginning of it."""
        size = self.size(state)
        if not 0 < size <= self.size(other):
            return False
        bounds = ((0, min(size, HEAD_BYTES)), (max(0, size - TAIL_BYTES), size))
        return all(self.fingerprint_of(state, *bound) == self.fingerprint_of(other, *bound) for bound in bounds)

    def _cached(self, state: FileState, key: Any, compute: Callable[[], T]) -> T:
        version = state.inode, state.bytes, state.changed_ns
        results = self._cache.setdefault(version, {})
        if self._rests(state):
            self._stable.add(version)
        if key not in results:
            results[key] = compute()
        result: T = results[key]
        return result


def inode_of(stat: os.stat_result) -> str:
    """Return the device and inode of a file as text."""
    return f"{stat.st_dev:x}-{stat.st_ino:x}"


@contextmanager
def bytes_of(path: str, inode: str) -> Iterator[io.BufferedReader]:
    """Open the content of the file `inode` at `path`. Raises SourceMissing when another file is there now, and SourceError when
    it cannot be read."""
    with content(path) as stream:
        _check_inode(stream, path, inode)
        yield stream


def skip_to(stream: io.BufferedReader, at: int, packed: bool) -> None:
    """Move a stream from its start to `at`, or to its end when that comes before."""
    if not packed:
        stream.seek(at)
        return
    while at > 0 and (block := stream.read1(min(BLOCK_BYTES, at))):
        at -= len(block)


def _check_inode(stream: io.BufferedReader, path: str, inode: str) -> None:
    try:
        now = inode_of(os.stat(path))  # noqa: PTH116
        if not is_compressed(path):
            now = inode_of(os.fstat(stream.fileno()))
    except OSError as error:
        raise refused(path, error) from error
    if now != inode:
        raise SourceMissing(f"{path}: was replaced by another file")


def _first(state: FileState, final: bool) -> tuple[str, int]:
    with opened(state.path, regular=True) as stream:
        _check_inode(stream, state.path, state.inode)
        try:
            start = text_start(stream, plain=not state.packed)
            if start is None:
                return "", 0
            with bytes_of(state.path, state.inode) as uncompressed:
                skip_to(uncompressed, start, bool(state.packed))
                line = uncompressed.readline(FIRST_BYTES)
        except BROKEN as error:
            raise damaged(state.path, error) from error
        except OSError as error:
            raise refused(state.path, error) from error
    whole = line.endswith(b"\n") or len(line) == FIRST_BYTES or (bool(line) and (final or bool(state.packed)))
    return (_digest(line) if whole else ""), start


def _fingerprint_of(state: FileState, start: int, end: int) -> Fingerprint | None:
    with bytes_of(state.path, state.inode) as stream:
        try:
            skip_to(stream, start, bool(state.packed))
            data = b"".join(_exactly(stream, end - start))
        except BROKEN:
            return None
        except OSError as error:
            raise refused(state.path, error) from error
    return Fingerprint(start, end, _digest(data)) if len(data) == end - start else None


def _exactly(stream: io.BufferedReader, count: int) -> Iterator[bytes]:
    while count > 0 and (block := stream.read1(count)):
        count -= len(block)
        yield block


def _unpacked(state: FileState, at: int) -> Unpacked:
    size = lines = 0
    try:
        with bytes_of(state.path, state.inode) as stream:
            while block := stream.read1(BLOCK_BYTES):
                lines += line_ends(block[max(0, at - size) :])
                size += len(block)
    except BROKEN as error:
        return Unpacked(size, lines, f"the compressed data is damaged or ends early ({error})")
    except OSError as error:
        raise refused(state.path, error) from error
    return Unpacked(size, lines, "")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
