"""The output of the flow: alerts and verdicts of correlation, and incidents with their rendered runbooks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, field

from engine.model.acts import Handling
from engine.model.blast import BlastRadius
from engine.model.matches import Match, Value
from engine.model.pictures import StatedFact
from engine.model.records import Labels
from engine.model.words import worded

AlertKey = tuple[str, str, tuple[tuple[str, str], ...]]  # scope, rule id, entity as sorted (label, value) pairs

OTHERS = "?*"  # value of an entity: all entities beyond the limit of a rule, counted together


class Capture(Struct, frozen=True, gc=False):
    """The values that the matches of an alert captured under one name; independent of arrival order.

    `values`: distinct values ordered by event time, at most 10. For numbers also first, last, min, max, sum (else None).
    """

    values: tuple[Value, ...]
    first: float | None = None
    last: float | None = None
    min: float | None = None
    max: float | None = None
    sum: float | None = None


DOUBTED = "the cluster, asked at "  # in the sentence on an end that logs and cluster do not agree about
VERIFIED = "verified at "  # how the sentence begins on an end that the cluster bore out when it was asked
QUIET = worded("quiet, not confirmed")  # why an alert ended that nothing but silence ended


class HeartbeatRun(Struct, frozen=True, array_like=True):
    """Heartbeats of one member without a miss, about every `every_s` seconds from `first` to `last`; only these two are exact.

    `labels` name the member, e.g. {"broker": "1"}.
    """

    labels: Labels
    every_s: float
    first: datetime
    last: datetime


class Alert(Struct, frozen=True, gc=False):
    """A rule that holds for one entity from `starts_at` to `last_seen`; it has ended when `ends_at` is set.

    status: pending (its `for` has not passed) | firing | resolved | retracted. `why` is how it began or ended ("quiet, not
    confirmed"). `events` are ids of its events (first 3, last 3 and up to 50 in all, by time): `first` and `last` index the
    evidence. Labels hold the entity and the labels of the process that wrote the events. `settings` is the configuration of the
    affected process as it printed it (engine/model/configs), by class and name: {"ProducerConfig max.request.size": "1048576"}.
    `items` are the detection items that held in any of its matches, sorted: those alone that an expression of the rule names.
    `offsets_s` are the times of `events`, in whole seconds after `starts_at`; `heartbeats`, for a silence, are those of all
    members around its beginning.
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
    sources: tuple[str, ...] = ()  # the sources of its events: the first 10 ids, sorted
    settings: Mapping[str, str] = field(default_factory=dict)
    hearsay: bool = False  # no source that may speak for the entity wrote it: it explains only alerts of its own sources
    items: tuple[str, ...] = ()
    offsets_s: tuple[int, ...] = ()
    heartbeats: tuple[HeartbeatRun, ...] = ()


STATES = ("open", "acknowledged", "pending", "resolved", "merged", "retracted")  # of incidents, in the order of lists

DAWN, EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class AlertInterval(Struct, frozen=True, gc=False):
    """When a rule held for an entity: the part of an alert that decides which other alerts it may be linked to. `until` is EVER
    while the alert has not ended, and None when its lines have no stamps."""

    key: AlertKey
    starts_at: datetime
    until: datetime | None


def interval_of(alert: Alert) -> AlertInterval:
    """Return the interval of an alert."""
    end = EVER if alert.ends_at is None else max(alert.ends_at, alert.last_seen)
    return AlertInterval(alert.key, alert.starts_at, end if alert.dated else None)


class Verdict(Struct, frozen=True, gc=False):
    """All current alerts of a rule for one entity, ordered by time. They replace the earlier ones, except alerts that started
    before `final_before` and are not repeated here: those are final, or have not changed."""

    key: AlertKey
    alerts: tuple[Alert, ...]
    final_before: datetime | None = None

    def over(self, earlier: tuple[Alert, ...]) -> tuple[Alert, ...]:
        """Return the alerts of the key after this verdict replaced `earlier`, by time: its own, and those left in place."""
        if self.final_before is None:
            return self.alerts
        repeated = {alert.starts_at for alert in self.alerts}
        final = [a for a in earlier if a.starts_at < self.final_before and a.starts_at not in repeated]
        return tuple(sorted((*final, *self.alerts), key=lambda alert: alert.starts_at))

    def since(self, at: datetime) -> Verdict:
        """Return this verdict for alerts that start at `at` or later; earlier alerts stay as they are."""
        later = tuple(alert for alert in self.alerts if alert.starts_at >= at)
        return Verdict(self.key, later, at if self.final_before is None else max(at, self.final_before))


class Evidence(Struct, frozen=True, omit_defaults=True, gc=False):
    """The event of an alert's evidence id; `text` is redacted and at most 4 kB long.

    `origin` names the document of its first line, as `elasticsearch:INDEX/_ID` (engine/model/origins); empty when the line is
    in a file or a topic.
    """

    event_id: str
    source_id: str
    number: int
    at: datetime
    text: str
    origin: str = ""

    @property
    def place(self) -> str:
        """The source of the line, with its number where it has one: `broker-1.log:41`."""
        return f"{self.source_id}:{self.number}" if self.number else self.source_id


def evidence_of(match: Match) -> Evidence:
    """Return the event of a match as evidence."""
    return Evidence(match.event_id, match.source_id, match.number, match.at, match.text, match.origin)


class Roster(Struct, frozen=True):
    """The known members of each component in a scope, sorted, e.g. {"broker": ("1", "2", "3")}."""

    scope: str
    members: Mapping[str, tuple[str, ...]]


class NotEvaluated(Struct, frozen=True):
    """Something that cannot be judged in a scope, and why: an unbound source, an absence that was never armed, a rule for other
    versions.

    An empty `what` removes all earlier entries of the scope; the entries after it are the complete list.
    """

    scope: str
    what: str
    why: str


Finding = Verdict | Evidence | Roster | NotEvaluated | StatedFact


class RenderedStep(Struct, frozen=True):
    """A step of the fix with its numbers filled in. `is_done`: the picture of the cluster shows that nothing is left to do."""

    do: str
    where: str = ""
    set: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    file: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    changes_state: bool = False
    is_done: bool = False

    @property
    def assignments(self) -> tuple[str, ...]:
        """The settings as `name=value`, those of `set` before those of `also`."""
        return tuple(f"{name}={value}" for settings in (self.set, self.also) for name, value in settings.items())

    @property
    def remark(self) -> str:
        """Where the step is done, and whether it changes anything, as `topic, changes state`; may be empty."""
        return ", ".join(part for part in (self.where, "changes state" if self.changes_state else "") if part)


class Symptom(Struct, frozen=True):
    """Alerts that an incident explains: one entry for each rule and entity."""

    rule: str
    title: str
    count: int
    labels: Labels
    first_seen: datetime | None = None


class AlertCourse(Struct, frozen=True, array_like=True):
    """The course of one dated alert of an incident, or of `alerts` alerts of one rule beyond those that are kept apart.

    role: root (with its refirings) | stage | symptom. `labels` name who wrote the lines and who they are about; `sources` are
    the first three. `event_id` is the evidence that proves it, empty when the incident does not hold it. `ended_at` is None for
    symptoms. `offsets_s` are the times of its first and last 25 events, in seconds after `first`.
    """

    role: str
    rule: str
    title: str
    severity: str
    first: datetime
    last: datetime
    ended_at: datetime | None
    count: int
    labels: Labels
    sources: tuple[str, ...] = ()
    event_id: str = ""
    offsets_s: tuple[int, ...] = ()
    alerts: int = 1
    why: str = ""  # how a root ended


class Incident(Struct, frozen=True, gc=False):
    """Alerts with one root cause, as they are reported and stored. `id` is fixed at opening; `revision` grows with each change.

    status: open | acknowledged | resolved | retracted | merged. Times are None when the lines have no stamps. `handling` is
    what people did; None in what the job stores, and where nobody did anything.
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
    stage: str = ""  # the rule whose fix is shown, when the incident has reached a later stage
    why: str = ""
    merged_into: str | None = None
    pending: bool = False
    alerts: tuple[AlertKey, ...] = ()  # the keys of its alerts: root first
    opened_at: datetime | None = None  # event time of the first alert when it was opened
    is_silence: bool = False  # its root is an absence: who it is about says nothing
    course: tuple[AlertCourse, ...] = ()  # root and refirings, stages, symptoms; empty when its lines have no stamps
    heartbeats: tuple[HeartbeatRun, ...] = ()
    handling: Handling | None = None
    translations: Mapping[str, dict[str, str]] = field(default_factory=dict)
    blast: BlastRadius | None = None  # what it touches, where the cluster is asked

    @property
    def edition(self) -> str:
        """What names this state of the incident: its revision, and the number of acts where there are some: `7`, `7a2`."""
        acts = self.handling.acts if self.handling is not None else 0
        return f"{self.revision}a{acts}" if acts else str(self.revision)

    @property
    def owner(self) -> str:
        """The name of the person who has it; empty: nobody."""
        return self.handling.owner if self.handling is not None else ""


def extent(incident: Incident) -> tuple[datetime, datetime] | None:
    """Return the first and last time of an incident, its opening included; None when its lines have no stamps."""
    if incident.first_seen is None:
        return None
    stamps = (incident.first_seen, incident.opened_at, incident.last_seen, incident.resolved_at)
    times = [at for at in stamps if at is not None]
    return min(times), max(times)
