"""The positions of streams of lines across rotation, truncation and loss: the offset of FilesSource. Pure.

A stream is named after the first path of its file. It is the content of one file after the other: when a file is replaced, the
stream continues in the new one, and the old one is followed for as long as it exists. A position in a stream counts the bytes
read of all its files, in that order, and the bytes that are lost.
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
MAX_VANISHED = 64


class Fingerprint(Struct, frozen=True, array_like=True):
    """Bytes [start, end) of a file's content, and their digest."""

    start: int = 0
    end: int = 0
    digest: str = ""


class Cursor(Struct, frozen=True, array_like=True):
    """The position in a file: it is read up to `at`, of the `size` bytes that its content had at the last look.

    `path` is its path at that look, links resolved; `inode` its device and inode. Both may name another file later, so a file
    is identified by its content: `first` is the digest of its first line ("": it had none yet), `head` that of its first bytes,
    `tail` that of the bytes before `at`. All these are of the uncompressed content; `packed` is the size on disk of a
    compressed file, else 0. `line`: the number of the next line (0: unknown). `changed`: the time of its last change, in
    seconds since 1970. `settled`: it had the name of a rotated file and was unchanged for QUIET_S (see disk).
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
    """A file whose content is all or a beginning of that of `original`, the inode of a file of the same stream. It is not read
    as long as that is so; `copy` stands at its end."""

    copy: Cursor
    original: str


class Vanished(Struct, frozen=True):
    """A file of `stream` that is gone. Its content may come back in a compressed file."""

    stream: str
    cursor: Cursor


class FilePiece(Struct, frozen=True, array_like=True):
    """Bytes [start, end) of a file's content. They begin at position `base` of their stream; `line` is the number of the first
    line. `head` and `tail` identify the file, as in a Cursor at `end`."""

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
    """Positions [start, end) of a stream that can never be read, and why. `start` and `end` are equal when it is not known how
    many bytes are lost."""

    start: int
    end: int
    why: str


class FileStream(Struct, frozen=True):
    """A stream of lines. `home`: the path that it is named after; `files`: the files that it is read from, oldest first; `end`:
    the position up to which it is read or lost. `pieces` and `lost` are those of the batch that ends here; `behind`: there were
    more lines than the batch has."""

    home: str
    end: int = 0
    files: tuple[Cursor, ...] = ()
    copies: tuple[Copied, ...] = ()
    behind: bool = False
    pieces: tuple[FilePiece, ...] = ()
    lost: tuple[LostRange, ...] = ()

    @property
    def unread(self) -> int:
        """The number of bytes of its files that are not read."""
        return sum(cursor.size - cursor.at for cursor in self.files)


class FilePositions(Struct, frozen=True):
    """All streams of a source by name, and the files that are gone, the latest last (at most MAX_VANISHED)."""

    version: int
    streams: Mapping[str, FileStream] = field(default_factory=dict)
    vanished: tuple[Vanished, ...] = ()


def offset_of(positions: FilePositions) -> Offset:
    """Return `positions` as JSON."""
    offset: dict[str, Any] = plain(positions)
    return offset


def positions_of(offset: Offset) -> FilePositions:
    """Return the positions of an offset that `offset_of` made; no streams for an empty offset. Raises SourceError for an offset
    of another version of tocsin: read as one of this version, it would lose or repeat lines."""
    if not offset:
        return FilePositions(VERSION)
    try:
        if offset.get("version") == VERSION:
            return made(offset, FilePositions)
    except ValidationError:
        pass
    raise SourceError(
        "the stored positions of the files are of another version of tocsin; "
        "remove the checkpoint folder to read the files from their start, or go back to that version"
    )


def same_place(before: FilePositions, after: FilePositions) -> bool:
    """Return whether nothing was read, lost or moved between the two. Modification times and the pieces of a batch are not
    compared."""
    return _place(before) == _place(after)


def _place(positions: FilePositions) -> FilePositions:
    streams = {
        name: replace(
            stream,
            pieces=(),
            lost=(),
            files=tuple(replace(cursor, changed=0, settled=False) for cursor in stream.files),
            copies=tuple(replace(copied, copy=replace(copied.copy, changed=0)) for copied in stream.copies),
        )
        for name, stream in positions.streams.items()
    }
    return replace(positions, streams=streams)


def with_read(stream: FileStream, before: Cursor, after: Cursor) -> FileStream:
    """Return `stream` with one of its files advanced from `before` to `after`; the bytes between become a piece."""
    files = tuple(after if cursor == before else cursor for cursor in stream.files)
    if after.at <= before.at:
        return replace(stream, files=files)
    piece = FilePiece(
        after.path, after.inode, after.head, after.tail, stream.end, before.at, after.at, before.line, after.changed
    )
    return replace(stream, files=files, end=stream.end + after.at - before.at, pieces=(*stream.pieces, piece))


def with_loss(stream: FileStream, count: int, why: str) -> FileStream:
    """Return `stream` with the loss of `count` bytes (0: not known how many)."""
    return replace(stream, end=stream.end + count, lost=(*stream.lost, LostRange(stream.end, stream.end + count, why)))


def without_file(stream: FileStream, cursor: Cursor, quiet: bool, why: str) -> FileStream:
    """Return `stream` without a file whose content is nowhere any more, and with the loss that this means.

    The bytes that were not read are lost, and perhaps some that were written since the last look. Nothing is lost when the file
    was read to its end and was empty or `quiet`, that is, unchanged for long.
    """
    without = replace(stream, files=tuple(file for file in stream.files if file != cursor))
    if cursor.at >= cursor.size and (quiet or not cursor.size):
        return without
    return with_loss(without, cursor.size - cursor.at, why)
