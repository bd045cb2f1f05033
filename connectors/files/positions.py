"""Where each stream of lines stands, over rotation, truncation and loss: the offset of FilesSource.

A stream is named after the path its file was first seen at. When that file is renamed away and another takes the path, the
stream goes on in the new file, and its offsets go on counting: `base` is where the current file starts in the stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace


class FileState(Struct, frozen=True):
    """A file on disk. `file` identifies it under any name: device, inode and a digest of its first line; `changed` is its
    modification time in epoch seconds."""

    path: str
    file: str
    size: int
    changed: int

    @property
    def digest(self) -> str:
        """The digest of the first line, which survives compression."""
        return self.file.rpartition("-")[2]


class Piece(Struct, frozen=True):
    """Bytes [start, end) of a file, which are [base + start, base + end) of its stream; `line` numbers the first line."""

    path: str
    file: str
    base: int
    start: int
    end: int
    line: int
    changed: int = 0


class Lost(Struct, frozen=True):
    """Offsets [start, end) of a stream that can never be read, and why."""

    start: int
    end: int
    why: str


class Position(Struct, frozen=True):
    """How far a stream has been read.

    `home` is the path it is named after, `path` where its file is now (None: nowhere). It is read up to `at` of the `size`
    bytes of that file (uncompressed). `finished` are the pieces of files that made way since the previous offset.
    """

    home: str
    path: str | None
    file: str
    base: int = 0
    at: int = 0
    line: int = 1
    size: int = 0
    changed: int = 0
    behind: bool = False
    finished: tuple[Piece, ...] = ()
    lost: Lost | None = None

    def piece_since(self, earlier: Position | None) -> Piece | None:
        """Return what this position has read of its file and `earlier` has not; None when nothing."""
        same = earlier is not None and (earlier.file, earlier.base) == (self.file, self.base)
        start, line = (earlier.at, earlier.line) if same and earlier is not None else (0, 1)
        if self.path is None or self.at <= start:
            return None
        return Piece(self.path, self.file, self.base, start, self.at, line, self.changed)


class Positions(Struct, frozen=True):
    """All streams of a source by name, and the files that are done with, so that they are not read again under new names."""

    streams: Mapping[str, Position] = field(default_factory=dict)
    retired: tuple[str, ...] = ()


class Disk(Struct, frozen=True):
    """The files that exist now: those asked for, and their neighbours, where a rotated file may have gone."""

    wanted: Mapping[str, FileState]
    everywhere: Mapping[str, FileState]  # by identity


def followed(position: Position, disk: Disk, known: frozenset[str], keeps_name: bool) -> Position:
    """Return `position` on the disk as it is now, nothing more read: the same file, wherever it went, or its successor.

    Args:
        known: identities that belong to some stream already; never a successor.
        keeps_name: whether a new file at `home` continues this stream (a live log), or is another one (`server.log.1`).
    """
    fresh = replace(position, finished=(), lost=None)
    current = disk.everywhere.get(position.file)
    successor = disk.wanted.get(position.home) if keeps_name else None
    if successor is not None and successor.file not in known:
        return _succeeded(fresh, current, successor)
    if current is None:
        return _vanished(fresh)
    if current.size < position.at and current.size < position.size:
        return _cut_short(fresh, current)
    return replace(fresh, path=current.path, size=max(current.size, position.size), changed=current.changed)


def _succeeded(position: Position, old: FileState | None, new: FileState) -> Position:
    end = max(position.size, old.size if old else 0)
    rest = Piece(old.path, position.file, position.base, position.at, old.size, position.line, old.changed) if old else None
    return Position(
        home=position.home,
        path=new.path,
        file=new.file,
        base=position.base + end,
        size=new.size,
        changed=new.changed,
        finished=(rest,) if rest and rest.end > rest.start else (),
        lost=None if old else _unread(position, "the file was replaced before it was read to its end"),
    )


def _vanished(position: Position) -> Position:
    lost = None if position.path is None else _unread(position, "the file is gone")
    return replace(position, path=None, at=position.size, behind=False, lost=lost)


def _cut_short(position: Position, now: FileState) -> Position:
    why = f"the file was cut to {now.size} bytes; what was written in between is unknown"
    read = position.base + position.at
    base = position.base + max(position.at, position.size)
    return replace(position, base=base, at=0, line=1, size=now.size, changed=now.changed, lost=Lost(read, base, why))


def _unread(position: Position, why: str) -> Lost | None:
    if position.at >= position.size:
        return None
    return Lost(position.base + position.at, position.base + position.size, why)
