"""A spool: what was written is read again at the same positions, by other processes too, until it is removed.

A folder of segments, each named after the position of its first byte. One process appends. Positions survive the loss of the
folder: the next segment begins where the readers are. Imports the standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SEGMENT_BYTES = 8 << 20
KEPT_SEGMENTS = 4  # that were read: a batch may be read again after a crash
PIECE_BYTES = 1 << 20
_TAIL_BYTES = 64 << 10
_SUFFIX = ".lines"


class Spool:
    """Lines in `folder`. Reading needs no folder; the first `append` makes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self) -> int:
        """Return the position of the first line that is still there; 0 for an empty spool."""
        segments = self._segments()
        return segments[0][0] if segments else 0

    def end(self) -> int:
        """Return the position behind the last whole line; 0 for an empty spool."""
        segments = self._segments()
        return segments[-1][0] + _whole(segments[-1][1]) if segments else 0

    def append(self, lines: bytes, at_least: int = 0) -> None:
        """Append whole lines. Raises OSError when they cannot be written; then none of them is read.

        Args:
            at_least: the lowest position of the lines, if the spool ends before it.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        segments = self._segments()
        begin, path = segments[-1] if segments else (0, None)
        size = _whole(path) if path is not None else 0
        end = begin + size
        if path is None or end < at_least or size >= SEGMENT_BYTES:
            path, size = self._folder / f"{max(end, at_least):020}{_SUFFIX}", 0
        with path.open("ab") as segment:
            segment.truncate(size)  # a line that a crash cut off has never been read
            try:
                segment.write(lines)
                segment.flush()
                os.fsync(segment.fileno())
            except OSError:
                with suppress(OSError):
                    segment.truncate(size)
                raise

    def reach(self, start: int, most: int | None) -> int:
        """Return the position behind the last whole line, or behind the line number `most` after `start`."""
        if most is None:
            return max(start, self.end())
        reached, left = start, most
        for at, data in self.pieces(start, self.end()):
            lines = data.split(b"\n", left)
            left -= len(lines) - 1
            reached = at + len(data) - len(lines[-1])
            if not left:
                break
        return reached

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield position and bytes of what lies between two positions at line ends, in pieces of whole lines of about
        PIECE_BYTES. What was removed is left out."""
        for begin, path in self._segments():
            at, stop = max(start, begin), min(end, begin + _size(path))
            if at < stop:
                yield from _pieces(path, begin, at, stop)

    def prune(self, read_to: int) -> None:
        """Remove segments that end before `read_to`, except the newest ones."""
        segments = self._segments()
        done = [path for begin, path in segments[:-1] if begin + _size(path) <= read_to]
        for path in done[: -KEPT_SEGMENTS or None]:
            path.unlink(missing_ok=True)

    def _segments(self) -> list[tuple[int, Path]]:
        """Return first position and path of every segment, in order."""
        paths = self._folder.glob(f"*{_SUFFIX}") if self._folder.is_dir() else ()
        return sorted((int(path.stem), path) for path in paths if path.stem.isdigit())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _whole(path: Path) -> int:
    """Return the size of a segment without an unfinished last line."""
    size = _size(path)
    with suppress(FileNotFoundError), path.open("rb") as segment:
        end = size
        while end > 0:
            begin = max(0, end - _TAIL_BYTES)
            segment.seek(begin)
            last = segment.read(end - begin).rfind(b"\n")
            if last >= 0:
                return begin + last + 1
            end = begin
    return 0


def _pieces(path: Path, begin: int, at: int, stop: int) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as segment:
        segment.seek(at - begin)
        while at < stop:
            data = segment.read(min(PIECE_BYTES, stop - at))
            if not data.endswith(b"\n") and at + len(data) < stop:
                data += segment.readline(stop - at - len(data))
            if not data:
                return
            yield at, data
            at += len(data)
