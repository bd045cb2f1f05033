"""Join the entries of a journal into chunks, one for each source; their lines are the rows of journalctl. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from connectors.journald.entries import JournalEntry
from engine.model.records import Labels
from engine.ports import Chunk

JOINED_BYTES = 256 * 1024


class EntryRun(Struct, frozen=True):
    """Entries of one source, as lists of equal length: where their rows begin in the data of a chunk, in bytes; their positions
    in the journal; when the journal received them."""

    begins: list[int]
    positions: list[int]
    times: list[datetime | None]

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of the entry at byte `at`, and when the journal received it."""
        number = bisect_right(self.begins, at) - 1
        return self.positions[number], self.times[number]

    def earliest(self) -> datetime | None:
        """Return the earliest time of the entries; None when none has a time."""
        return min((at for at in self.times if at is not None), default=None)

    def origin(self, _at: int) -> str:
        """Return an empty text: an entry is not in a document."""
        return ""


class _Rows(Struct):
    """The pending rows of one source."""

    labels: Labels
    data: list[bytes]
    size: int
    run: EntryRun


class EntryJoining:
    """Collects the entries of a journal by source and yields them as chunks. A position counts entries.

    Args:
        stream: the name of the journal.
        start: the position at which reading begins.
    """

    def __init__(self, stream: str, start: int) -> None:
        self._stream = stream
        self._start = self._end = start
        self._sources: dict[str, _Rows] = {}
        self._bytes = 0

    def add(self, entry: JournalEntry, row: bytes, labels: Labels) -> Iterator[Chunk]:
        """Add an entry, whose line gets `labels`. First yield the pending chunks if the labels of its source have changed, or
        JOINED_BYTES are pending."""
        source_id = entry.source_id
        rows = self._sources.get(source_id)
        if self._bytes >= JOINED_BYTES or (rows is not None and rows.labels != labels):
            yield from self.rest()
            rows = None
        if rows is None:
            rows = self._sources[source_id] = _Rows(labels, [], 0, EntryRun([], [], []))
        rows.run.begins.append(rows.size)
        rows.run.positions.append(self._end)
        rows.run.times.append(entry.at)
        rows.data.append(row)
        rows.size += len(row)
        self._bytes += len(row)

    def reached(self, position: int) -> None:
        """Set the position up to which the journal is read."""
        self._end = position

    def rest(self) -> Iterator[Chunk]:
        """Yield the pending rows, one chunk for each source; the last one ends at the position up to which the journal is read.
        Without rows, yield an empty chunk that spans the entries that were read."""
        sources = list(self._sources.items())
        if not sources and self._start < self._end:
            yield Chunk(self._stream, self._start, b"", end=self._end, stream=self._stream)
        for number, (source_id, rows) in enumerate(sources, 1):
            end = self._end if number == len(sources) else self._start
            data = b"".join(rows.data)
            yield Chunk(source_id, self._start, data, 0, None, rows.labels, self._stream, end, [(0, rows.run)])
        self._sources, self._start, self._bytes = {}, self._end, 0
