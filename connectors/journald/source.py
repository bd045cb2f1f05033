"""The journal of systemd as a Source. A position counts the planned entries and has the cursor of the last one."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from connectors.journald.entries import JournalEntry, entry_of, place_of
from connectors.journald.program import JOURNAL, Follower, hidden, newest, printed
from engine.codec import made, plain
from engine.errors import DataLoss, SourceAway, SourceDenied, SourceError
from engine.joining import LineSource, RecordJoining
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset

STREAM = "journald"

T = TypeVar("T")


class JournalPosition(Struct, frozen=True):
    """The position after `at` entries, the last of which has the `cursor`.

    An empty cursor: none was read yet, and reading begins at `since_us`, microseconds since 1970 (0: at the oldest entry).
    `behind`: when the position was planned, more entries followed.
    """

    cursor: str = ""
    since_us: int = 0
    at: int = 0
    behind: bool = False


class JournalRange(Struct, frozen=True):
    """The entries after the one at `start`, up to and including the one at `end`."""

    start: JournalPosition
    end: JournalPosition


@dataclass
class JournaldSource:
    """Reads the entries of the journal with journalctl; its rows, JSON documents, are the lines.

    The source of a line is `journald/<host>:<container or unit>`; its labels are `host`, `unit`, `container` and `image`, and
    `labels`, which take precedence. Entries without a message, and those that `select` does not select, are skipped.

    Args:
        root: the folder of another journal; empty: this machine's.
        select: by label (`unit`, `container`), the patterns of the entries that are read (see JournalEntry.is_selected).
        start: of a first run: `earliest`, `latest` or an ISO time.
        final: the input ends with the entry that is the newest at the first call of `latest`.
    """

    root: str = ""
    select: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    start: str = "earliest"
    final: bool = False
    _follower: Follower | None = field(default=None, repr=False, compare=False)
    _cursor: str = field(default="", repr=False)  # cursor of the last entry that was taken from the follower
    _last: str | None = field(
        default=None, repr=False
    )  # of bounded input: the cursor of the newest entry; None: not determined yet
    _denied: SourceDenied | None = field(default=None, repr=False)
    _closing: Callable[[], Any] | None = field(default=None, repr=False)

    def check(self) -> str:
        """Return a sentence about the journal and its newest entry. Raises SourceError when journalctl is not installed, and
        SourceDenied when part of the journal may not be read."""
        if (denied := hidden(self.root)) is not None:
            raise denied
        entry = newest(self.root)
        place = self.root or "this machine"
        at = f"{entry.at:%Y-%m-%d %H:%M:%S} UTC" if entry and entry.at else ""
        return f"the journal of {place}, newest entry {at}" if at else f"the journal of {place}, no entry yet"

    def initial(self) -> Offset:
        """Return the offset at which a first run starts."""
        if self.start == "earliest":
            return _offset(JournalPosition())
        if self.start == "latest":
            entry = _queried(newest, self.root)
            return _offset(JournalPosition(entry.cursor) if entry else JournalPosition(since_us=int(time.time() * 1e6)))
        return _offset(JournalPosition(since_us=int(datetime.fromisoformat(self.start).timestamp() * 1e6)))

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the offset of the newest entry, at most `max_lines` entries after `start`. Raises SourceAway when journalctl
        cannot be run, fails or hangs."""
        before = made(start, JournalPosition)
        if self.final and self._last is None:
            entry = _queried(newest, self.root)
            self._last = entry.cursor if entry else ""
        if self.final and self._last in ("", before.cursor):
            self._drop()
            return start
        try:
            follower = self._followed(before)
            follower.await_target(max_lines)
            entries = follower.take(max_lines, self._last or "")
        except SourceAway:
            self._drop()
            raise
        if not entries:
            return start
        self._cursor = entries[-1].cursor
        behind = follower.is_behind and self._cursor != self._last
        return _offset(JournalPosition(self._cursor, before.since_us, before.at + len(entries), behind))

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return one slice: a journal is read in one piece."""
        return [] if start == end else [plain(JournalRange(made(start, JournalPosition), made(end, JournalPosition)))]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises DataLoss for removed entries, after it has yielded all that remain."""
        range_ = made(slice_, JournalRange)
        position, loss = range_.start.at, None
        joining, sources = RecordJoining(STREAM, position), dict[str, LineSource]()
        with printed(self.root, *_beginning(range_.start)) as rows:
            for number, (entry, row) in enumerate(_entries(rows)):
                if number == 0 and range_.start.cursor:
                    if entry.cursor == range_.start.cursor:
                        continue
                    loss = _lost_before(entry, range_)
                    position = loss.lost_to if loss else position
                    joining = RecordJoining(STREAM, position)
                if _is_behind(entry, range_.end.cursor):
                    break
                if entry.has_text and entry.is_selected(self.select):
                    source = self._line_source(entry, sources)
                    yield from joining.add(source, (row,), (position,), (entry.time_us,))
                position = min(position + 1, range_.end.at)
                yield from joining.reached(position)
                if entry.cursor == range_.end.cursor:
                    break
        missing = range_.end.at - position
        if missing and loss is None:
            why = f"{missing} entries were removed from the journal before they were read"
            loss = DataLoss(STREAM, position, range_.end.at, why)
        else:
            yield from joining.reached(range_.end.at)
        yield from joining.rest()
        if loss:
            raise loss

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return how far the journal is read."""
        position = made(end, JournalPosition)
        return [Progress(STREAM, position.at, position.at + position.behind, caught_up=not position.behind)]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return the error for the part of the journal that this user may not read, if there is one."""
        return {} if self._denied is None else {JOURNAL: self._denied}

    def close(self) -> None:
        """End the program that follows the journal. The next call of `latest` starts it again."""
        self._drop()

    def _line_source(self, entry: JournalEntry, sources: dict[str, LineSource]) -> LineSource:
        """Return the source of an entry: the same object as long as its labels stay, which `sources` remembers."""
        source_id, labels = entry.source_id, {**entry.labels, **self.labels}
        if source_id not in sources or sources[source_id].labels != labels:
            sources[source_id] = LineSource(source_id, labels)
        return sources[source_id]

    def _followed(self, position: JournalPosition) -> Follower:
        """Return the follower whose next entry is the one after `position`: the present one, or a new one."""
        if self._follower is not None and self._cursor == position.cursor:
            return self._follower
        self._drop()
        self._denied = _queried(hidden, self.root)
        entry = _queried(newest, self.root)
        target = entry.cursor if entry and _is_due(entry, position) else ""
        follower = _queried(lambda root: Follower(root, target, position.cursor, *_beginning(position)), self.root)
        self._closing = weakref.finalize(self, follower.close)
        self._follower, self._cursor = follower, position.cursor
        return follower

    def _drop(self) -> None:
        if self._closing is not None:
            self._closing()
        self._follower = self._closing = None


