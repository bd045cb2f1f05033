"""Joins the entries of a journal into chunks, one of each source, with the rows of journalctl as lines. Pure."""

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
    """Entries of one source: where their rows begin in the data of a chunk, their positions in the journal, their times."""

    begins: list[int]
    positions: list[int]
    times: list[datetime | None]

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of the entry that holds byte `at`, and when the journal received it."""
        number = bisect_right(self.begins, at) - 1
        return self.positions[number], self.times[number]

    def earliest(self) -> datetime | None:
        """Return the earliest time of the entries; None when none has a time."""
        return min((at for at in self.times if at is not None), default=None)

    def origin(self, _at: int) -> str:
        """Return nothing: an entry is no document that can be looked up."""
        return ""


class _Rows(Struct):
    """The rows of one source that wait for their chunk."""

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
        """Add an entry; `labels` are all that its line bears. Yields what is pending when a source changes its labels, or
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
        """Note that the journal is read up to `position`."""
        self._end = position

    def rest(self) -> Iterator[Chunk]:
        """Yield what is pending, one chunk of each source; the last ends at the position up to which the journal is read.
        Without rows an empty chunk spans the entries that were read."""
        sources = list(self._sources.items())
        if not sources and self._start < self._end:
            yield Chunk(self._stream, self._start, b"", end=self._end, stream=self._stream)
        for number, (source_id, rows) in enumerate(sources, 1):
            end = self._end if number == len(sources) else self._start
            data = b"".join(rows.data)
            yield Chunk(source_id, self._start, data, 0, None, rows.labels, self._stream, end, [(0, rows.run)])
        self._sources, self._start, self._bytes = {}, self._end, 0
