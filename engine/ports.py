"""What the engine asks of the world: sources, ledgers, receivers. Imports the standard library, msgspec and the model only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Protocol

from msgspec import Struct, field

from engine.errors import SourceError
from engine.model.incidents import DAWN, Alert, AlertInterval, AlertKey, Evidence, Incident, NotEvaluated, Roster, Verdict
from engine.model.notifications import Notification, Receipt
from engine.model.records import Labels, Progress, RawLine

Say = Callable[[str], None]  # tells the operator a sentence
Offset = Mapping[str, Any]  # JSON: what a source needs to go on from here


class RecordPositions(Protocol):
    """What some lines came in. Few lines are ever asked about."""

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of byte `at` of the lines, and when it was taken if that is known."""

    def earliest(self) -> datetime | None:
        """Return the earliest time that any of the lines was taken, as far as it is known of any."""

    def origin(self, at: int) -> str:
        """Return the origin of the line that holds byte `at` (engine/model/origins); empty when it has none."""


ChunkPart = tuple[int, RecordPositions]  # where the lines of the records begin


class Chunk(Struct, frozen=True):
    """Whole lines of one source: `data` is their bytes with line ends, `offset` the position of the first byte, `number` the
    line number of the first line (0: unknown).

    `stream` is what the source is read out of, when it is not a stream of its own: a Kafka partition that many sources are
    interleaved in. Chunks of one stream are contiguous: each begins where the one before ended, at `end` when its positions are
    not counted in bytes, and those of one source are in order. `data` may be empty: nothing stands between `offset` and `end`.

    `records`, where positions do not count bytes: what was joined into `data`, in order. It may lie mixed with what others
    have in the same part of the stream: then all of their chunks but the last end where they begin.
    """

    source_id: str
    offset: int
    data: bytes
    number: int = 0
    ingested_at: datetime | None = None
    labels: Labels = field(default_factory=dict)
    stream: str = ""
    end: int | None = None
    records: Sequence[ChunkPart] = ()

    @property
    def parent_id(self) -> str:
        """The stream that the chunk is a part of."""
        return self.stream or self.source_id

    @property
    def next_offset(self) -> int:
        """Where the next chunk of the stream begins."""
        return self.offset + len(self.data) if self.end is None else self.end

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of byte `at` of `data`, and when it was taken."""
        if not self.records:
            return self.offset + at, self.ingested_at
        begin, records = self._part(at)
        return records.place(at - begin)

    def origin(self, at: int) -> str:
        """Return the origin of the line that holds byte `at` of `data`; empty when it has none."""
        if not self.records:
            return ""
        begin, records = self._part(at)
        return records.origin(at - begin)

    def _part(self, at: int) -> ChunkPart:
        return self.records[bisect_right(self.records, at, key=itemgetter(0)) - 1]

    def earliest(self) -> datetime | None:
        """Return the earliest time that any of its lines was taken, as far as it is known of any."""
        if not self.records:
            return self.ingested_at
        return min((at for _, records in self.records if (at := records.earliest()) is not None), default=None)

    def lines(self) -> Iterator[RawLine]:
        """Yield its lines, one after the other."""
        at, number = 0, self.number
        lines = self.data.split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            offset, taken = self.place(at)
            yield RawLine(self.source_id, offset, line.rstrip(b"\r"), number, taken, self.labels, self.origin(at))
            at += len(line) + 1
            number += 1 if number else 0


class Source(Protocol):
    """A system that log lines are read from. Pure Python; the one adapter in engine/spark makes it a streaming source.

    Offsets, partitions and slices are JSON values: they travel through Spark's checkpoint and to its workers. `initial` and
    `latest` raise SourceAway when it cannot be read now: a run without an end leaves it where it is, and asks again.
    """

    def initial(self) -> Offset:
        """Return where a first run starts (`start:` of the configuration)."""

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return how far can be read now: at line ends only, at most about `max_lines` past `start`."""

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Split [start, end) into slices that can be read independently."""

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Read one slice; its streams may interleave.

        Raises DataLoss when part of it is gone, or an ExceptionGroup of them, after everything that is left was yielded.
        """

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return what `latest` came upon and could not read, by name, while it went on with the rest. What is denied
        (SourceDenied) is waited for, anything else passed over."""

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Say, for every stream known at `end`, how far `end` reaches of what there is."""


class Ledger(Protocol):
    """Where alerts and incidents live: a dictionary in `replay()`, the incident store in the job.

    All calls of one batch happen inside one transaction of the caller.
    """

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[NotEvaluated],
    ) -> Sequence[AlertInterval]:
        """Store what correlation said; a later verdict of a key replaces the earlier (see Verdict), blinds see Blind. Return
        when the alerts were and are that are new by that, gone, or told anew with a difference. When it raises, nothing
        is stored."""

    def scopes(self) -> Sequence[str]:
        """Return every scope that something is known of, sorted."""

    def alerts(self, scope: str, seen: Collection[AlertInterval] | None = None) -> Mapping[AlertKey, tuple[Alert, ...]]:
        """Return every alert of `scope` that may still matter, or those `seen` of them, by key, each ordered by time."""

    def sights(self, scope: str, since: datetime) -> Sequence[AlertInterval]:
        """Return when the alerts of `scope` were: of all that were not over before `since`, or are at no known time."""

    def incidents(self, scope: str, told_of: Collection[AlertKey] | None = None, since: datetime = DAWN) -> Sequence[Incident]:
        """Return the incidents of `scope` that may still matter, oldest first, merged ones included: all, or those that at any
        of their revisions told of one of these keys and were not over before `since` (see extent)."""

    def judged_by(self, scope: str) -> str | None:
        """Return the hash of the rules that all of `scope` was last decided by; None when it never was."""

    def put_judged(self, scope: str, plan: str) -> None:
        """Remember that all of `scope` was decided by the rules of this hash."""

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        """Return the evidence known under these ids."""

    def roster(self, scope: str) -> Roster:
        """Return the members known in `scope` (empty when none are)."""

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions."""


class Receiver(Protocol):
    """Somebody who is told about incidents. Used from one thread at a time."""

    @property
    def edits(self) -> bool:
        """Whether it replaces what it said before: then it is also told of grown counts and new evidence."""

    @property
    def records(self) -> bool:
        """Whether it keeps a record: then it is told of every incident at once and of every change of it, whatever routes,
        silences, time intervals and ages say."""

    @property
    def rate_limit_key(self) -> str:
        """What its rate is limited by, one message a second (a Slack channel); empty when it needs no pacing."""

    def deliver(self, notification: Notification) -> Receipt:
        """Tell it. Failures are receipts, never exceptions; nothing is retried in here."""


class Cache(Protocol):
    """Where things are kept that take long to compile. What is lost or damaged is only made again."""

    def load(self, name: str) -> bytes | None:
        """Return what was stored under `name`, None when that is not known."""

    def store(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, if that can be done."""
