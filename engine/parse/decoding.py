"""decode: blocks in, events out. Reads the header fields, the time, the exception chain, the labels and the event id. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from engine.model.records import (
    NO_LABELS,
    REPEATED,
    STAMP_LABELS,
    TIMEZONE_LABEL,
    Block,
    Labels,
    LogEvent,
    Progress,
    Record,
    Tick,
)
from engine.model.rules import Format
from engine.parse.assembling import settle
from engine.parse.continuation import opens_document
from engine.parse.exceptions import exception_chain
from engine.parse.headers import GENERIC_RANK, Header, HeaderBook, header_book, level_of
from engine.parse.lines import clean
from engine.parse.open_block import BLOCK_BYTES, BLOCK_LINES
from engine.parse.stamps import bounds_of, stamp_of
from engine.parse.status import STATUS, about_torn, failed_parts
from engine.parse.times import has_millis, is_repeated, zone_of
from engine.quarantine import Quarantine, attempt

DEFAULT_CLUSTER = "default"
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)  # `at` of an event with neither a stamp nor an ingest time
ESCAPED = ("\\n\\tat ", "\\nCaused by: ", "\\n    at ")  # any of these marks a trace whose line ends are escaped
_LINE_CHARS, _IDENTITY_CHARS = 6, 14  # of an event id: of the line alone, and of all that makes the event
_UNDATED = "u"  # the first character of the id of an event without a time, greater than any digit
_BELOW = re.compile(r"[^\n]*\n(SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): ([^\n]*)")  # java.util.logging's second line
_CUT = f"[cut: the event goes on beyond {BLOCK_LINES} lines or {BLOCK_BYTES // 1024} KiB]"


def decode(
    blocks: Iterable[Block | Progress | Tick], formats: Sequence[Format], quarantine: Quarantine | None = None
) -> Iterator[LogEvent | Progress | Tick]:
    """Yield the events of the blocks, in order; progress and ticks pass through unchanged. A block that raises goes into
    `quarantine`; without one the error is raised."""
    for item in blocks:
        if isinstance(item, Block):
            yield from attempt(quarantine, "decode", item, decode_block, item, formats) or ()
        else:
            yield item


def decode_block(block: Block, formats: Sequence[Format]) -> list[LogEvent]:
    """Return the events of one block, at least one; no text makes it raise.

    A Connect status gives one event for every failed part, an unsettled block those of the blocks that it divides into, every
    other block one event.
    """
    if block.unsettled:
        completed, open_block = settle(block, formats)
        blocks = completed if open_block is None else (*completed, open_block)
        return [event for settled in blocks for event in decode_block(settled, formats)]
    return _events(block, header_book(formats))


class _Stamp(Struct, frozen=True):
    """The event time that a text prints; None when it prints none.

    `exact`: it is more precise than a second. `misdated`: the text prints only stamps that are out of bounds. `repeated`: the
    zone had that hour twice.
    """

    time: datetime | None
    exact: bool
    misdated: bool = False
    repeated: bool = False


def _events(block: Block, book: HeaderBook) -> list[LogEvent]:
    text = _text(block)
    failed = failed_parts(text) if opens_document(text) else ()
    if failed and not any("connector" in part.labels for part in failed):
        return [_event(block, None, unescape(text), failed[0].labels)]  # an alert; its text keeps worker and state
    if failed:
        return [_of_status(block, clean(part.trace).rstrip(), part.labels) for part in failed]
    torn = about_torn(text) if opens_document(text) else {}
    text = unescape(text)
    return [_of_status(block, text, torn) if torn else _event(block, _header(block, text, book), text, {})]


def _of_status(block: Block, text: str, about: Labels) -> LogEvent:
    return replace(_event(block, None, text, about), logger=STATUS)


def _header(block: Block, text: str, book: HeaderBook) -> Header | None:
    """Return the header of a block; None when it has none. The level and message of java.util.logging, which prints them on the
    second line, are taken from there.

    A program that names its fields prints no header. But the message that it passes on may be a line of another program; then
    that line's header counts, if it has both stamp and level.
    """
    header = book.read(_first_line(text)) if block.headed else None
    if header is not None and not header.level and (below := _BELOW.match(text)):
        return replace(header, level=level_of(below[1]), message=below[2])
    if header is None or not block.records[0].fields:
        return header
    return header if header.time and header.level and header.format.rank < GENERIC_RANK else None


def _event(block: Block, header: Header | None, text: str, about: Labels) -> LogEvent:
    """Return `block` as an event. `about`: labels that tell it from other events of the same block."""
    first = block.records[0]
    stamp = _stamp(first, header)
    head = _first_line(text)
    message = head if header is None else header.message
    fields = _fields(first, header)
    return LogEvent(
        event_id=_event_id(first, stamp, about),
        source_id=first.source_id,
        offset=first.offset,
        number=first.number,
        timestamp=stamp.time,
        at=stamp.time or bounds_of(first.labels).ingest_time(first.ingested_at) or UNKNOWN_TIME,
        text=text,
        message=message,
        level=fields["level"],
        logger=fields["logger"],
        thread=fields["thread"],
        exception=exception_chain(message + text[len(head) :]),
        labels=labels_of(
            first.labels, {**({} if header is None else header.labels), **about, **_clock_labels(stamp)}, first.source_id
        ),
        cut=block.cut or any(record.cut for record in block.records),
        misdated=stamp.misdated,
        origin=first.origin,
    )


def _text(block: Block) -> str:
    """Return the lines of a block as one text; a line that a container runtime split is put together again."""
    pieces = [record.text if record.partial else record.text + "\n" for record in block.records]
    text = "".join(pieces).rstrip()
    return f"{text}\n{_CUT}" if block.cut else text


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def unescape(text: str) -> str:
    r"""Return a trace with real line ends and quotes instead of escaped ones (`\n\t`, `\"`); any other text unchanged."""
    if not any(mark in text for mark in ESCAPED):
        return text
    return text.replace("\\r", "").replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').rstrip()


def _fields(first: Record, header: Header | None) -> Mapping[str, str]:
    if header is not None:
        return {"level": header.level, "logger": first.fields.get("logger") or header.logger, "thread": header.thread}
    fields = first.fields
    return {"level": level_of(fields.get("level", "")), "logger": fields.get("logger", ""), "thread": fields.get("thread", "")}


def _stamp(first: Record, header: Header | None) -> _Stamp:
    """Return the stamp of the header; where that has none that can be read, the stamp of the wrapper.

    The wrapper's stamp also gives the year to a header's stamp that prints none.
    """
    misdated = first.misdated
    if header is not None and header.time:
        time, out_of_bounds = stamp_of(first, header.time, header.format.time, first.at)
        if time is not None:
            zone = zone_of(first.labels.get(TIMEZONE_LABEL, ""))
            return _Stamp(time, has_millis(header.time), repeated=is_repeated(header.time, time, zone))
        misdated |= out_of_bounds
    return _Stamp(first.at, first.at is not None and first.at.microsecond != 0, misdated and first.at is None)


def _clock_labels(stamp: _Stamp) -> Labels:
    return {REPEATED: "true"} if stamp.repeated else NO_LABELS


def labels_of(source_labels: Labels, event_labels: Labels, source_id: str) -> Labels:
    """Return all labels of an event: those of its layout and text, and over them the configured ones of its source."""
    configured = {name: value for name, value in source_labels.items() if name not in STAMP_LABELS}
    return {"cluster": DEFAULT_CLUSTER, **event_labels, **configured, "source": source_id}


def _event_id(first: Record, stamp: _Stamp, about: Labels) -> str:
    if first.identity and not about:
        return first.identity
    place = None if stamp.exact else first.origin or first.offset
    return event_id(first.source_id, stamp.time, first.text, place, *about.values())


def event_id(source_id: str, time: datetime | None, line: str, place: int | str | None, *about: str) -> str:
    """Return the id of an event: the same line of the same source at the same time is one event, at any position.

    Events of one time are ordered by their ids. An id begins with a digest of the line, so that this order, and with it the
    lines that prove an alert, do not depend on the name of the source: a path, a topic or an index. Those without a time come
    last: they are counted at the time of a dated one.

    Args:
        place: the document or the offset of the line, where the stamp is precise to the second only and two equal lines
            could not be told apart; else None.
        about: tells apart the events that come of one line, as the failed parts of a Connect status do.
    """
    stamp = time.timestamp().hex() if time is not None else ""  # exact, and takes a fourth of the time of an ISO stamp
    identity = "\0".join((source_id, stamp, line, "" if place is None else str(place), *about))
    digest = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:_IDENTITY_CHARS]
    line_digest = f"{crc32(line.encode('utf-8', 'replace')):08x}"[-_LINE_CHARS:]
    return (line_digest if time is not None else _UNDATED + line_digest[1:]) + digest
