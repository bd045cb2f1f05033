"""What is in a file: told by digests, so that it is known under any name and also when it was compressed or copied.

What was seen of a file is remembered while its size and time of change stay as they are. A clock's step may hide a change that
follows at once, so nothing is remembered of a file before it has rested for a moment.
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
    """A file on disk at a look: `path` with links resolved, `bytes` as they lie there. `limit`: how much of it may be read."""

    path: str
    inode: str
    bytes: int
    changed_ns: int
    limit: int

    @property
    def packed(self) -> int:
        """Its size when it is compressed, else 0."""
        return self.bytes if is_compressed(self.path) else 0

    @property
    def changed(self) -> int:
        """Seconds since 1970."""
        return self.changed_ns // 1_000_000_000


class Unpacked(Struct, frozen=True):
    """What is in a compressed file: how many bytes can be read, how many lines of them end behind a position, and why it could
    not be read to its end ("": it could)."""

    size: int
    lines: int
    damage: str


class Contents:
    """Looks into files. Every method raises SourceError when a file cannot be read.

    Args:
        rests: whether a file has not changed for so long that a change would be seen.
    """

    def __init__(self, rests: Callable[[FileState], bool]) -> None:
        self._rests = rests
        self._answers: dict[tuple[str, int, int], dict[Any, Any]] = {}
        self._lasting: set[tuple[str, int, int]] = set()

    def begin(self) -> None:
        """Begin another look: only what the last one asked of files that rest is still known."""
        self._answers = {key: each for key, each in self._answers.items() if key in self._lasting}
        self._lasting = set()

    def size(self, state: FileState) -> int:
        """Return how many bytes of content can be read."""
        if not state.packed:
            return min(state.bytes, state.limit)
        return self._remembered(state, "size", lambda: self.unpacked(state, 0).size)

    def unpacked(self, state: FileState, at: int) -> Unpacked:
        """Return what is in a compressed file, its lines counted from `at`."""
        unpacked = self._remembered(state, ("unpacked", at), lambda: _unpacked(state, at))
        self._remembered(state, "size", lambda: unpacked.size)
        return unpacked

    def first(self, state: FileState, final: bool = False) -> tuple[str, int]:
        """Return the digest of the first line, "" while it has no end, and where it starts: behind the NULs at the start.

        Raises SourceError for a binary file. `final`: the line needs no end.
        """
        return self._remembered(state, ("first", final), lambda: _first(state, final))

    def holds(self, state: FileState, cursor: Cursor) -> bool:
        """Tell whether what was read of the file at `cursor`, and what was seen of it first, is in `state`."""
        if not state.packed and state.bytes < max(cursor.at, cursor.head.end):
            return False
        return all(self.print_of(state, each.start, each.end) == each for each in (cursor.head, cursor.tail))

    def print_of(self, state: FileState, start: int, end: int) -> Fingerprint | None:
        """Return the fingerprint of bytes [start, end); None when there are not that many."""
        if start == end:
            return Fingerprint(start, end)
        return self._remembered(state, (start, end), lambda: _print_of(state, start, end))

    def begun(self, state: FileState, first: str, start: int, at: int, line: int = 1) -> Cursor:
        """Return the position `at` of a file that nothing was read of yet; its first line starts at `start`."""
        head = Fingerprint(start, start)
        return self.at(state, Cursor(state.path, state.inode, first, head, line=line), at)

    def at(self, state: FileState, cursor: Cursor, at: int) -> Cursor:
        """Return `cursor` moved to `at` of `state`."""
        size = self.size(state)
        start = cursor.head.start
        head = self.print_of(state, start, max(start, min(size, start + HEAD_BYTES)))
        tail = self.print_of(state, max(start, at - TAIL_BYTES), at)
        if head is None or tail is None:
            raise SourceMissing(f"{state.path}: was cut while it was looked at")
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
        """Tell whether the whole content of `state` is a beginning of that of `other`, or all of it."""
        size = self.size(state)
        if not 0 < size <= self.size(other):
            return False
        bounds = ((0, min(size, HEAD_BYTES)), (max(0, size - TAIL_BYTES), size))
        return all(self.print_of(state, *bound) == self.print_of(other, *bound) for bound in bounds)

    def _remembered(self, state: FileState, what: Any, ask: Callable[[], T]) -> T:
        key = state.inode, state.bytes, state.changed_ns
        answers = self._answers.setdefault(key, {})
        if self._rests(state):
            self._lasting.add(key)
        if what not in answers:
            answers[what] = ask()
        answer: T = answers[what]
        return answer


def inode_of(stat: os.stat_result) -> str:
    """Return the device and inode of a file as text."""
    return f"{stat.st_dev:x}-{stat.st_ino:x}"


@contextmanager
def bytes_of(path: str, inode: str) -> Iterator[io.BufferedReader]:
    """Open the content of the file `inode` at `path`. Raises SourceMissing when that is another file now, or SourceError."""
    with content(path) as stream:
        _check_inode(stream, path, inode)
        yield stream


def skip_to(stream: io.BufferedReader, at: int, packed: bool) -> None:
    """Move a stream that was not read yet to `at`, or to its end when that comes before."""
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
        raise SourceMissing(f"{path}: is another file now")


def _first(state: FileState, final: bool) -> tuple[str, int]:
    with opened(state.path, regular=True) as stream:
        _check_inode(stream, state.path, state.inode)
        try:
            start = text_start(stream, plain=not state.packed)
            if start is None:
                return "", 0
            with bytes_of(state.path, state.inode) as again:
                skip_to(again, start, bool(state.packed))
                line = again.readline(FIRST_BYTES)
        except BROKEN as error:
            raise damaged(state.path, error) from error
        except OSError as error:
            raise refused(state.path, error) from error
    whole = line.endswith(b"\n") or len(line) == FIRST_BYTES or (bool(line) and (final or bool(state.packed)))
    return (_digest(line) if whole else ""), start


def _print_of(state: FileState, start: int, end: int) -> Fingerprint | None:
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