def _offset(position: JournalPosition) -> Offset:
    offset: dict[str, Any] = plain(position)
    return offset


def _queried(query: Callable[[str], T], root: str) -> T:
    """Return the result of `query`. Raises SourceAway for every failure: a missing program may be installed, a right
    granted."""
    try:
        return query(root)
    except SourceAway:
        raise
    except SourceError as error:
        raise SourceAway(JOURNAL, str(error).removeprefix(f"{JOURNAL}: ")) from error


def _beginning(position: JournalPosition) -> tuple[str, ...]:
    """Return the arguments of journalctl for reading from `position`. They print the entry at the cursor too: when that entry
    was removed, `--after-cursor` would skip the next one."""
    if position.cursor:
        return (f"--cursor={position.cursor}",)
    seconds, microseconds = divmod(position.since_us, 1_000_000)
    return (f"--since=@{seconds}.{microseconds:06}",) if position.since_us else ()


def _entries(rows: Iterator[bytes]) -> Iterator[tuple[JournalEntry, bytes]]:
    return ((entry, row) for row in rows if (entry := entry_of(row)) is not None)


def _is_due(entry: JournalEntry, position: JournalPosition) -> bool:
    """Return whether journalctl prints `entry`, the newest one, when it begins at `position`."""
    return bool(position.cursor) or not position.since_us or int(entry.realtime) >= position.since_us


def _is_behind(entry: JournalEntry, cursor: str) -> bool:
    here, last = place_of(entry.cursor), place_of(cursor)
    return here is not None and last is not None and last.is_before(here)


def _lost_before(entry: JournalEntry, range_: JournalRange) -> DataLoss | None:
    """Return the loss between the entry at the start of `range_` and `entry`, the first that is left; None when they are
    neighbours."""
    before, first, at = place_of(range_.start.cursor), place_of(entry.cursor), range_.start.at
    if before is None or first is None or before.writer != first.writer:
        return DataLoss(STREAM, at, at, f"the journal was removed or replaced behind the cursor {range_.start.cursor}")
    count = first.number - before.number - 1
    if count <= 0:
        return None
    why = f"up to {count} entries were removed from the journal before they were read; raise SystemMaxUse= of journald.conf"
    return DataLoss(STREAM, at, min(at + count, range_.end.at), why)
