"""What comes out: verdicts of correlation, and incidents with their rendered runbooks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, field

from engine.model.matches import Match, Value
from engine.model.records import Labels

AlertKey = tuple[str, str, tuple[tuple[str, str], ...]]  # scope, rule id, entity as sorted (label, value) pairs

OTHERS = "?*"  # in an entity: stands for all that are not kept apart, as they are too many


class Capture(Struct, frozen=True):
    """What an alert's matches captured under one name, merged without regard to arrival order.

    `values`: distinct values ordered by event time, at most 10. For numbers also first, last, min, max, sum (else None).
    """

    values: tuple[Value, ...]
    first: float | None = None
    last: float | None = None
    min: float | None = None
    max: float | None = None
    sum: float | None = None


class Alert(Struct, frozen=True):
    """A rule holding for one entity from `starts_at` to `last_seen`; over at `ends_at` when that is set.

    status: pending (its `for` has not passed) | firing | resolved | retracted. `why` says how it began or ended ("quiet, not
    confirmed"). `events` are ids of its events (first 3, last 3 and up to 50 in all, by time): `first` and `last` index the
    evidence. Labels hold the entity and what is known of the emitter. `settings` is what the process in trouble runs with, as
    it printed it (engine/model/configs), by class and name: {"ProducerConfig max.request.size": "1048576"}.
    """

    key: AlertKey
    status: str
    severity: str
    starts_at: datetime
    last_seen: datetime
    ends_at: datetime | None
    count: int
    dated: bool
    labels: Labels = field(default_factory=dict)
    captures: Mapping[str, Capture] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    why: str = ""
    sources: tuple[str, ...] = ()  # who printed its events: the first 10 source ids, sorted
    settings: Mapping[str, str] = field(default_factory=dict)
    hearsay: bool = False  # nobody who may say it did: it explains only what its own sources show


DAWN, EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class AlertInterval(Struct, frozen=True):
    """When a rule held for an entity: as much of an alert as says what it may have to do with. `until` is EVER while it is not
    over, and None when its lines bear no time."""

    key: AlertKey
    starts_at: datetime
    until: datetime | None


def sight(alert: Alert) -> AlertInterval:
    """Return when an alert was."""
    end = EVER if alert.ends_at is None else max(alert.ends_at, alert.last_seen)
    return AlertInterval(alert.key, alert.starts_at, end if alert.dated else None)


class Verdict(Struct, frozen=True):
    """What a rule says now of one entity, ordered by time: replaces what it said before, except alerts that started before
    `final_before` and are not repeated here: they are final, or have not changed."""

    key: AlertKey
    alerts: tuple[Alert, ...]
    final_before: datetime | None = None

    def over(self, earlier: tuple[Alert, ...]) -> tuple[Alert, ...]:
        """Return what the key's alerts are once this verdict replaces `earlier`: its own, and those it leaves standing."""
        if self.final_before is None:
            return self.alerts
        repeated = {alert.starts_at for alert in self.alerts}
        final = [a for a in earlier if a.starts_at < self.final_before and a.starts_at not in repeated]
        return tuple(sorted((*final, *self.alerts), key=lambda alert: alert.starts_at))

    def since(self, at: datetime) -> Verdict:
        """Return what this verdict says of alerts that start at `at` or later; what was said of earlier ones stands."""
        kept = tuple(alert for alert in self.alerts if alert.starts_at >= at)
        return Verdict(self.key, kept, at if self.final_before is None else max(at, self.final_before))


class Evidence(Struct, frozen=True, omit_defaults=True):
    """The event behind an alert's evidence id; `text` is redacted and at most 4 kB.

    `origin` names the document that its first line is in, as `elasticsearch:INDEX/_ID` (engine/model/origins); empty
    when the line is in a file or a topic.
    """

    event_id: str
    source_id: str
    number: int
    at: datetime
    text: str
    origin: str = ""


def evidence_of(match: Match) -> Evidence:
    """Return the event of a match as evidence."""
    return Evidence(match.event_id, match.source_id, match.number, match.at, match.text, match.origin)


class Roster(Struct, frozen=True):
    """The members of each component known in a scope, e.g. {"broker": ("1", "2", "3")}, sorted."""

    scope: str
    members: Mapping[str, tuple[str, ...]]


class NotEvaluated(Struct, frozen=True):
    """Something tocsin cannot judge in a scope, and why: an unbound source, an absence never armed, a rule of other versions.

    An empty `what` takes back everything said before of the scope: the list that follows it is the whole list.
    """

    scope: str
    what: str
    why: str


Finding = Verdict | Evidence | Roster | NotEvaluated


class RenderedStep(Struct, frozen=True):
    """A step of the fix with its numbers filled in."""

    do: str
    where: str = ""
    set: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    file: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    changes_state: bool = False


class Symptom(Struct, frozen=True):
    """What an incident explains: one entry per rule and entity."""

    rule: str
    title: str
    count: int
    labels: Labels
    first_seen: datetime | None = None


class Incident(Struct, frozen=True):
    """One trouble with one root: what is told, shown and stored. `id` is fixed at opening; `revision` grows with each change.

    status: open | acknowledged | resolved | retracted | merged. Times are None when the lines bear no stamps.
    """

    id: str
    key: AlertKey
    revision: int
    rule: str
    title: str
    severity: str
    status: str
    component: str
    labels: Labels
    first_seen: datetime | None
    last_seen: datetime | None
    resolved_at: datetime | None
    count: int
    cause: str
    impact: str
    fix: tuple[RenderedStep, ...] = ()
    verify: str = ""
    evidence: tuple[Evidence, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    captures: Mapping[str, Value] = field(default_factory=dict)
    also_possible: tuple[str, ...] = ()
    next_checks: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    stage: str = ""  # the rule whose fix is shown, when a later stage of the same trouble has been reached
    why: str = ""
    merged_into: str | None = None
    pending: bool = False
    alerts: tuple[AlertKey, ...] = ()  # the keys of its alerts: root first
    opened_at: datetime | None = None  # event time of the first alert when it was opened
    is_silence: bool = False  # its root is an absence: who it is about says nothing


def extent(incident: Incident) -> tuple[datetime, datetime] | None:
    """Return from when until when an incident went on, its opening included; None when its lines bear no time."""
    if incident.first_seen is None:
        return None
    known = (incident.first_seen, incident.opened_at, incident.last_seen, incident.resolved_at)
    times = [at for at in known if at is not None]
    return min(times), max(times)
