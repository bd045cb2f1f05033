"""Join lines of documents into chunks, one for each source: work for a chunk is done once for hundreds of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import overload

from connectors.elasticsearch.documents import IndexedLine, in_order, moment
from engine.joining import LineSource
from engine.model.origins import origin_of
from engine.ports import NO_INGEST_TIME, Chunk, RecordPositions, ingest_us

SYSTEM = "elasticsearch"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DocumentOrigins(Sequence[str]):
    """The origins of the lines of documents, made on access: few are needed."""

    def __init__(self, lines: Sequence[IndexedLine]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...

    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return DocumentOrigins(self._lines[at])
        return origin_of(SYSTEM, self._lines[at].index, self._lines[at].id)


class Chunking:
    """Makes the chunks of a stream that is read from the position `place`."""

    def __init__(self, stream: str, place: int) -> None:
        self._stream, self._place = stream, place

    def chunks(self, lines: Sequence[IndexedLine]) -> Iterator[Chunk]:
        """Yield a chunk for each source of `lines`; each line takes one position."""
        sources = in_order(lines)
        end = self._place + len(lines)
        first = self._place
        for number, (source, source_lines) in enumerate(sources.items(), 1):
            yield self._chunk(source, source_lines, first, end if number == len(sources) else self._place)
            first += len(source_lines)
        self._place = end

    def reached(self, place: int) -> Iterator[Chunk]:
        """Yield an empty chunk up to `place`, unless that is reached."""
        if place > self._place:
            yield Chunk(self._stream, self._place, b"", 0, None, {}, self._stream, place)
            self._place = place

    def _chunk(self, source: LineSource, lines: Sequence[IndexedLine], first: int, end: int) -> Chunk:
        data = b"".join([line.data for line in lines])
        begins = list(accumulate((len(line.data) for line in lines[:-1]), initial=0))
        times_us = [_time_us(line.ingested) for line in lines]
        records = RecordPositions(begins, range(first, first + len(lines)), times_us, DocumentOrigins(lines))
        return Chunk(source.source_id, self._place, data, 0, None, source.labels, self._stream, end, records)


def _time_us(stamp: str) -> int:
    at = moment(stamp) if stamp else None
    return NO_INGEST_TIME if at is None else ingest_us((at - _EPOCH) // timedelta(microseconds=1))
