"""The rows that cross Spark: one schema for all of them, with a value of the model as JSON in `body`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, get_args

from msgspec import DecodeError, Struct, field

from engine.codec import dumps, loads
from engine.columns.audit import AuditResult
from engine.model.incidents import Evidence, NotEvaluated, Roster, Verdict
from engine.model.matches import ActivitySpan, Match
from engine.model.pictures import StatedFact
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Progress, Tick
from engine.quarantine import ERROR_CHARS
from engine.spark.combining import MatchBatch
from engine.spark.slices import Scanned, SliceFragments

SCHEMA = "scope string, kind string, body string"


class InputLoss(Struct, frozen=True):
    """Lines [lost_from, lost_to) of a source that were gone before they were read; `at`: when the batch was planned."""

    source_id: str
    lost_from: int
    lost_to: int
    why: str
    at: datetime

    @property
    def sentence(self) -> str:
        """The sentence for the operator."""
        where = f"offsets {self.lost_from} to {self.lost_to}"
        if self.lost_from == self.lost_to:
            where = f"after offset {self.lost_from}, nobody knows how many"
        return f"lines of '{self.source_id}' are lost ({where}): {self.why}"


class InputNotice(Struct, frozen=True):
    """A sentence about tocsin's own input, as of `at`."""

    at: datetime
    text: str


class BatchCounts(Struct, frozen=True):
    """What was counted in a batch, or in the part of it that one task saw.

    Attributes:
        events: the events that ended in it. A scope counts those that no slice held as a whole; the others are in Scanned.
        matches: the matches of signatures by rule, less those that were retracted; rules without any are left out.
        late: by source, the lines that came so late that later ones may be missed (see errors.LateInput).
    """

    events: int = 0
    matches: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)


WorkerRow = (
    Match
    | MatchBatch
    | ActivitySpan
    | SliceFragments
    | Progress
    | Tick
    | Scanned
    | InputLoss
    | InputNotice
    | BatchCounts
    | DeadLetter
    | Misdated
    | AuditResult
)
BatchRow = WorkerRow | Verdict | Evidence | Roster | NotEvaluated | StatedFact
RowTuple = tuple[str, str, str]

_KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(BatchRow)}


def row(scope: str, item: BatchRow) -> RowTuple:
    """Return `item` as a row of SCHEMA."""
    return scope, type(item).__name__, dumps(item)


def sent(scope: str, item: BatchRow) -> RowTuple:
    """Return `item` as a row of SCHEMA, or a dead letter with the error when `item` cannot be encoded."""
    try:
        return row(scope, item)
    except (ValueError, TypeError, OverflowError) as error:
        return row(scope, _lost_row(type(item).__name__, error, getattr(item, "source_id", "")))


def item(kind: str, body: str) -> BatchRow:
    """Return the item that `row` encoded. Raises KeyError for an unknown kind, msgspec's DecodeError for a bad body."""
    decoded: BatchRow = loads(body, _KINDS[kind])
    return decoded


def received(kind: str, body: str) -> BatchRow:
    """Return the item that `row` encoded, or a dead letter with the error when the body cannot be decoded."""
    try:
        return item(kind, body)
    except (ValueError, DecodeError) as error:
        return _lost_row(kind, error, "")


def _lost_row(kind: str, error: Exception, source_id: str) -> DeadLetter:
    description = f"{type(error).__name__}: {error}"[:ERROR_CHARS].encode("utf-8", "replace").decode()
    return DeadLetter("send", source_id.encode("utf-8", "replace").decode(), 0, 0, 0, 0, kind, description, "")


def counted(items: Iterable[BatchRow]) -> BatchCounts:
    """Return what was counted in a batch from the parts that its rows hold."""
    events, matches, late = 0, Counter[str](), Counter[str]()
    for item in items:
        if isinstance(item, Scanned | BatchCounts):
            events += item.events
        if isinstance(item, BatchCounts):
            matches.update(item.matches)
            late.update(item.late)
    return BatchCounts(events, dict(matches), dict(late))
