"""Files as a Source: new, growing and rotated files, read at line ends; compressed ones read whole.

Offsets are `Positions` as JSON. Nothing here keeps a file open between calls.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from connectors.files.labels import labels_of
from connectors.files.positions import Disk, FileState, Lost, Piece, Position, Positions, followed
from connectors.files.reading import Found, find, opened, refused, source_name, time_of
from connectors.files.rotation import is_compressed, rotation
from engine.codec import made, plain
from engine.errors import DataLoss, SourceError, SourceMissing
from engine.model.records import NO_LABELS, Labels, Progress
from engine.model.visible import visible
from engine.ports import Chunk, Offset

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
SETTLED_S = 10.0  # a compressed file is read once nothing was written to it for this long
RETIRED_KEPT = 500


@dataclass
class FilesSource:
    """Reads files, directories and globs (`paths`) as one source; each file is a stream of lines named by its path.

    `labels` may hold `{path:regex}`; the label `timezone` is the zone of dates in file names. `start`: `earliest`, `latest`,
    or an ISO time: a file that was last changed before it is passed over, a later one is read whole; files that appear
    afterwards are always read whole. `final`: the input is bounded by what is there at the first look, and a last line
    without a line end is read too (should the file grow later, the rest of it is a line of its own).
    """

    paths: Sequence[str]
    labels: Labels = field(default_factory=dict)
    start: str = "earliest"
    final: bool = False
    _heads: dict[tuple[int, ...], str] = field(default_factory=dict, repr=False)
    _bounds: dict[str, int] | None = field(default=None, repr=False)
    _unreadable: Mapping[str, SourceError] = field(default_factory=dict, repr=False)

    def check(self) -> Found:
        """Return the files there are now and a clear error for every path that is missing, unreadable or not text."""
        found = find(self.paths)
        readable, errors = [], list(found.errors)
        for path in found.files:
            try:
                _refuse_unspeakable(path)
                with opened(path):
                    readable.append(path)
            except SourceError as error:
                errors.append(error)
        return Found(tuple(readable), tuple(errors))

    def initial(self) -> Offset:
        """Return where a first run starts: nothing read, or the end of every file that `start` passes over."""
        if self.start == "earliest":
            return _offset(Positions())
        since = time.time() if self.start == "latest" else datetime.fromisoformat(self.start).timestamp()
        old = [state for state in self._disk(()).wanted.values() if state.changed < since]
        streams = {source_name(state.path): self._passed_over(state) for state in old}
        return _offset(Positions(dict(sorted(streams.items()))))

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return how far can be read now: at line ends, unread files by their share of `max_lines`, compressed ones whole."""
        before = _positions(start)
        disk = self._disk(before.streams.values())
        streams = self._followed(before, disk)
        unread = sum(position.at < position.size for position in streams.values())
        share = None if max_lines is None else max(1, max_lines // max(1, unread))
        streams = {name: self._advanced(position, share) for name, position in sorted(streams.items())}
        retired = _retired(before, streams, disk)
        return _offset(Positions(streams, retired))

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return up to `parallelism` slices of whole streams, and one more for each loss."""
        before, after = _positions(start), _positions(end)
        slices: list[dict[str, Any]] = [{"pieces": []} for _ in range(max(1, parallelism))]
        losses: list[dict[str, Any]] = []
        for name, position in after.streams.items():
            pieces = [*position.finished, position.piece_since(before.streams.get(name))]
            smallest = min(slices, key=lambda slice_: sum(p["end"] - p["start"] for _, p in slice_["pieces"]))
            smallest["pieces"] += [(name, plain(piece)) for piece in pieces if piece]
            if position.lost:
                losses.append({"lost": [name, position.lost.start, position.lost.end, position.lost.why]})
        return [slice_ for slice_ in slices if slice_["pieces"]] + losses

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice; what is gone raises DataLoss, after everything that is left was yielded."""
        if "lost" in slice_:
            raise DataLoss(*slice_["lost"])
        losses: list[DataLoss] = []
        for name, raw in slice_["pieces"]:
            piece = made(raw, Piece)
            try:
                yield from self._read(name, piece)
            except (SourceError, OSError) as error:
                losses.append(DataLoss(name, piece.base + piece.start, piece.base + piece.end, str(error)))
        if losses:
            raise losses[0]

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return, for every stream at `end`, how far it is read and whether its file is closed."""
        return [self._progress(name, position) for name, position in _positions(end).streams.items()]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return the files and folders that there were at the last look and that could not be read; what is not there yet is
        none of them."""
        return self._unreadable

    def labels_of(self, source_id: str) -> Labels:
        """Return the labels of the stream `source_id`."""
        return labels_of(source_id, self.labels)

    # --- what is on disk -------------------------------------------------------------------------------------------------

    def _disk(self, positions: Iterable[Position]) -> Disk:
        found = find(self.paths)
        wanted, refusals = self._states(found.files)
        errors = {str(error).partition(": ")[0]: error for error in found.errors} | refusals
        self._unreadable = {visible(what): error for what, error in errors.items() if not isinstance(error, SourceMissing)}
        folders = {str(Path(position.home).parent) for position in positions}
        neighbours, _ = self._states(entry.path for folder in sorted(folders) for entry in _entries(folder))
        if self._bounds is None and self.final:
            self._bounds = {state.file: state.size for state in wanted.values()}
        return Disk(wanted, {state.file: state for state in (*neighbours.values(), *wanted.values())})

    def _states(self, paths: Iterable[str]) -> tuple[dict[str, FileState], dict[str, SourceError]]:
        """Return the states of the files that can be read and have a first line, and why others cannot be read, by path. What
        is in neither or in the second is looked at again at the next trigger."""
        states, errors = dict[str, FileState](), dict[str, SourceError]()
        for path in paths:
            try:
                if (state := self._state(path)) is not None:
                    states[path] = state
            except SourceError as error:
                errors[path] = error
            except OSError as error:
                errors[path] = refused(path, error)
        return states, errors

    def _state(self, path: str) -> FileState | None:
        """Return the state of a file; None when it has no first line yet. Raises SourceError and OSError."""
        _refuse_unspeakable(path)
        stat = os.stat(path)  # noqa: PTH116  (the path as it was given)
        young = is_compressed(path) and not self.final and time.time() - stat.st_mtime < SETTLED_S
        head = "" if young else self._head(path, stat)
        if not head:
            return None
        file = f"{stat.st_dev:x}-{stat.st_ino:x}-{head}"
        size = stat.st_size if self._bounds is None else min(stat.st_size, self._bounds.get(file, 0))
        return FileState(path, file, size, int(stat.st_mtime))

    def _head(self, path: str, stat: os.stat_result) -> str:
        key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if key not in self._heads:
            with opened(path) as stream:
                line = stream.readline(HEAD_BYTES)
            whole = line.endswith(b"\n") or len(line) == HEAD_BYTES or (bool(line) and self._is_final(path))
            self._heads[key] = hashlib.sha256(line).hexdigest()[:16] if whole else ""
        return self._heads[key]

    def _is_final(self, path: str) -> bool:
        return self.final or rotation(path, ZoneInfo("UTC")).closed

    # --- where the streams stand -----------------------------------------------------------------------------------------

    def _passed_over(self, state: FileState) -> Position:
        position = Position(state.path, state.path, state.file, size=state.size, changed=state.changed)
        return replace(self._advanced(position, None), line=0)

    def _followed(self, before: Positions, disk: Disk) -> dict[str, Position]:
        known = frozenset((*before.retired, *(p.file for p in before.streams.values())))
        digests = {file.rpartition("-")[2] for file in known if file not in disk.everywhere}
        streams = {
            name: followed(position, disk, known, keeps_name=_keeps_name(position))
            for name, position in before.streams.items()
            if position.path is not None or _keeps_name(position)  # a rotated file that is gone never comes back
        }
        taken = known | {position.file for position in streams.values()}
        for state in disk.wanted.values():
            repacked = is_compressed(state.path) and state.digest in digests
            if state.file not in taken and not repacked:
                taken |= {state.file}
                streams[_free_name(state.path, streams)] = Position(
                    state.path, state.path, state.file, size=state.size, changed=state.changed
                )
        return streams

    def _advanced(self, position: Position, max_lines: int | None) -> Position:
        if position.path is None:
            return position
        try:
            if is_compressed(position.path):
                return position if position.at else _measured(position)
            return _counted(position, max_lines, self._is_final(position.path))
        except (SourceError, OSError):
            return position  # looked at again at the next trigger, when it is gone or has moved

    def _progress(self, name: str, position: Position) -> Progress:
        zone = ZoneInfo(self.labels_of(name).get("timezone", "UTC"))
        said = rotation(position.path or position.home, zone)
        read, end = position.base + position.at, position.base + position.size
        live_name = _keeps_name(position)
        return Progress(
            name,
            read,
            max(read, end),
            caught_up=not position.behind,
            closed=said.closed and not live_name,
            covers_until=None if live_name else said.covers_until,
        )

    # --- bytes -----------------------------------------------------------------------------------------------------------

    def _read(self, name: str, piece: Piece) -> Iterator[Chunk]:
        path = self._where(piece)
        labels = self.labels_of(name) if self.labels else NO_LABELS
        changed = time_of(piece.changed)
        line = piece.line
        for start, data in whole_lines(path, piece.start, piece.end):
            yield Chunk(name, piece.base + start, data, line, changed, labels)
            line += data.count(b"\n") if line else 0

    def _where(self, piece: Piece) -> str:
        """Return the path of the file now: it may have been rotated since the slice was planned."""
        for path in (piece.path, *sorted(entry.path for entry in _entries(str(Path(piece.path).parent)))):
            states, _ = self._states([path])
            if path in states and states[path].file == piece.file:
                return path
        raise SourceError("the file is gone")


def whole_lines(path: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) for uncompressed bytes [start, end) of `path`, cut at line ends (the last may lack one)."""
    rest, at = b"", start
    with opened(path) as stream:
        _skip(stream.seek, stream.read, start, is_compressed(path))
        while at + len(rest) < end:
            block = stream.read(min(BLOCK_BYTES, end - at - len(rest)))
            if not block:
                raise SourceError(f"{path}: ends at {at + len(rest)}, before {end}")
            rest += block
            if cut := rest.rfind(b"\n") + 1:
                yield at, rest[:cut]
                at, rest = at + cut, rest[cut:]
    if rest:
        yield at, rest


def _skip(seek: Any, read: Any, start: int, compressed: bool) -> None:
    if not compressed:
        seek(start)
        return
    while start > 0:
        start -= len(read(min(BLOCK_BYTES, start))) or start


def _counted(position: Position, max_lines: int | None, final: bool) -> Position:
    """Return `position` advanced over at most `max_lines` whole lines; the unfinished last line too when `final`."""
    at, line, taken = position.at, position.line, 0
    for start, data in whole_lines(str(position.path), position.at, position.size):
        count = data.count(b"\n") or int(final)  # a last line without its end counts when it may be taken
        if max_lines is not None and taken + count > max_lines:
            allowed = _first_lines(data, max_lines - taken)
            return _moved(position, start + len(allowed), line + max_lines - taken, behind=True)
        if count:
            at, line, taken = start + len(data), line + data.count(b"\n"), taken + count
    return _moved(position, at, line, behind=False)


def _moved(position: Position, at: int, line: int, behind: bool) -> Position:
    return replace(position, at=at, line=line if position.line else 0, behind=behind)


def _first_lines(data: bytes, count: int) -> bytes:
    end = 0
    for _ in range(count):
        end = data.index(b"\n", end) + 1
    return data[:end]


def _measured(position: Position) -> Position:
    """Return `position` at the end of a compressed file; a damaged one is read as far as it goes, the rest is lost."""
    at, count, lost = 0, 0, None
    with opened(str(position.path)) as stream:
        try:
            while block := stream.read1(BLOCK_BYTES):
                at, count = at + len(block), count + block.count(b"\n")
        except Exception as error:
            lost = Lost(position.base + at, position.base + at, f"the compressed data is damaged or ends early ({error})")
    return replace(position, at=at, size=at, line=1 + count, lost=lost)


def _keeps_name(position: Position) -> bool:
    """Tell whether a new file at the stream's home is its continuation: the home is the name of a log that is written now."""
    return not rotation(position.home, ZoneInfo("UTC")).closed


def _retired(before: Positions, streams: Mapping[str, Position], disk: Disk) -> tuple[str, ...]:
    current = {position.file for position in streams.values()}
    done = [p.file for p in before.streams.values() if p.file not in current]
    kept = [file for file in before.retired if file not in current]
    return tuple(dict.fromkeys((*kept, *done)))[-RETIRED_KEPT:]


def _free_name(path: str, streams: Mapping[str, Position]) -> str:
    name, count = source_name(path), 1
    while name in streams:
        count += 1
        name = f"{source_name(path)}~{count}"
    return name


def _refuse_unspeakable(path: str) -> None:
    """Raise SourceError for a path whose bytes are no text: where it stands is kept as text, between runs too."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SourceError(
            f"{visible(path)} is not followed, for its name is no UTF-8; rename it, or give it to tocsin scan"
        ) from None


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise refused(folder, error) from error


def _offset(positions: Positions) -> Offset:
    offset: dict[str, Any] = plain(positions)
    return offset


def _positions(offset: Offset) -> Positions:
    return made(offset, Positions)
