"""Follow files as `tail -F` does, and tell incidents as they arise, change and end: `tocsin scan --follow`.

The stages are those of the Spark job (engine/spark/slices.py, scope.py), in this process and with their state in memory. So
rotation, truncation, late lines and silences are judged as in `tocsin run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from connectors.files import FilesSource, open_source
from engine.cli.triage import OVER, worst_first
from engine.clock import SteadyClock
from engine.errors import DataLoss
from engine.incident import MemoryLedger, group
from engine.match import redactor_of
from engine.model.incidents import Finding, Incident
from engine.model.notifications import NotificationLog, Reason
from engine.model.quarantine import DeadLetter
from engine.model.records import Labels, Tick
from engine.model.routes import Timings
from engine.model.rules import Plan
from engine.quarantine import Quarantine
from engine.route import decide_notification, notification_log
from engine.spark.rows import BatchRow, InputLoss, InputNotice
from engine.spark.scope import ScopeState
from engine.spark.slices import Scanned, scan, stages

LOOK_S = 1.0
QUIET_S = 5.0  # between two ticks when nothing is written
ACTIVE_S = 3.0  # after the last new line, in which a tick comes each second
SHARE_LINES = 200_000  # of one look, so that incidents of a long log are told while it is read
_AT_ONCE = Timings(0.0, 0.0, 0.0)
_TOLD = frozenset((Reason.OPENED, Reason.ESCALATED, Reason.ROOT_CHANGED, Reason.MERGED, Reason.RESOLVED, Reason.REOPENED))


class FollowedChange(Struct, frozen=True):
    """Something to tell of an incident: that it was opened, or a sentence on what has changed."""

    incident: Incident
    reason: Reason
    news: str = ""


class FollowedLook(Struct, frozen=True):
    """What one look at the files gave: lines, changes of incidents in the order of decision, and sentences about the input.
    `is_end`: the files were read to their end; else more can be read at once."""

    lines: int
    changes: tuple[FollowedChange, ...] = ()
    sentences: tuple[str, ...] = ()
    is_end: bool = True


class LogFollower:
    """Files that are followed, and the incidents in them. Used by one thread.

    Args:
        paths: files, folders and patterns, as `tocsin scan` takes them; they are read from their beginning.
        now: the clock, for ticks.
    """

    def __init__(self, paths: Sequence[str], labels: Labels, plan: Plan, now: Callable[[], datetime] | None = None) -> None:
        scope = labels.get("cluster", "default")
        settings: Mapping[str, Any] = {"paths": tuple(paths), "labels": dict(labels), "start": "earliest", "final": False}
        self._source: FilesSource = open_source(settings)
        self._offset = self._source.initial()
        self._plan, self._stages, self._scope = plan, stages(plan), scope
        self._state: dict[str, str] = {}
        self._ledger = MemoryLedger()
        self._logs: dict[str, NotificationLog] = {}
        self._incidents: dict[str, Incident] = {}
        self._now = now or SteadyClock().now
        self._unreadable: frozenset[str] = frozenset()
        self._ticked_at = self._moved_at = datetime.min.replace(tzinfo=UTC)
        self.lines = 0

    @property
    def incidents(self) -> list[Incident]:
        """The incidents so far that were told, most severe first."""
        told = (incident for incident in self._incidents.values() if incident.id in self._logs and incident.status not in OVER)
        return sorted(told, key=worst_first)

    def look(self) -> FollowedLook:
        """Read what is new in the files, up to SHARE_LINES, and judge it. Nothing is judged between two ticks when nothing is
        new. Raises SourceError when the paths cannot be searched."""
        now, before = self._now(), self._offset
        self._offset = self._source.latest(before, SHARE_LINES)
        is_new = self._offset != before
        sentences = [*self._errors()]
        if not is_new and not self._tick_is_due(now):
            return FollowedLook(0, (), tuple(sentences))
        self._moved_at, self._ticked_at = (now if is_new else self._moved_at), now
        progress = self._source.progress(self._offset)
        items = [*self._read(before, now), *progress, Tick(now)]
        lines = sum(item.lines for item in items if isinstance(item, Scanned))
        self.lines += lines
        quarantine = Quarantine(redactor_of(self._plan.redaction))
        judged = ScopeState(self._stages, self._scope, self._state, False).take(items)
        findings = [item for item in judged if isinstance(item, Finding)]
        revisions = list(group(findings, self._plan, self._ledger, quarantine))
        letters = [*judged, *quarantine.taken()]
        sentences += [item.sentence for item in letters if isinstance(item, DeadLetter | InputLoss)]
        sentences += [item.text for item in letters if isinstance(item, InputNotice)]
        is_end = not lines or all(stream.caught_up for stream in progress)
        return FollowedLook(lines, tuple(self._changes(revisions, now)), tuple(sentences), is_end)

    def _tick_is_due(self, now: datetime) -> bool:
        is_active = now < self._moved_at + timedelta(seconds=ACTIVE_S)
        return now - self._ticked_at >= timedelta(seconds=LOOK_S if is_active else QUIET_S)

    def _read(self, before: Mapping[str, Any], now: datetime) -> Iterator[BatchRow]:
        for slice_ in self._source.partitions(before, self._offset):
            losses: list[DataLoss] = []
            for item in scan(self._chunks(slice_, losses), self._stages):
                yield replace(item, at=now) if isinstance(item, DeadLetter) else item
            yield from (InputLoss(loss.source_id, loss.lost_from, loss.lost_to, loss.why, now) for loss in losses)

    def _chunks(self, slice_: Mapping[str, Any], losses: list[DataLoss]) -> Iterator[Any]:
        try:
            yield from self._source.chunks(slice_)
        except* DataLoss as lost:
            losses += [error for error in lost.exceptions if isinstance(error, DataLoss)]

    def _errors(self) -> Iterator[str]:
        """Yield a sentence for each file that cannot be read and could be before."""
        errors = self._source.unreadable()
        yield from (str(errors[name]) for name in sorted(errors.keys() - self._unreadable))
        self._unreadable = frozenset(errors)

    def _changes(self, revisions: Iterable[Incident], now: datetime) -> Iterator[FollowedChange]:
        for incident in {revision.id: revision for revision in revisions}.values():
            self._incidents[incident.id] = incident
            decision = decide_notification(self._logs.get(incident.id), incident, _AT_ONCE, now)
            if decision.reason is None or decision.reason is Reason.REPEATED:
                continue
            self._logs[incident.id] = notification_log(incident, now, {})
            if decision.reason in _TOLD or decision.news:
                yield FollowedChange(incident, decision.reason, decision.news)
