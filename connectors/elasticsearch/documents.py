"""Turn hits into lines, with the source of each document and the order of the lines of a source. Pure.

A line is the JSON of a document, which engine/parse/wrappers reads as from any other carrier. This module reads only the fields
that determine source and order (engine/shipping has their names).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from connectors.elasticsearch.answers import DocumentHit
from connectors.elasticsearch.incidents.documents import CHANGES, INCIDENTS
from engine.codec import foreign
from engine.joining import LineSource
from engine.labelling import asks_for, fields_asked, filled
from engine.shipping import FILE, HOST, MESSAGE, document_type, first_text, named, source_name, value_at

CACHED_SOURCES = 4096  # documents whose source is cached
NO_TIME = float("-inf")
OWN_DATASETS = (INCIDENTS, CHANGES)
_ORDER = ("@timestamp", "event.ingested", "log.offset", "log.file.inode", "log.file.fingerprint", *MESSAGE)


class IndexedLine(Struct, frozen=True, gc=False):
    """The line of a document, with its line end.

    `at`: its `@timestamp` in seconds since 1970, NO_TIME without one. `ingested`: its `event.ingested` as text. `file` and
    `offset`: the id of its file and its byte in it; "" and -1 when the shipper does not write them.
    """

    source: LineSource
    data: bytes
    index: str
    id: str
    seq_no: int
    message: str
    at: float = NO_TIME
    ingested: str = ""
    file: str = ""
    offset: int = -1

    @property
    def content(self) -> str | bytes:
        """The message of the line; the whole document when the message is in another field."""
        return self.message or self.data


class DocumentReader:
    """Turns hits into lines.

    Args:
        carrier: the pattern of indices, the first part of the names of sources.
        labels: templates (engine/labelling).
    """

    def __init__(self, carrier: str, labels: Mapping[str, str]) -> None:
        self._carrier, self._labels = carrier, labels
        self._fields = fields_asked(labels)
        self._by_index = asks_for(labels, "index")
        self._source_fields = msgspec.json.Decoder(document_type((*HOST, *FILE, *self._fields), plain=("log",)))
        self._order = msgspec.json.Decoder(_OrderPart)
        self._cached_source = lru_cache(CACHED_SOURCES)(
            lambda index, document: self._source(index, msgspec.to_builtins(document))
        )

    def lines(self, hits: Iterable[DocumentHit]) -> Iterator[IndexedLine]:
        """Yield the line of each hit, in order. A hit without a stored document has none, nor has a document that tocsin wrote:
        an incident would become evidence of another one."""
        for hit in hits:
            data = bytes(hit.source)
            if data and (line := self._line(hit, data)) is not None:
                yield line

    def alike(self, hit: DocumentHit) -> Sequence[Mapping[str, Any]]:
        """Return filters that select the documents with the host and the file of a hit, and maybe others."""
        document = _document(bytes(hit.source))
        texts = [(name, named(document, (name,))) for names in (HOST, FILE) for name in _first(document, names)]
        return [{"match_phrase": {name: text}} for name, text in texts if text]

    def _line(self, hit: DocumentHit, data: bytes) -> IndexedLine | None:
        index = hit.index if self._by_index else ""
        try:
            part = self._order.decode(data)
            if isinstance(part.event, _EventPart) and part.event.dataset in OWN_DATASETS:
                return None
            fields = self._source_fields.decode(data)
            if isinstance(fields.log, str) and "log" not in self._fields:
                fields = replace(fields, log=UNSET)  # the line itself (Fluent Bit, Docker), which names no source
            source, order = self._cached_source(index, fields), _ordered(part)
        except (ValueError, RecursionError, TypeError):  # a list or another kind of value instead of a name
            document = _document(data)
            if value_at(document, "event.dataset") in OWN_DATASETS:
                return None
            source, order = self._source(index, document), _ordered_slowly(document)
        if b"\n" in data or b"\r" in data:  # the document was written over several lines; its texts contain no line ends
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        return IndexedLine(source, data + b"\n", hit.index, hit.id, hit.seq_no, *order)

    def _source(self, index: str, document: Mapping[str, Any]) -> LineSource:
        host, file = named(document, HOST), named(document, FILE)
        parts = {"index": index, "host": host, "file": file}
        labels = filled(
            self._labels, lambda name, argument: first_text(document, (argument,)) if name == "field" else parts[name] or None
        )
        if host:
            labels = {"host": host, **labels}
        name = source_name(self._carrier, host, file, self._carrier)
        return _line_source(name, tuple(labels.items()))


def _first(document: Mapping[str, Any], names: Iterable[str]) -> Sequence[str]:
    """Return the first of `names` under which a document has a text; none when it has none."""
    return [name for name in names if isinstance(value_at(document, name), str)][:1]


@lru_cache(CACHED_SOURCES)
def _line_source(name: str, labels: tuple[tuple[str, str], ...]) -> LineSource:
    return LineSource(name, dict(labels))


def in_order(lines: Sequence[IndexedLine]) -> Mapping[LineSource, Sequence[IndexedLine]]:
    """Return, by source, the lines in the order in which they were written, as far as it can be determined.

    If the shipper wrote the byte of each line in its file, that is their order, one file after the other, and a line that it
    sent twice is one. A file that starts again at its first byte (older shippers do not write its inode, and a truncated file
    keeps it) is another file from the time of its first line. Otherwise the lines keep their order.
    """
    by_source: dict[LineSource, list[IndexedLine]] = {}
    for line in lines:
        by_source.setdefault(line.source, []).append(line)
    return {source: _by_offset(source_lines) for source, source_lines in by_source.items()}


def _by_offset(lines: list[IndexedLine]) -> list[IndexedLine]:
    if any(line.offset < 0 for line in lines):
        return lines
    ranks: dict[str, int] = {}
    begins: dict[str, dict[str | bytes, float]] = {}  # by file: its first lines, and their earliest times
    for line in lines:
        ranks.setdefault(line.file, len(ranks))
        if line.offset == 0:
            first = begins.setdefault(line.file, {})
            first[line.content] = min(line.at, first.get(line.content, line.at))
    times = {file: sorted(first.values()) for file, first in begins.items()}
    places = [(ranks[line.file], bisect_right(times.get(line.file, ()), line.at), line.offset, line.content) for line in lines]
    ordered = sorted(zip(places, lines, strict=True), key=lambda pair: pair[0][:3])
    places_of_files: set[tuple[Any, ...]] = set()
    return [line for place, line in ordered if not line.file or not _repeats(places_of_files, place)]


def _repeats(places: set[tuple[Any, ...]], place: tuple[Any, ...]) -> bool:
    """Return whether `place` is in `places`; add it otherwise."""
    if place in places:
        return True
    places.add(place)
    return False


_Order = tuple[str, float, str, str, int]  # message, at, ingested, file, offset: as in IndexedLine


class _FilePart(Struct, frozen=True, gc=False):
    inode: str | int | None = None
    fingerprint: str | int | None = None


class _LogPart(Struct, frozen=True, gc=False):
    offset: int | str | None = None
    file: _FilePart | str | int | float | bool | None = None


class _EventPart(Struct, frozen=True, gc=False):
    ingested: str | int | float | None = None
    dataset: str | int | float | bool | None = None


class _OrderPart(Struct, frozen=True, gc=False, rename={"timestamp": "@timestamp"}):
    """The fields that determine the order of a line, nested as nearly all shippers write them."""

    timestamp: str | int | float | None = None
    message: str | int | float | bool | None = None
    log: _LogPart | str | int | float | bool | None = None
    event: _EventPart | str | int | float | bool | None = None
    dotted_offset: str | int | None = msgspec.field(name="log.offset", default=None)
    dotted_ingested: str | int | float | None = msgspec.field(name="event.ingested", default=None)
    dotted_inode: str | int | None = msgspec.field(name="log.file.inode", default=None)
    dotted_fingerprint: str | int | None = msgspec.field(name="log.file.fingerprint", default=None)


def _ordered(part: _OrderPart) -> _Order:
    log, event = part.log, part.event
    file, offset = _file_id(part.dotted_inode, part.dotted_fingerprint), part.dotted_offset
    message = part.message if isinstance(part.message, str) else log if isinstance(log, str) else ""
    if isinstance(log, _LogPart):
        offset = log.offset if log.offset is not None else offset
        file = _file_id(log.file.inode, log.file.fingerprint) if isinstance(log.file, _FilePart) else file
    ingested = event.ingested if isinstance(event, _EventPart) else part.dotted_ingested
    return message, _seconds(part.timestamp), ingested if isinstance(ingested, str) else "", file, _number(offset)


def _ordered_slowly(document: Mapping[str, Any]) -> _Order:
    at, ingested, offset, inode, fingerprint, *_ = (_single(value_at(document, name)) for name in _ORDER)
    file = _file_id(inode, fingerprint)
    return (
        first_text(document, MESSAGE) or "",
        _seconds(at),
        ingested if isinstance(ingested, str) else "",
        file,
        _number(offset),
    )


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _file_id(inode: Any, fingerprint: Any) -> str:
    return str(fingerprint or inode or "")


def _number(value: Any) -> int:
    if isinstance(value, bool):
        return -1
    if isinstance(value, int | float):
        return int(value) if 0 <= value < float("inf") else -1
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else -1


def _seconds(stamp: Any) -> float:
    """Return a stamp of a document in seconds since 1970: ISO 8601 or milliseconds, as in the default mapping; NO_TIME for
    anything else."""
    if isinstance(stamp, str):
        at = moment(stamp)
        return NO_TIME if at is None else at.timestamp()
    if isinstance(stamp, bool) or not isinstance(stamp, int | float):
        return NO_TIME
    return stamp / 1000


def moment(stamp: str) -> datetime | None:
    """Return the time of a stamp in ISO 8601, UTC when it has no zone; None when it is no time."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        loaded = foreign(data)
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
