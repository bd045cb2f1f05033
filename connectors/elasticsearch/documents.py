"""From hits to lines: whose a document is, and where its line stands among those of its source. Pure.

A document is one line: its JSON, which engine/parse/wrappers reads as it reads it from anywhere else. Here only those fields
are looked at by which lines find their source and their order (engine/shipping for the names).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from connectors.elasticsearch.answers import DocumentHit
from engine.codec import foreign
from engine.labelling import asks_for, fields_asked, filled
from engine.model.records import Labels
from engine.shipping import FILE, HOST, MESSAGE, document_type, first_text, named, source_name, value_at

REMEMBERED = 4096  # documents of which it is known whose they are
NO_TIME = float("-inf")
_ORDER = ("@timestamp", "event.ingested", "log.offset", "log.file.inode", "log.file.fingerprint", *MESSAGE)


class LineSource(Struct, frozen=True, eq=False):
    """A source and its labels. Two are one when they are one object."""

    source_id: str
    labels: Labels


class IndexedLine(Struct, frozen=True, gc=False):
    """The line of a document, with its line end.

    `at`: its `@timestamp` in seconds since 1970, NO_TIME without one. `taken`: its `event.ingested` as text. `file` and
    `offset`: which file it is from, and at which byte of it; -1 where the shipper does not say.
    """

    source: LineSource
    data: bytes
    index: str
    id: str
    seq_no: int
    message: str
    at: float = NO_TIME
    taken: str = ""
    file: str = ""
    offset: int = -1

    @property
    def content(self) -> str | bytes:
        """What it says of the line: its message; where that stands under a name of its own, the whole document."""
        return self.message or self.data


class DocumentReader:
    """Reads hits.

    Args:
        carrier: the pattern of indices, which names sources together with what documents say.
        labels: templates (engine/labelling).
    """

    def __init__(self, carrier: str, labels: Mapping[str, str]) -> None:
        self._carrier, self._labels = carrier, labels
        self._fields = fields_asked(labels)
        self._by_index = asks_for(labels, "index")
        self._whose = msgspec.json.Decoder(document_type((*HOST, *FILE, *self._fields)))
        self._order = msgspec.json.Decoder(_OrderPart)
        self._known = lru_cache(REMEMBERED)(lambda index, document: self._source(index, msgspec.to_builtins(document)))

    def lines(self, hits: Iterable[DocumentHit]) -> Iterator[IndexedLine]:
        """Yield the line of each hit, in order; a document that is not stored has none."""
        for hit in hits:
            data = bytes(hit.source)
            if data:
                yield self._line(hit, data)

    def _line(self, hit: DocumentHit, data: bytes) -> IndexedLine:
        index = hit.index if self._by_index else ""
        try:
            source, order = self._known(index, self._whose.decode(data)), _ordered(self._order.decode(data))
        except (ValueError, RecursionError, TypeError):  # a list, or another kind of value, where a name is looked for
            document = _document(data)
            source, order = self._source(index, document), _ordered_slowly(document)
        if b"\n" in data or b"\r" in data:  # as somebody wrote it, over several lines; there are none in its texts
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
        return _remembered(name, tuple(labels.items()))


@lru_cache(REMEMBERED)
def _remembered(name: str, labels: tuple[tuple[str, str], ...]) -> LineSource:
    return LineSource(name, dict(labels))


def in_order(lines: Sequence[IndexedLine]) -> Mapping[LineSource, Sequence[IndexedLine]]:
    """Return the lines of each source in the order in which they were written, as far as that can be known.

    Where a shipper says at which byte of a file each line began, that is their order, one file after the other; a line that it
    sent twice is one. A file that begins anew (older shippers do not name its inode, and one that is truncated keeps it) is
    another file from the time of its first line on. Else they stay as they come.
    """
    by_source: dict[LineSource, list[IndexedLine]] = {}
    for line in lines:
        by_source.setdefault(line.source, []).append(line)
    return {source: _by_place(source_lines) for source, source_lines in by_source.items()}


def _by_place(lines: list[IndexedLine]) -> list[IndexedLine]:
    if any(line.offset < 0 for line in lines):
        return lines
    ranks: dict[str, int] = {}
    begins: dict[str, dict[str | bytes, float]] = {}  # by file: its first lines, and when they were written first
    for line in lines:
        ranks.setdefault(line.file, len(ranks))
        if line.offset == 0:
            first = begins.setdefault(line.file, {})
            first[line.content] = min(line.at, first.get(line.content, line.at))
    times = {file: sorted(first.values()) for file, first in begins.items()}
    places = [(ranks[line.file], bisect_right(times.get(line.file, ()), line.at), line.offset, line.content) for line in lines]
    ordered = sorted(zip(places, lines, strict=True), key=lambda pair: pair[0][:3])
    seen: set[tuple[Any, ...]] = set()
    return [line for place, line in ordered if not line.file or not _repeats(seen, place)]


def _repeats(seen: set[tuple[Any, ...]], place: tuple[Any, ...]) -> bool:
    if place in seen:
        return True
    seen.add(place)
    return False


_Order = tuple[str, float, str, str, int]  # message, at, taken, file, offset: as in IndexedLine


class _FilePart(Struct, frozen=True, gc=False):
    inode: str | int | None = None
    fingerprint: str | int | None = None


class _LogPart(Struct, frozen=True, gc=False):
    offset: int | str | None = None
    file: _FilePart | str | int | float | bool | None = None


class _EventPart(Struct, frozen=True, gc=False):
    ingested: str | int | float | None = None


class _OrderPart(Struct, frozen=True, gc=False, rename={"timestamp": "@timestamp"}):
    """The fields that say where a line stands, as nearly all shippers write them: nested."""

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
    taken = event.ingested if isinstance(event, _EventPart) else part.dotted_ingested
    return message, _seconds(part.timestamp), taken if isinstance(taken, str) else "", file, _number(offset)


def _ordered_slowly(document: Mapping[str, Any]) -> _Order:
    at, taken, offset, inode, fingerprint, *_ = (_single(value_at(document, name)) for name in _ORDER)
    file = _file_id(inode, fingerprint)
    return first_text(document, MESSAGE) or "", _seconds(at), taken if isinstance(taken, str) else "", file, _number(offset)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _file_id(inode: Any, fingerprint: Any) -> str:
    return str(fingerprint or inode or "")


def _number(value: Any) -> int:
    if isinstance(value, bool):
        return -1
    if isinstance(value, int | float):
        return int(value) if value >= 0 else -1
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else -1


def _seconds(stamp: Any) -> float:
    """Return a stamp of a document in seconds since 1970: text in ISO 8601, or milliseconds, as the default mapping has it."""
    if isinstance(stamp, str):
        at = moment(stamp)
        return NO_TIME if at is None else at.timestamp()
    if isinstance(stamp, bool) or not isinstance(stamp, int | float):
        return NO_TIME
    return stamp / 1000


def moment(stamp: str) -> datetime | None:
    """Return the time that a stamp says, in UTC where it names no zone; None when it says none."""
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
