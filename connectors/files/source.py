"""Files as a Source: new, growing and rotated files, read up to a line end; compressed ones to their end.

Offsets are `FilePositions` as JSON. No file stays open between calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from connectors.files.advancing import Advancing, last_end, whole_lines
from connectors.files.containers import Selection, container_labels
from connectors.files.contents import Contents, FileState
from connectors.files.disk import Look, Watch, refuse_undecodable
from connectors.files.finding import FileListing, chosen, denied_together, find
from connectors.files.following import followed, free_name
from connectors.files.labels import labels_of
from connectors.files.opening import opened, text_runs
from connectors.files.positions import (
    VERSION,
    Cursor,
    FilePiece,
    FilePositions,
    FileStream,
    offset_of,
    positions_of,
    same_place,
)
from connectors.files.reading import line_ends, source_name, time_of
from connectors.files.rotation import is_rotated, rotation
from engine.codec import made, plain
from engine.errors import DataLoss, SourceError
from engine.model.records import NO_LABELS, Labels, Progress
from engine.ports import Chunk, Offset


@dataclass
class FilesSource:
    """Reads files, directories and globs (`paths`) as one source; each log is a stream of lines named by its path, a log of
    Docker by its container. The log of a container has the labels of its runtime (see containers), and `labels`, which take
    precedence.

    Args:
        labels: templates, which may contain `{path:regex}`; the label `timezone` is the zone of dates in file names.
        start: `earliest`, `latest` or an ISO time. Files that were last changed before it are skipped; later ones, and all that
            appear afterwards, are read from their start.
        final: the input ends at the size that the files have at the first look. A last line without a line end is read too; if
            the file grows later, the rest of the line is a line of its own.
        excluded: paths that are never read, whatever link leads to them: those that tocsin writes itself.
        select: by label, patterns of the containers that are read (see containers.Selection); empty: all files are read.
        clock: monotonic, in seconds.
        wall: seconds since 1970.
    """

    paths: Sequence[str]
    labels: Labels = field(default_factory=dict)
    start: str = "earliest"
    final: bool = False
    excluded: Sequence[str] = ()
    select: Selection = field(default_factory=dict)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    wall: Callable[[], float] = field(default=time.time, repr=False)

    def __post_init__(self) -> None:
        self._watch = Watch(self.clock, self.wall, self.final)
        self._contents = Contents(self._watch.rests)
        self._advancing = Advancing()
        self._limits: dict[str, int] | None = None
        self._unreadable: Mapping[str, SourceError] = {}

    def check(self) -> FileListing:
        """Return the files that exist now, and an error for every path that is missing, unreadable or no log."""
        listing = self._listing()
        readable, errors = [], {_name(error): error for error in listing.errors}
        for path in listing.files:
            try:
                refuse_undecodable(path)
                with opened(path, regular=True):
                    readable.append(path)
            except SourceError as error:
                errors[path] = error
        return FileListing(tuple(readable), tuple(denied_together(errors, self.paths).values()))

    def files(self) -> Mapping[str, str]:
        """Return the path of every log that exists now, by the name of its source."""
        return {source_name(path): path for path in self._listing().files}

    def initial(self) -> Offset:
        """Return the offset at which a first run starts: nothing read, or the end of every file that `start` skips."""
        if self.start == "earliest":
            return offset_of(FilePositions(VERSION))
        since = self.wall() if self.start == "latest" else datetime.fromisoformat(self.start).timestamp()
        look = self._look()
        streams: dict[str, FileStream] = {}
        for path, state in look.wanted.items():
            if state.changed < since:
                with suppress(SourceError):  # the next look reports it
                    streams |= self._skipped(free_name(path, streams), path, state, look)
        return offset_of(FilePositions(VERSION, dict(sorted(streams.items()))))

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the offset up to which lines can be read now: every file to a line end within its share of `max_lines`,
        compressed files to their end."""
        before = positions_of(start)
        look = self._look()
        after, readable = followed(before, look)
        after = self._advancing.advanced(after, readable, look, max_lines)
        self._watch.retain(look.inodes())
        self._unreadable = look.unreadable
        return start if same_place(before, after) else offset_of(after)

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return up to `parallelism` slices of whole streams, and one more slice for each loss. `end` is what `latest` returned
        for `start`."""
        if start == end:
            return []
        slices: list[list[Any]] = [[] for _ in range(max(1, parallelism))]
        sizes = [0] * len(slices)
        losses: list[dict[str, Any]] = []
        for name, stream in positions_of(end).streams.items():
            smallest = sizes.index(min(sizes))
            slices[smallest] += [(name, stream.home, plain(piece)) for piece in stream.pieces]
            sizes[smallest] += sum(piece.end - piece.start for piece in stream.pieces)
            losses += [{"lost": [name, lost.start, lost.end, lost.why]} for lost in stream.lost]
        return [{"pieces": pieces} for pieces in slices if pieces] + losses

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises DataLoss, or an ExceptionGroup of several, for lost lines, after all the others
        were yielded."""
        if "lost" in slice_:
            raise DataLoss(*slice_["lost"])
        losses: list[DataLoss] = []
        for name, home, raw in slice_["pieces"]:
            yield from self._read(name, home, made(raw, FilePiece), losses)
        if len(losses) == 1:
            raise losses[0]
        if losses:
            raise ExceptionGroup("lines are gone", losses)

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return the progress of every stream that has been read at `end`."""
        streams = positions_of(end).streams.items()
        return [self._progress(name, stream) for name, stream in streams if stream.end]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return the error of every file and folder that existed at the last look and could not be read, by name; those
        that are denied below one of `paths` are one."""
        return denied_together(self._unreadable, self.paths)

    def labels_of(self, path: str) -> Labels:
        """Return the labels of the log at `path`."""
        return {**container_labels(path), **labels_of(path, self.labels)}

    def _listing(self) -> FileListing:
        return chosen(find(self.paths, self.excluded), self.select)

    def _look(self) -> Look:
        self._watch.begin()
        self._contents.begin()
        look = Look(self._listing(), self._contents, self._watch, self._limits)
        if self.final and self._limits is None:
            self._limits = {state.inode: state.bytes for state in look.wanted.values()}
            look.bound(self._limits)
        return look

    def _skipped(self, name: str, path: str, state: FileState, look: Look) -> Mapping[str, FileStream]:
        """Return, by name, the stream of a file that counts as read up to the end of its last whole line; empty when it has no
        line yet."""
        final = look.is_final(state)
        first, start = self._contents.first(state, final)
        if not first:
            return {}
        at = self._contents.size(state)
        if not (final or state.packed):
            at = last_end(state, start)
        cursor = self._contents.begun(state, first, start, at, line=0)
        return {name: FileStream(path, at, (cursor,))}

    def _progress(self, name: str, stream: FileStream) -> Progress:
        zone = ZoneInfo(labels_of(stream.home, self.labels).get("timezone", "UTC"))
        path = stream.files[-1].path if stream.files else stream.home
        period = rotation(path, zone)
        live = not is_rotated(stream.home)
        return Progress(
            name,
            stream.end,
            stream.end + stream.unread,
            caught_up=not stream.behind,
            closed=period.closed and not live,
            covers_until=None if live else period.covers_until,
        )

    def _read(self, name: str, home: str, piece: FilePiece, losses: list[DataLoss]) -> Iterator[Chunk]:
        """Yield the lines of a piece from wherever its file is now; add a loss to `losses` for those that cannot be read."""
        labels = self.labels_of(home) or NO_LABELS
        changed = time_of(piece.changed)
        line, reached, tried, why = piece.line, piece.start, set[str](), "the file is gone"
        while reached < piece.end:
            state = _holder(home, piece, tried)
            if state is None:
                break
            tried.add(state.inode)
            try:
                for at, data in whole_lines(state.path, state.inode, reached, piece.end):
                    reached = at + len(data)
                    for start, text, end in text_runs(piece.base + at - piece.start, data):
                        yield Chunk(name, start, text, line, changed, labels, end=end)
                        line += line_ends(text) if line else 0
            except SourceError as error:
                why = str(error)
        if reached < piece.end:
            losses.append(DataLoss(name, piece.base + reached - piece.start, piece.base + piece.end - piece.start, why))


def _holder(home: str, piece: FilePiece, tried: Set[str]) -> FileState | None:
    """Return a file that a piece can be read from, except those `tried` (inodes); None when there is no other. The file may
    have been renamed, compressed, or copied and cut since the piece was planned."""
    watch = Watch(time.monotonic, time.time, final=True)
    contents = Contents(watch.rests)
    look = Look(FileListing(()), contents, watch, None)
    cursor = Cursor(piece.path, piece.inode, "", piece.head, piece.tail, piece.end)
    with suppress(SourceError):
        state = look.locate(cursor, home)
        if state is not None and state.inode not in tried and _can_hold(contents, state, cursor):
            return state
        for near in look.neighbours(home, piece.path):
            if near.inode not in tried and _can_hold(contents, near, cursor):
                return near
    return None


def _name(error: SourceError) -> str:
    """Return the name that the sentence of `error` begins with."""
    return str(error).partition(": ")[0]


def _can_hold(contents: Contents, state: FileState, cursor: Cursor) -> bool:
    try:
        return contents.holds(state, cursor)
    except SourceError:
        return False
