"""Decides how far files can be read now: to a line end, at most their share of the lines; compressed files to their end."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from connectors.files.contents import Contents, FileState, bytes_of, skip_to
from connectors.files.disk import Look
from connectors.files.opening import BLOCK_BYTES, BROKEN, damaged, refused
from connectors.files.positions import Cursor, FilePositions, FileStream, with_loss, with_read
from connectors.files.reading import LINE_BYTES, line_ends
from connectors.files.rotation import is_compressed
from engine.errors import SourceError


class Reach(Struct, frozen=True):
    """The whole lines of a file that can be read now. They end at `at`.

    `lines`: how many they are; `ends`: how many of them have a line end; `more`: whether whole lines follow them; `searched`:
    there is no line end from `at` up to there.
    """

    at: int
    lines: int
    ends: int
    more: bool
    searched: int


class Advancing:
    """Advances positions. Stores how far an unfinished line was searched for its end, so that no byte is searched twice."""

    def __init__(self) -> None:
        self._searched: dict[str, tuple[int, int]] = {}  # by inode: where the line begins, and up to where it was searched

    def advanced(
        self, positions: FilePositions, readable: Mapping[str, FileState], look: Look, max_lines: int | None
    ) -> FilePositions:
        """Return `positions` advanced in the `readable` files (by inode), by about `max_lines` lines; None: no limit."""
        unread = sum(any(c.at < c.size and c.inode in readable for c in s.files) for s in positions.streams.values())
        share = None if max_lines is None else max(1, max_lines // max(1, unread))
        self._searched = {inode: extent for inode, extent in self._searched.items() if inode in readable}
        streams = {name: self._stream(stream, readable, look, share) for name, stream in positions.streams.items()}
        return replace(positions, streams=streams)

    def _stream(self, stream: FileStream, readable: Mapping[str, FileState], look: Look, max_lines: int | None) -> FileStream:
        """Return a stream advanced in its files, in order; a file is begun when all lines of those before it are planned."""
        for cursor in stream.files:
            if cursor.at >= cursor.size:
                continue
            if (state := readable.get(cursor.inode)) is None:
                stream = replace(stream, behind=True)  # it is not known where the file is, or it cannot be read now
                continue
            try:
                if state.packed:
                    stream = _unpacked(stream, cursor, state, look.contents)
                    continue
                reach = self._reach(cursor, state, max_lines, look.is_final(state))
                after = look.contents.at(state, replace(cursor, line=cursor.line and cursor.line + reach.ends), reach.at)
            except SourceError as error:
                look.refuse(state.path, error)  # the next trigger looks again, and finds it gone or moved
                stream = replace(stream, behind=True)
                continue
            stream = with_read(stream, cursor, after)
            if reach.more:
                return replace(stream, behind=True)
            max_lines = None if max_lines is None else max(1, max_lines - reach.lines)
        return stream

    def _reach(self, cursor: Cursor, state: FileState, max_lines: int | None, final: bool) -> Reach:
        at, searched = self._searched.get(cursor.inode, (cursor.at, cursor.at))
        if at != cursor.at or searched > cursor.size:
            searched = cursor.at
        reach = reach_of(state, cursor.at, searched, cursor.size, max_lines)
        self._searched[cursor.inode] = reach.at, reach.searched
        if final and not reach.more and reach.at < cursor.size:
            full = max_lines is not None and reach.lines >= max_lines
            return replace(reach, more=True) if full else replace(reach, at=cursor.size)  # a last line without a line end
        return reach


def reach_of(state: FileState, at: int, searched: int, end: int, max_lines: int | None = None) -> Reach:
    """Return the whole lines in bytes [at, end) of a plain file, at most `max_lines` of them (None: no limit).

    There is no line end in [at, searched). A line longer than LINE_BYTES is cut there, as in a scan. Raises SourceError when
    another file is at that path now, or the file has become shorter.
    """
    lines = ends = 0
    bound = max_lines if max_lines is not None else end
    with bytes_of(state.path, state.inode) as stream:
        stream.seek(searched)
        while searched < end:
            block = stream.read(min(BLOCK_BYTES, end - searched, at + LINE_BYTES - searched))
            if not block:
                raise SourceError(f"{state.path}: has become shorter: it ends at byte {searched}, and was to be read to {end}")
            count = line_ends(block)
            if lines + count > bound:
                left = bound - lines
                at = searched + _length(block, left) if left else at
                return Reach(at, bound, ends + left, more=True, searched=at)
            if count:
                at, lines, ends = searched + block.rfind(b"\n") + 1, lines + count, ends + count
            searched += len(block)
            if searched - at >= LINE_BYTES:
                if lines == bound:
                    return Reach(at, lines, ends, more=True, searched=at)
                at, lines = searched, lines + 1
    return Reach(at, lines, ends, more=False, searched=searched)


def last_end(state: FileState, start: int) -> int:
    """Return the end of the last whole line of a plain file; `start` when there is none. Raises SourceError as `reach_of`."""
    end = min(state.bytes, state.limit)
    with bytes_of(state.path, state.inode) as stream:
        while end > start:
            begin = max(start, end - BLOCK_BYTES)
            stream.seek(begin)
            if at := stream.read(end - begin).rfind(b"\n") + 1:
                return begin + at
            end = begin
    return start


def whole_lines(path: str, inode: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) for bytes [start, end) of the content of the file `inode` at `path`, in blocks of whole lines; the
    last line may lack its end, and a line longer than LINE_BYTES is cut there. Raises SourceError when another file is at that
    path, or the file is shorter or damaged."""
    pending: list[bytes] = []
    at, size = start, 0
    with bytes_of(path, inode) as stream:
        skip_to(stream, start, is_compressed(path))
        while at + size < end:
            block = _block(stream, path, min(BLOCK_BYTES, end - at - size, LINE_BYTES - size))
            if not block:
                raise SourceError(f"{path}: has become shorter: it ends at byte {at + size}, and was to be read to {end}")
            cut = block.rfind(b"\n") + 1 or (len(block) if size + len(block) >= LINE_BYTES else 0)
            if cut:
                yield at, b"".join((*pending, block[:cut]))
                at, pending, size = at + size + cut, [], 0
            pending.append(block[cut:])
            size += len(block) - cut
    if size:
        yield at, b"".join(pending)


def _unpacked(stream: FileStream, cursor: Cursor, state: FileState, contents: Contents) -> FileStream:
    """Return `stream` with all of a compressed file read that can be read; a damaged rest is lost."""
    unpacked = contents.unpacked(state, cursor.at)
    after = contents.at(state, replace(cursor, line=cursor.line and cursor.line + unpacked.lines), unpacked.size)
    stream = with_read(stream, cursor, after)
    return with_loss(stream, 0, unpacked.damage) if unpacked.damage else stream


def _block(stream: io.BufferedReader, path: str, most: int) -> bytes:
    try:
        return stream.read1(most)
    except BROKEN as error:
        raise damaged(path, error) from error
    except OSError as error:
        raise refused(path, error) from error


def _length(block: bytes, lines: int) -> int:
    """Return the length of the first `lines` lines of `block`, in bytes."""
    end = 0
    for _ in range(lines):
        end = block.index(b"\n", end) + 1
    return end
