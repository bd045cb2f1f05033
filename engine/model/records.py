"""The input of the flow: raw lines and progress, unwrapped records, decoded events.

A source_id names one ordered stream of lines: a file, one host's file or one key in a Kafka topic, or one container inside a
file of compose or kubectl output (`<file>#<container>`, `<file>#<pod>/<container>`; `parent_id` returns the file).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct

Labels = Mapping[str, str]

NO_LABELS: Labels = {}
SPEAKS_FOR = "may_speak_for"  # label of a source, set by its configuration: a comma list, or NOBODY
NOBODY = "nobody"
REPEATED = "repeated_hour"  # label of events whose stamp is in an hour that occurs twice in their zone

# labels that say how to read the stamps of a source; events do not have them
TIMEZONE_LABEL, EARLIEST_LABEL, AHEAD_LABEL, NEAR_LABEL = "timezone", "stamps.earliest", "stamps.ahead_s", "stamps.near"
STAMP_LABELS = frozenset((TIMEZONE_LABEL, EARLIEST_LABEL, AHEAD_LABEL, NEAR_LABEL))


class RawLine(Struct, frozen=True, array_like=True, gc=False):
    """One physical line as it arrived, without its line end.

    `offset` is the position of its first byte in the source, `number` its 1-based line number (0: unknown). `ingested_at` is
    when tocsin or the shipper read it; it replaces the event time of lines without a stamp. `origin` names the document that
    holds the line, if its source has documents (engine/model/origins); otherwise it is empty.
    """

    source_id: str
    offset: int
    value: bytes
    number: int = 0
    ingested_at: datetime | None = None
    labels: Labels = NO_LABELS
    origin: str = ""


class Progress(Struct, frozen=True):
    """How far a source has been read: all bytes before `read_to` of the `end` bytes that existed at `at`.

    `closed`: nothing will be added (a rotated file). `covers_until`: the end of the period in its name; None without one.
    """

    source_id: str
    read_to: int
    end: int
    caught_up: bool
    at: datetime | None = None
    closed: bool = False
    covers_until: datetime | None = None


class Record(Struct, frozen=True, array_like=True, gc=False):
    """One line without its wrappers.

    `starts`: the wrapper shows that a logical record starts here (a Kibana row, a JSON document); then the lines of `text`
    after the first belong to it. `at` is the wrapper's own stamp. `fields` are the values of a structured wrapper (level,
    logger, thread) under their LogEvent names. `partial`: the wrapper shows that the line continues in the next record, without
    anything between them. `cut`: the line was longer than the limit and was cut. `identity`: the id of the event that begins
    here, when it cannot be derived from `text` because a secret was removed; otherwise empty. `misdated`: the wrapper's stamp
    was out of bounds and is ignored (engine/parse/stamps). `origin`: see RawLine.
    """

    source_id: str
    offset: int
    text: str
    number: int = 0
    starts: bool = False
    at: datetime | None = None
    ingested_at: datetime | None = None
    labels: Labels = NO_LABELS
    fields: Labels = NO_LABELS
    partial: bool = False
    cut: bool = False
    identity: str = ""
    misdated: bool = False
    origin: str = ""


class Block(Struct, frozen=True, gc=False):
    """The records of one logical event, in order and contiguous within one source; never empty.

    `headed`: its first record begins an event (by a header or a wrapper). A headless block is bare text, or the continuation of
    an event whose header came earlier. `cut`: a limit on lines or bytes ended it early. `unsettled`: records whose division
    into events depends on earlier records (the head of a slice, or joined fragments).
    """

    records: tuple[Record, ...]
    headed: bool
    cut: bool = False
    unsettled: bool = False


class LogEvent(Struct, frozen=True, array_like=True, gc=False):
    """One logical log record, without wrappers, with its stack trace and next-line reason.

    `text` is the whole event as printed, lines joined by newlines; `message` the first line without its header; `exception` the
    chain of exception classes, outermost first, innermost cause last. `timestamp` is None when the text has none; then `at` is
    the ingest time. Labels describe the emitter; they always hold `source` and `cluster`. `cut`: a limit on lines or bytes
    removed part of it; the text says so too. `misdated`: it has no timestamp because its stamp was out of bounds. `origin` is
    that of its first line (see RawLine).
    """

    event_id: str
    source_id: str
    offset: int
    number: int
    timestamp: datetime | None
    at: datetime
    text: str
    message: str
    level: str = ""
    logger: str = ""
    thread: str = ""
    exception: tuple[str, ...] = ()
    labels: Labels = NO_LABELS
    cut: bool = False
    misdated: bool = False
    origin: str = ""


class AnyEvent(Protocol):
    """A LogEvent, or an event derived from others that are equal except for digits: the interface for counting and activity."""

    @property
    def source_id(self) -> str:
        """The id of its source."""

    @property
    def offset(self) -> int:
        """The offset of its first line in the source."""

    @property
    def timestamp(self) -> datetime | None:
        """Its event time; None when it has no stamp."""

    @property
    def labels(self) -> Labels:
        """Labels of the emitter."""

    @property
    def level(self) -> str:
        """Its log level; empty when it has none."""

    @property
    def message(self) -> str:
        """Its first line without its header."""

    @property
    def text(self) -> str:
        """The whole event as printed."""


class Tick(Struct, frozen=True):
    """Processing time as data of the stream: one per trigger; no stage reads a clock.

    `set_back`: earlier ticks came from a clock that was ahead and has been corrected.
    """

    at: datetime
    set_back: bool = False


def parent_id(source_id: str) -> str:
    """Return the source that physically holds `source_id`: itself, or the file that holds the container's output."""
    return source_id.partition("#")[0]


class TimeBounds(Struct, frozen=True):
    """The times from `since` until before `until`; None: no bound."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has no bound at all."""
        return self.since is None and self.until is None

    def holds(self, at: datetime) -> bool:
        """Return whether `at` is within the bounds."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)
