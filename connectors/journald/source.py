"""The journal of systemd as a Source. A position counts the entries that were planned; the cursor of the last one is kept."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from connectors.journald.chunks import EntryJoining
from connectors.journald.entries import JournalEntry, entry_of, place_of
from connectors.journald.program import JOURNAL, Follower, hidden, newest, printed
from engine.codec import made, plain
from engine.errors import DataLoss, SourceAway, SourceDenied, SourceError
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset

STREAM = "journald"

T = TypeVar("T")


class JournalPosition(Struct, frozen=True):
    """A position behind `at` entries, the last of which has the `cursor` (empty: none was read yet; then reading begins at
    `since_us`, microseconds since 1970). `behind`: more entries followed when it was decided."""

    cursor: str = ""
    since_us: int = 0
    at: int = 0
    behind: bool = False


class JournalRange(Struct, frozen=True):
    """The entries behind `start` up to `end`, that of the last one included."""

    start: JournalPosition
    end: JournalPosition


@dataclass
class JournaldSource:
    """Reads the entries of the journal with journalctl; their lines are the rows of its JSON.

    The source of a line is `journald/<host>:<container or unit>`; its labels are `host`, `unit`, `container` and `image`,
    unless `labels` say otherwise. Entries without a message, and those that `select` leaves out, are passed.

    Args:
        root: the folder of another journal; empty: this machine's.
        select: by label (`unit`, `container`), patterns of what is read (see JournalEntry.is_selected).
        start: of a first run: `earliest`, `latest` or an ISO time.
        final: the input ends with the entry that is the newest at the first look.
    """

    root: str = ""
    select: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    start: str = "earliest"
    final: bool = False
    _follower: Follower | None = field(default=None, repr=False, compare=False)
    _taken: str = field(default="", repr=False)  # the cursor of the last entry that was taken of the follower
    _last: str | None = field(
        default=None, repr=False
    )  # of bounded input: the cursor of the newest entry; None: not looked yet
    _denied: SourceDenied | None = field(default=None, repr=False)
    _closing: Callable[[], Any] | None = field(default=None, repr=False)

    def check(self) -> str:
        """Return what there is to read, as a sentence. Raises SourceError when there is no journalctl, and SourceDenied when
        part of the journal may not be read."""
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
            entry = _asked(newest, self.root)
            return _offset(JournalPosition(entry.cursor) if entry else JournalPosition(since_us=int(time.time() * 1e6)))
        return _offset(JournalPosition(since_us=int(datetime.fromisoformat(self.start).timestamp() * 1e6)))

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the offset up to which can be read now, at most `max_lines` entries past `start`. Raises SourceAway when
        journalctl cannot be run, fails or hangs."""
        before = made(start, JournalPosition)
        if self.final and self._last is None:
            entry = _asked(newest, self.root)
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
        self._taken = entries[-1].cursor
        behind = follower.is_behind and self._taken != self._last
        return _offset(JournalPosition(self._taken, before.since_us, before.at + len(entries), behind))

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return one slice: a journal is read in one piece."""
        return [] if start == end else [plain(JournalRange(made(start, JournalPosition), made(end, JournalPosition)))]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises DataLoss for entries that are gone, after all that remain were yielded."""
        wanted = made(slice_, JournalRange)
        position, loss = wanted.start.at, None
        joining = EntryJoining(STREAM, position)
        with printed(self.root, *_beginning(wanted.start)) as rows:
            for number, (entry, row) in enumerate(_entries(rows)):
                if number == 0 and wanted.start.cursor:
                    if entry.cursor == wanted.start.cursor:
                        continue
                    loss = _lost_before(entry, wanted)
                    position = loss.lost_to if loss else position
                    joining = EntryJoining(STREAM, position)
                if _is_behind(entry, wanted.end.cursor):
                    break
                if entry.has_text and entry.is_selected(self.select):
                    yield from joining.add(entry, row, {**entry.labels, **self.labels})
                position = min(position + 1, wanted.end.at)
                joining.reached(position)
                if entry.cursor == wanted.end.cursor:
                    break
        missing = wanted.end.at - position
        if missing and loss is None:
            why = f"{missing} entries were removed from the journal before they were read"
            loss = DataLoss(STREAM, position, wanted.end.at, why)
        else:
            joining.reached(wanted.end.at)
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
        """End the program that follows the journal. The next look starts it again."""
        self._drop()

    def _followed(self, position: JournalPosition) -> Follower:
        """Return the follower at `position`: the one that stands there, or a new one."""
        if self._follower is not None and self._taken == position.cursor:
            return self._follower
        self._drop()
        self._denied = _asked(hidden, self.root)
        entry = _asked(newest, self.root)
        target = entry.cursor if entry and _is_due(entry, position) else ""
        follower = _asked(lambda root: Follower(root, target, position.cursor, *_beginning(position)), self.root)
        self._closing = weakref.finalize(self, follower.close)
        self._follower, self._taken = follower, position.cursor
        return follower

    def _drop(self) -> None:
        if self._closing is not None:
            self._closing()
        self._follower = self._closing = None


def _offset(position: JournalPosition) -> Offset:
    offset: dict[str, Any] = plain(position)
    return offset


def _asked(question: Callable[[str], T], root: str) -> T:
    """Return the answer of journalctl. Raises SourceAway for every failure: a program or a right that is missing may come."""
    try:
        return question(root)
    except SourceAway:
        raise
    except SourceError as error:
        raise SourceAway(JOURNAL, str(error).removeprefix(f"{JOURNAL}: ")) from error


def _beginning(position: JournalPosition) -> tuple[str, ...]:
    """Return where to begin, as journalctl takes it. The entry of the cursor is printed too: `--after-cursor` would leave out
    the one behind it when it is gone."""
    if position.cursor:
        return (f"--cursor={position.cursor}",)
    seconds, microseconds = divmod(position.since_us, 1_000_000)
    return (f"--since=@{seconds}.{microseconds:06}",) if position.since_us else ()


def _entries(rows: Iterator[bytes]) -> Iterator[tuple[JournalEntry, bytes]]:
    return ((entry, row) for row in rows if (entry := entry_of(row)) is not None)


def _is_due(entry: JournalEntry, position: JournalPosition) -> bool:
    """Tell whether the newest entry is one that is printed from `position` on."""
    return bool(position.cursor) or not position.since_us or int(entry.realtime) >= position.since_us


def _is_behind(entry: JournalEntry, cursor: str) -> bool:
    here, last = place_of(entry.cursor), place_of(cursor)
    return here is not None and last is not None and last.is_before(here)


def _lost_before(entry: JournalEntry, wanted: JournalRange) -> DataLoss | None:
    """Return the loss that `entry`, the first there is, shows where another one was read last; None for neighbours."""
    before, first, at = place_of(wanted.start.cursor), place_of(entry.cursor), wanted.start.at
    if before is None or first is None or before.writer != first.writer:
        return DataLoss(STREAM, at, at, f"the journal was removed or replaced behind the cursor {wanted.start.cursor}")
    count = first.number - before.number - 1
    if count <= 0:
        return None
    why = f"up to {count} entries were removed from the journal before they were read; raise SystemMaxUse= of journald.conf"
    return DataLoss(STREAM, at, min(at + count, wanted.end.at), why)
