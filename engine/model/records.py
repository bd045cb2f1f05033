"""What flows in: raw lines and progress, unwrapped records, decoded events.

A source_id names one stream of lines in order: a file, one host's file or one key in a Kafka topic, or one container inside a
file of compose or kubectl output (`<file>#<container>`, `<file>#<pod>/<container>`; `parent_id` gives the file back).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct

Labels = Mapping[str, str]

NO_LABELS: Labels = {}
SPEAKS_FOR = "may_speak_for"  # the label by which a source bears what its configuration grants: a comma list, or NOBODY
NOBODY = "nobody"
REPEATED = "repeated_hour"  # the label of events whose stamp is of an hour that their zone has twice, without saying which

# labels that say how the stamps of a source are read; no event bears them
TIMEZONE_LABEL, EARLIEST_LABEL, AHEAD_LABEL = "timezone", "stamps.earliest", "stamps.ahead_s"
STAMP_LABELS = frozenset((TIMEZONE_LABEL, EARLIEST_LABEL, AHEAD_LABEL))


class RawLine(Struct, frozen=True, array_like=True, gc=False):
    """One physical line as it arrived, without its line end.

    `offset` is the position of its first byte in the source, `number` its 1-based line number (0: unknown). `ingested_at` is
    when tocsin or the shipper took it; it stands in for the event time of lines that bear none. `origin` names the document
    that holds the line, where the system that it was read from has documents (engine/model/origins); else it is empty.
    """

    source_id: str
    offset: int
    value: bytes
    number: int = 0
    ingested_at: datetime | None = None
    labels: Labels = NO_LABELS
    origin: str = ""


class Progress(Struct, frozen=True):
    """How far a source has been read: everything before `read_to` of the `end` bytes known at `at`.

    `closed`: nothing will be added (a rotated file); `covers_until`: the end of the period its name says it covers, if it says.
    """

    source_id: str
    read_to: int
    end: int
    caught_up: bool
    at: datetime | None = None
    closed: bool = False
    covers_until: datetime | None = None


class Record(Struct, frozen=True, array_like=True, gc=False):
    """One line with its wrappers off.

    `starts`: the wrapper itself says that a logical record starts here (a Kibana row, a JSON document); then the lines of
    `text` after the first belong to it. `at` is the wrapper's own stamp. `fields` are what a structured wrapper already knows
    (level, logger, thread), under their LogEvent names. `partial`: the wrapper says that the line goes on in the next record,
    with nothing between them. `cut`: a bound on the length of a line left part of it out. `identity`: the id of the event that
    begins here, where `text` cannot tell it any more, for a secret was taken out; else empty. `misdated`: a wrapper's stamp was
    out of bounds, so none (engine/parse/stamps). `origin`: see RawLine.
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

    `headed`: its first record begins an event (a header, or a wrapper that says so). A headless block is bare text, or the
    continuation of an event whose header came earlier. `cut`: a bound on lines or bytes ended it early. `unsettled`: a run of
    records whose division into events depends on what came before them (the head of a slice, or fragments joined).
    """

    records: tuple[Record, ...]
    headed: bool
    cut: bool = False
    unsettled: bool = False


class LogEvent(Struct, frozen=True, array_like=True, gc=False):
    """One logical log record: wrappers off, stack trace and next-line reason joined.

    `text` is the whole event as printed, lines joined by newlines; `message` the first line without its header; `exception`
    the chain of exception classes, outermost first, innermost cause last. `timestamp` is None where the text bears none;
    `at` then is the ingest time. Labels describe the emitter; they always hold `source` and `cluster`. `cut`: a bound on
    lines or bytes left part of it out; the text says so too. `misdated`: it bears no time because its stamp was out of bounds.
    `origin` is that of its first line (see RawLine).
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
    """A LogEvent, or one that was told by others alike: what those ask for who only count events and see when they were."""

    @property
    def source_id(self) -> str:
        """The stream that it is from."""

    @property
    def offset(self) -> int:
        """Where it begins in its stream."""

    @property
    def timestamp(self) -> datetime | None:
        """When it says it was, None where it does not."""

    @property
    def labels(self) -> Labels:
        """Who emitted it."""

    @property
    def level(self) -> str:
        """How bad it says it is."""

    @property
    def message(self) -> str:
        """Its first line without its header."""

    @property
    def text(self) -> str:
        """All of it as printed."""


class Tick(Struct, frozen=True):
    """Processing time reaching the stream as data: one per trigger, never read from a clock inside a stage.

    `set_back`: earlier ticks came of a clock that was ahead and has been set right.
    """

    at: datetime
    set_back: bool = False


def parent_id(source_id: str) -> str:
    """Return the source that physically holds `source_id`: itself, or the file that a compose container is printed into."""
    return source_id.partition("#")[0]
