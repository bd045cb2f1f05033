"""Interfaces of the engine to other systems: sources, ledgers, receivers, caches. Imports the standard library, msgspec and the
model only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from engine.errors import SourceError
from engine.model.acts import Act, ActDecision
from engine.model.incidents import DAWN, Alert, AlertInterval, AlertKey, Evidence, Incident, NotEvaluated, Roster, Verdict
from engine.model.notifications import Notification, Receipt
from engine.model.pictures import ClusterPicture, StatedFact
from engine.model.proof import Neighbours
from engine.model.records import Labels, Progress, RawLine

Say = Callable[[str], None]  # prints a sentence for the operator
Offset = Mapping[str, Any]  # JSON: what a source needs to resume reading

NO_INGEST_TIME = -1  # in RecordPositions.times_us
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class RecordPositions(Struct, frozen=True):
    """Where and when the records were taken that were joined into the data of a chunk: columns of equal length.

    Attributes:
        begins: the index of the first byte of each record in `Chunk.data`, ascending from 0.
        positions: the position of each record in the stream.
        times_us: when each record was ingested, in microseconds since 1970 (see ingest_us); NO_INGEST_TIME where that is
            unknown.
        origins: the origin of each record (engine/model/origins); empty when none has one.
    """

    begins: Sequence[int]
    positions: Sequence[int]
    times_us: Sequence[int]
    origins: Sequence[str] = ()

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position in the stream of byte `at` of the data, and its ingest time; None where that is unknown."""
        number = self._number(at)
        time_us = self.times_us[number]
        taken = None if time_us == NO_INGEST_TIME else _EPOCH + timedelta(microseconds=time_us)
        return self.positions[number] + at - self.begins[number], taken

    def origin(self, at: int) -> str:
        """Return the origin of the record that holds byte `at` of the data; empty when it has none."""
        return self.origins[self._number(at)] if self.origins else ""

    def _number(self, at: int) -> int:
        return bisect_right(self.begins, at) - 1


def ingest_us(time_us: int) -> int:
    """Return a time in microseconds since 1970, or NO_INGEST_TIME where no calendar has it: producers set any number."""
    return time_us if 0 <= time_us <= _LAST_US else NO_INGEST_TIME


class Chunk(Struct, frozen=True):
    """Whole lines of one source: `data` is their bytes with line ends, `offset` the position of the first byte, `number` the
    line number of the first line (0: unknown).

    `stream` is the physical stream of the source, when several sources are interleaved in it (a Kafka partition); otherwise
    empty. Chunks of one stream are contiguous: each begins where the previous one ended. Its end is `end` when positions do not
    count bytes. Chunks of one source are in order. `data` may be empty: there are no lines between `offset` and `end`.

    `records` is set when positions do not count bytes: those of the records that were joined into `data`, in order. Records of
    other sources may lie between them in the stream; then the chunks of all these sources except the last have `end` ==
    `offset`.
    """

    source_id: str
    offset: int
    data: bytes
    number: int = 0
    ingested_at: datetime | None = None
    labels: Labels = field(default_factory=dict)
    stream: str = ""
    end: int | None = None
    records: RecordPositions | None = None

    @property
    def parent_id(self) -> str:
        """The id of the physical stream that the chunk is part of."""
        return self.stream or self.source_id

    @property
    def next_offset(self) -> int:
        """The offset of the next chunk of the stream."""
        return self.offset + len(self.data) if self.end is None else self.end

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position in the stream of byte `at` of `data`, and its ingest time; None where that is unknown."""
        return (self.offset + at, self.ingested_at) if self.records is None else self.records.place(at)

    def origin(self, at: int) -> str:
        """Return the origin of the line that holds byte `at` of `data`; empty when it has none."""
        return "" if self.records is None else self.records.origin(at)

    def lines(self) -> Iterator[RawLine]:
        """Yield its lines in order, without line ends."""
        at, number = 0, self.number
        lines = self.data.split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            offset, ingested_at = self.place(at)
            yield RawLine(self.source_id, offset, line.rstrip(b"\r"), number, ingested_at, self.labels, self.origin(at))
            at += len(line) + 1
            number += 1 if number else 0


class Source(Protocol):
    """A system that log lines are read from. Pure Python; an adapter in engine/spark makes it a streaming source.

    Offsets, partitions and slices are JSON values: they are stored in Spark's checkpoint and sent to its workers. `initial` and
    `latest` raise SourceAway when the source cannot be read now: an unbounded run keeps its offset and calls again later.
    """

    def initial(self) -> Offset:
        """Return the offset at which a first run starts (`start:` of the configuration)."""

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the offset that can be read up to now: at a line end, at most about `max_lines` lines after `start`."""

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Split [start, end) into slices that can be read independently."""

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the chunks of one slice; its streams may interleave.

        Raises DataLoss when part of it is lost, or an ExceptionGroup of several, after yielding all other lines;
        LateInput among them when lines came so late that others may be missed.
        """

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return the inputs that the last `latest` could not read while it went on with the others, by name. Those that are
        denied (SourceDenied), and servers that do not answer (NoAnswer), are tried again each time; the others are skipped."""

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return the progress of every stream in `end`: how far `end` is, and how much there is to read."""


