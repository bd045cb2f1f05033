"""Where each stream of lines stands, over rotation, truncation and loss: the offset of FilesSource. Pure.

A stream is named after the path that its file was first seen at. It is what was read of one file after the other: when a file
makes way for another, the stream goes on in that one, and the first is followed for as long as it exists. Positions in a stream
count what was read of all of them, in that order, and what is known to be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, ValidationError, field
from msgspec.structs import replace

from engine.codec import made, plain
from engine.errors import SourceError
from engine.ports import Offset

VERSION = 2
VANISHED_KEPT = 64


class Fingerprint(Struct, frozen=True, array_like=True):
    """Bytes [start, end) of a file's content, and their digest."""

    start: int = 0
    end: int = 0
    digest: str = ""


class Cursor(Struct, frozen=True, array_like=True):
    """How far a file is read: up to `at` of the `size` bytes of its content that there were at the last look.

    `path` is where it was then, links resolved, `inode` its device and inode. These may come to name another file, so what it
    is, is told by its content: `first` is the digest of its first line ("": it had none yet), `head` of its first bytes, `tail`
    of those before `at`. The content of a compressed file is what is in it; then `packed` is its size on disk. `line` numbers
    the next line (0: unknown), `changed` is the time of its last change (seconds since 1970). `settled`: it was unchanged for
    long under the name of a file that nothing is added to.
    """

    path: str
    inode: str
    first: str = ""
    head: Fingerprint = Fingerprint()
    tail: Fingerprint = Fingerprint()
    at: int = 0
    line: int = 1
    size: int = 0
    changed: int = 0
    packed: int = 0
    settled: bool = False


class Copied(Struct, frozen=True):
    """A file whose content is all or a beginning of that of the file `original` (its inode), which is followed: so it is not
    read, unless it becomes another. `copy` is read up to its size."""

    copy: Cursor
    original: str


class Vanished(Struct, frozen=True):
    """A file of `stream` that is gone. Its content may come back, compressed."""

    stream: str
    cursor: Cursor


class FilePiece(Struct, frozen=True, array_like=True):
    """Bytes [start, end) of a file's content, which begin at `base` of their stream; `line` numbers the first line, `head` and
    `tail` tell the file as they do in a Cursor that stands at `end`."""

    path: str
    inode: str
    head: Fingerprint
    tail: Fingerprint
    base: int
    start: int
    end: int
    line: int
    changed: int = 0


class LostRange(Struct, frozen=True):
    """Positions [start, end) of a stream that can never be read, and why; nobody knows how many when they are equal."""

    start: int
    end: int
    why: str


class FileStream(Struct, frozen=True):
    """A stream of lines. `home` is the path it is named after, `files` what it is read from, oldest first. `end` is how much
    of it was read or lost. `pieces` and `lost` are those of the batch that ends here, `behind`: there was more than it took."""

    home: str
    end: int = 0
    files: tuple[Cursor, ...] = ()
    copies: tuple[Copied, ...] = ()
    behind: bool = False
    pieces: tuple[FilePiece, ...] = ()
    lost: tuple[LostRange, ...] = ()

    @property
    def unread(self) -> int:
        """How many bytes of its files are not read."""
        return sum(cursor.size - cursor.at for cursor in self.files)


class FilePositions(Struct, frozen=True):
    """All streams of a source by name, and what is remembered of files that are gone, the latest last."""

    version: int
    streams: Mapping[str, FileStream] = field(default_factory=dict)
    vanished: tuple[Vanished, ...] = ()


def offset_of(positions: FilePositions) -> Offset:
    """Return `positions` as JSON."""
    offset: dict[str, Any] = plain(positions)
    return offset


def positions_of(offset: Offset) -> FilePositions:
    """Return the positions that `offset_of` was given; none for an empty offset. Raises SourceError for those of another
    version of tocsin: taken for this one's, they would lose lines or repeat them."""
    if not offset:
        return FilePositions(VERSION)
    try:
        if offset.get("version") == VERSION:
            return made(offset, FilePositions)
    except ValidationError:
        pass
    raise SourceError(
        "where the files were read up to was written by another version of tocsin; "
        "remove the checkpoint folder to read them from their start, or go on with that version"
    )


def same_place(one: FilePositions, other: FilePositions) -> bool:
    """Tell whether nothing was read, lost or moved between two positions, whatever was read on the way to each."""
    return _place(one) == _place(other)


def _place(positions: FilePositions) -> FilePositions:
    streams = {
        name: replace(
            stream,
            pieces=(),
            lost=(),
            files=tuple(replace(cursor, changed=0, settled=False) for cursor in stream.files),
            copies=tuple(replace(each, copy=replace(each.copy, changed=0)) for each in stream.copies),
        )
        for name, stream in positions.streams.items()
    }
    return replace(positions, streams=streams)


def with_read(stream: FileStream, before: Cursor, after: Cursor) -> FileStream:
    """Return `stream` with one of its files read on from `before` to `after`."""
    files = tuple(after if cursor == before else cursor for cursor in stream.files)
    if after.at <= before.at:
        return replace(stream, files=files)
    piece = FilePiece(
        after.path, after.inode, after.head, after.tail, stream.end, before.at, after.at, before.line, after.changed
    )
    return replace(stream, files=files, end=stream.end + after.at - before.at, pieces=(*stream.pieces, piece))


def with_loss(stream: FileStream, count: int, why: str) -> FileStream:
    """Return `stream` with the loss of `count` bytes (0: nobody knows how many)."""
    return replace(stream, end=stream.end + count, lost=(*stream.lost, LostRange(stream.end, stream.end + count, why)))


def without_file(stream: FileStream, cursor: Cursor, quiet: bool, why: str) -> FileStream:
    """Return `stream` without a file whose content can be found nowhere any more, and with what is lost by that.

    What was not read is lost, and so may be what was written since the last look. Nothing is when the file was empty then, or
    was read to its end and `quiet`: nobody had written to it for long.
    """
    without = replace(stream, files=tuple(each for each in stream.files if each != cursor))
    if cursor.at >= cursor.size and (quiet or not cursor.size):
        return without
    return with_loss(without, cursor.size - cursor.at, why)
