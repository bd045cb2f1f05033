"""What the parts of a run report about themselves: the job and the notifier store it, and `tocsin doctor` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field


class StreamStatus(Struct, frozen=True):
    """One stream (a file, a partition of a topic ...) since the start of a job.

    Attributes:
        lines: the lines that were read.
        bytes: their bytes.
        read_at: when the batch with its last lines was stored, by the clock of the job.
        newest: the newest event time of these lines; None while none had one.
        unread: what the last batch left unread, in the positions of the stream (bytes of a file, records of a partition).
    """

    lines: int = 0
    bytes: int = 0
    read_at: datetime | None = None
    newest: datetime | None = None
    unread: int = 0


class JobStatus(Struct, frozen=True):
    """A job as of `at`, by the clock of its machine.

    Attributes:
        holder: the process, for people.
        version: of tocsin.
        batches: the batches that were stored since `started_at`.
        trigger_s: the duration of the last trigger; None before the first.
        slowest_s: the longest of the last triggers.
        streams: the streams that were read last, by name, at most MOST_STREAMS.
        stream_count: all streams that were read.
        matches: the matches since `started_at` of the rules that have most, by rule, most first, at most MOST_RULES.
    """

    holder: str
    version: str
    started_at: datetime
    at: datetime
    batches: int = 0
    trigger_s: float | None = None
    slowest_s: float | None = None
    streams: Mapping[str, StreamStatus] = field(default_factory=dict)
    stream_count: int = 0
    matches: Mapping[str, int] = field(default_factory=dict)


class NotifierStatus(Struct, frozen=True):
    """The notifier that sends, as of its step at `at`, by the clock of its machine. `holder` names the process for people."""

    holder: str
    version: str
    started_at: datetime
    at: datetime


class ReceiverHistory(Struct, frozen=True):
    """The attempts to notify one receiver.

    Attributes:
        delivered_at: the last attempt that was delivered; None for none.
        attempted_at: the last attempt; None for none.
        outcome: how that attempt ended, as DeliveryState has it.
        why: the reason that was stored with it.
        failing_since: the first attempt after the last delivery; None when the last attempt was delivered.
    """

    receiver: str
    delivered_at: datetime | None = None
    attempted_at: datetime | None = None
    outcome: str = ""
    why: str = ""
    failing_since: datetime | None = None