class Ledger(Protocol):
    """Storage of alerts and incidents: a dictionary in `replay()`, the incident store in the job.

    The caller makes all calls of one batch inside one transaction.
    """

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[NotEvaluated],
    ) -> Sequence[AlertInterval]:
        """Store the findings of correlation; a verdict replaces the earlier one of its key (see Verdict), a list of
        `blinds` the earlier list of its scope (see NotEvaluated). Return the intervals, old and new, of the alerts that
        were added, removed or changed. Nothing is stored when it raises."""

    def scopes(self) -> Sequence[str]:
        """Return every scope that has alerts, incidents or members, sorted."""

    def alerts(self, scope: str, seen: Collection[AlertInterval] | None = None) -> Mapping[AlertKey, tuple[Alert, ...]]:
        """Return the alerts of `scope` that may still matter, by key, ordered by time; with `seen` only those of these
        intervals."""

    def alert_intervals(self, scope: str, since: datetime) -> Sequence[AlertInterval]:
        """Return the intervals of the alerts of `scope` that ended at `since` or later, or have no known time."""

    def incidents(self, scope: str, of_keys: Collection[AlertKey] | None = None, since: datetime = DAWN) -> Sequence[Incident]:
        """Return the incidents of `scope` that may still matter, oldest first, merged ones included. With `of_keys` only those
        of which any revision reports one of these keys, and which were not over before `since` (see extent)."""

    def judged_by(self, scope: str) -> str | None:
        """Return the hash of the plan by which all of `scope` was last decided; None before the first time."""

    def put_judged(self, scope: str, plan: str) -> None:
        """Store that all of `scope` was decided by the plan with this hash."""

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        """Return the evidence of these events by id; unknown ids are left out."""

    def roster(self, scope: str) -> Roster:
        """Return the members of `scope`; an empty roster when there are none."""

    def put_facts(self, stated: Iterable[StatedFact]) -> Sequence[StatedFact]:
        """Store what servers stated, in order of time; return those that differ from the fact before about the same thing."""

    def picture(self, scope: str, until: datetime) -> ClusterPicture | None:
        """Return what was stated about `scope` until then; None when nothing was."""

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions of incidents."""


class Receiver(Protocol):
    """A recipient of notifications about incidents. Used by one thread at a time."""

    @property
    def edits(self) -> bool:
        """Whether it edits its earlier message: then it is also sent changed counts and new evidence."""

    @property
    def records(self) -> bool:
        """Whether it keeps a record: it is notified of every incident and of every change at once, independent of routes,
        silences, time intervals and ages."""

    @property
    def gathers(self) -> bool:
        """Whether a storm of incidents is one message to it, as people read it; False: a program reads each incident."""

    @property
    def rate_limit_key(self) -> str:
        """The key of its rate limit of one message a second (a Slack channel); empty when it has no limit."""

    def deliver(self, notification: Notification) -> Receipt:
        """Send the notification and return the outcome. A failure is a receipt, never an exception; it never retries."""


@runtime_checkable
class ForgetfulReceiver(Protocol):
    """A receiver that forgets an open incident unless it is sent again within `refresh_s` seconds."""

    @property
    def refresh_s(self) -> float:
        """The interval at which open incidents are sent again."""

    def refresh(self, notifications: Sequence[Notification]) -> Receipt:
        """Send the incidents again that it was notified of and not of their end. A failure is a receipt, never an exception."""


class ActAnswer(Struct, frozen=True):
    """The result of an act: the decision, the incident as it is shown now, and whether the same act was recorded before."""

    decision: ActDecision
    incident: Incident
    is_repeated: bool = False


class ActDesk(Protocol):
    """Where what people do in another system is recorded, and where they look incidents up. Used by any thread.

    All methods raise UnknownIncident for an id that no incident has, and StoreError.
    """

    def record(self, act: Act) -> ActAnswer:
        """Record an act, once for its key, and have receivers notified of it."""

    def find(self, prefix: str) -> Incident:
        """Return the only incident whose id begins with `prefix`, with or without `inc-`, as it is shown."""

    def going_on(self, limit: int) -> tuple[Sequence[Incident], int]:
        """Return the incidents that are open or acknowledged, at most `limit`, severe ones first; and how many there are."""


class EvidenceReader(Protocol):
    """Reads what stands around a line of evidence in the input that it was read from. Used by any thread."""

    def may_read(self, evidence: Evidence) -> bool:
        """Return whether the input of the line is there; without reading it."""

    def neighbours(self, evidence: Evidence) -> Neighbours | None:
        """Return the neighbours of the line; None when it cannot be found again. Raises ReaderBusy, and SourceError, with a
        sentence, when its topic does not have it or cannot be read."""


class Cache(Protocol):
    """Storage of data that takes long to compute. An entry that is lost or damaged is computed again."""

    def load(self, name: str) -> bytes | None:
        """Return the data stored under `name`; None when there is none."""

    def store(self, name: str, data: bytes) -> None:
        """Store `data` under `name`; a failure is ignored."""
