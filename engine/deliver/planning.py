"""Decide how an outbox entry changes when an incident, a silence or the time has changed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from math import isnan

from msgspec import Struct, field
from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.links import NO_LINKS, LinkTargets
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason
from engine.model.phrases import lasting, moment
from engine.model.proofs import PROOF_LABEL, PROOF_RULE
from engine.model.routes import Route, Silence, Timings
from engine.model.words import ENGLISH, Words
from engine.risks.picturing import AuditTerms
from engine.route import (
    NOTHING,
    Decision,
    Target,
    decide_notification,
    hours_change_at,
    is_backfill,
    is_minor,
    is_storm,
    mute_reason,
    muted_by,
    needs_recording,
    route,
    routing_labels,
)

RETRY_FIRST_S, RETRY_LONGEST_S = 5.0, 300.0
RETRY_AT_LEAST_S, RETRY_AT_MOST_S = 1.0, 3600.0  # bounds for the delay that a receiver asks for
WAITING = frozenset((DeliveryState.QUEUED, DeliveryState.RETRY_LATER))
_ENDED = frozenset(("resolved", "retracted", "merged"))
_LOUD = frozenset((Reason.ESCALATED, Reason.REOPENED))  # what is sent of an incident by itself that is part of a storm


class AuditNotice(Struct, frozen=True):
    """Who is sent the digests of risks, from which minute of the day in UTC on, and what clusters are judged by."""

    receiver: str
    minute: int
    terms: AuditTerms = AuditTerms()


class Policy(Struct, frozen=True):
    """The notification settings of a configuration.

    `edits`: receivers that update one message. `explained`: rules whose alerts other rules may explain, as long as the store
    has none of a job. `hurry`: waits count as elapsed (in a run that ends); repetitions keep their interval. `links`: the
    targets of links in messages. `max_age_s`: an incident that is older when first seen is notified in a digest only; 0: no
    limit. `fallbacks`: receiver -> the one that is notified when it refuses, without circles. `records`: receivers that keep a
    record of every incident. `gatherers`: receivers to which a storm, more than `storm_size` new incidents (0: no limit), is
    one message. `words`: of the receivers that do not get English. `proofs`: the receiver of each proof that goes on, by its
    nonce, as the store has them. `audit`: who is sent the digest of risks; None: nobody.
    """

    tree: Route
    edits: frozenset[str] = field(default_factory=frozenset)
    explained: frozenset[str] = field(default_factory=frozenset)
    hurry: bool = False
    links: LinkTargets = NO_LINKS
    max_age_s: float = 0.0
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    records: frozenset[str] = field(default_factory=frozenset)
    gatherers: frozenset[str] = field(default_factory=frozenset)
    storm_size: int = 0
    words: Mapping[str, Words] = field(default_factory=dict)
    proofs: Mapping[str, str] = field(default_factory=dict)
    audit: AuditNotice | None = None

    def words_of(self, receiver: str) -> Words:
        """Return the words of a receiver in its language."""
        return self.words.get(receiver, ENGLISH)

    def targets(
        self, incident: Incident, notified: Iterable[str], refuses: Callable[[str], bool] = lambda receiver: False
    ) -> tuple[Target, ...]:
        """Return the targets of `incident`, each receiver once: those that it is routed to, those that keep a record, the
        fallbacks of those for which `refuses` is true, and those in `notified`, which had a notification of it or of an
        incident merged into it. A proof has the receiver that was asked for it, or none, whatever routes say."""
        if incident.rule == PROOF_RULE:
            return self._proof_targets(incident)
        routed = {target.receiver: target for target in route(routing_labels(incident), self.tree)}
        routed |= {name: Target(name, self.tree.timings) for name in sorted(self.records)}
        for target in list(routed.values()):
            for name in self._instead_of(target.receiver, refuses):
                routed.setdefault(name, replace(target, receiver=name, instead_of=target.receiver))
        others = (Target(name, self.tree.timings) for name in sorted(set(notified) - routed.keys()))
        return (*routed.values(), *others)

    def _proof_targets(self, incident: Incident) -> tuple[Target, ...]:
        receiver = self.proofs.get(incident.labels.get(PROOF_LABEL, ""))
        return () if receiver is None else (Target(receiver, Timings(0.0, 0.0, 0.0)),)

    def _instead_of(self, receiver: str, refuses: Callable[[str], bool]) -> Iterator[str]:
        while refuses(receiver) and receiver in self.fallbacks:
            receiver = self.fallbacks[receiver]
            yield receiver


class PlannedEntry(Struct, frozen=True):
    """The entry as it should be (None: no entry), and when to plan again if nothing changes before (None: never)."""

    entry: Delivery | None = None
    next_at: datetime | None = None


def plan_delivery(
    policy: Policy,
    target: Target,
    incident: Incident,
    log: NotificationLog | None,
    entry: Delivery | None,
    silences: Iterable[Silence],
    now: datetime,
) -> PlannedEntry:
    """Return the outbox entry that `target` and `incident` should have; `entry` is the current one.

    An attempt with an unknown outcome is never dropped, even when there is nothing to notify: a message may have been sent,
    and it must be updated.
    """
    known_at = _known_at(policy, incident, log, entry, now)
    if target.receiver in policy.records:
        return _planned_record(policy, target, incident, log, entry, known_at, now)
    decision = _decision(policy, target, incident, log, known_at)
    if decision.reason is None and entry is not None and entry.unsure_since is not None:
        decision = Decision(Reason.UPDATED, now)
    if decision.reason is None or (decision.reason is Reason.REPEATED and not decision.is_due(now)):
        return PlannedEntry(entry if entry is not None and entry.state is DeliveryState.DELIVERED else None, decision.at)
    planned = _entry(decision, target, incident, log, entry, known_at)
    if planned is None or planned.unsure_since is not None:
        return PlannedEntry(planned)
    muted = None if decision.by_person else _muted(target, incident, planned, silences, now)
    if muted is not None:
        return muted
    if log is None and (hold := _held_for_good(policy, incident, entry, known_at)):
        return PlannedEntry(replace(planned, state=hold[0], why=hold[1], attempt_at=entry.attempt_at if entry else None))
    may_be_muted = target.hours and (planned.state in WAITING or planned.state is DeliveryState.FOLDED)
    return PlannedEntry(planned, hours_change_at(target.hours, now) if may_be_muted else None)


def _planned_record(
    policy: Policy,
    target: Target,
    incident: Incident,
    log: NotificationLog | None,
    entry: Delivery | None,
    known_at: datetime,
    now: datetime,
) -> PlannedEntry:
    """Return the entry for a receiver that keeps a record: nothing is muted, held for a digest or too old for it."""
    decision = needs_recording(log, incident, now, 0.0) if policy.hurry else needs_recording(log, incident, now)
    if entry is not None and entry.state in (DeliveryState.FOLDED, DeliveryState.BACKFILL, DeliveryState.MUTED):
        entry = None  # from a configuration in which it kept no record
    if decision.reason is None and entry is not None and entry.unsure_since is not None:
        decision = Decision(Reason.UPDATED, now)
    if decision.reason is None:
        return PlannedEntry(entry if entry is not None and entry.state is DeliveryState.DELIVERED else None)
    return PlannedEntry(_entry(decision, target, incident, log, entry, known_at))


def retried(entry: Delivery, after_s: float | None, now: datetime) -> datetime:
    """Return when a failed entry is retried: after `after_s` of the receiver within bounds, else 5 s, doubling up to 5 min."""
    doubling = min(RETRY_LONGEST_S, RETRY_FIRST_S * 2.0 ** min(10, max(0, entry.attempts - 1)))
    if after_s is None or isnan(after_s):
        return now + timedelta(seconds=doubling)
    return now + timedelta(seconds=min(RETRY_AT_MOST_S, max(RETRY_AT_LEAST_S, after_s)))


def _known_at(
    policy: Policy, incident: Incident, log: NotificationLog | None, entry: Delivery | None, now: datetime
) -> datetime:
    """Return when a reason to notify was first seen: `entry.known_at`, or `now` without one or when backfill has new events."""
    if entry is None or log is not None:
        return now
    is_alive = entry.state is DeliveryState.BACKFILL and not is_backfill(incident, now, policy.max_age_s)
    return now if is_alive else entry.known_at


def _decision(policy: Policy, target: Target, incident: Incident, log: NotificationLog | None, known_at: datetime) -> Decision:
    timings, explained = target.timings, incident.rule in policy.explained
    if policy.hurry:
        timings, explained = Timings(0.0, 0.0, target.timings.repeat_interval_s), False
    if target.instead_of:  # the receiver that refused has waited already
        timings, explained = replace(timings, group_wait_s=0.0), False
    edits = target.receiver in policy.edits and not (log is not None and log.digest)
    decision = decide_notification(log, incident, timings, known_at, explained=explained, edits=edits)
    if log is not None and is_storm(log.digest) and decision.reason not in _LOUD:
        return NOTHING  # the message about the storm is kept up to date
    if target.instead_of and log is None and decision.reason is not None:
        return replace(decision, news=f"sent here because {target.instead_of} refuses it")
    return decision


def muting(target: Target, incident: Incident, silences: Iterable[Silence], now: datetime) -> tuple[datetime, str] | None:
    """Return until when, and why, `target` is not notified of `incident`; None when nothing mutes it."""
    silence = muted_by(routing_labels(incident), silences, now)
    if silence is not None:
        remark = f" ({silence.comment})" if silence.comment else ""
        return silence.ends_at, f"silenced until {moment(silence.ends_at)}{remark}"
    why = mute_reason(target.hours, now)
    return (hours_change_at(target.hours, now), why) if why else None


def _muted(
    target: Target, incident: Incident, planned: Delivery, silences: Iterable[Silence], now: datetime
) -> PlannedEntry | None:
    """Return the muted entry, planned again when the silence or time interval ends; None when nothing mutes it."""
    muted = muting(target, incident, silences, now)
    return None if muted is None else PlannedEntry(replace(planned, state=DeliveryState.MUTED, why=muted[1]), muted[0])


def _held_for_good(
    policy: Policy, incident: Incident, entry: Delivery | None, known_at: datetime
) -> tuple[DeliveryState, str] | None:
    """Return (state, reason) of an entry that gets no notification of its own; None when it gets one.

    These are backfill, and incidents that were muted until they were over.
    """
    if is_backfill(incident, known_at, policy.max_age_s):
        age = lasting(timedelta(seconds=policy.max_age_s))
        return DeliveryState.BACKFILL, f"older than {age} when it was first seen: sent in a digest only"
    if entry is not None and entry.state is DeliveryState.MUTED and incident.status in _ENDED:
        return DeliveryState.MUTED, "it was over before it could be sent: it was muted until then"
    return None


def _entry(
    decision: Decision,
    target: Target,
    incident: Incident,
    log: NotificationLog | None,
    entry: Delivery | None,
    known_at: datetime,
) -> Delivery | None:
    if decision.reason is None or decision.at is None:
        return None
    marks = log.marks if log is not None else {}
    fresh = Delivery(
        target.receiver, incident.id, incident.revision, decision.reason, known_at, decision.at, news=decision.news, marks=marks
    )
    if entry is None or entry.state in (DeliveryState.DELIVERED, DeliveryState.MUTED, DeliveryState.BACKFILL):
        return fresh
    if entry.state is DeliveryState.FOLDED:
        changes = {"revision": fresh.revision, "reason": fresh.reason, "news": fresh.news}
        return replace(entry, **changes) if is_minor(incident) or is_storm(entry.digest) else fresh
    if entry.state is DeliveryState.REJECTED:
        return _after_rejection(fresh, entry, target.timings)
    due_at = max(decision.at, entry.due_at) if entry.state is DeliveryState.RETRY_LATER else decision.at
    return replace(
        entry, revision=fresh.revision, reason=fresh.reason, news=fresh.news, due_at=due_at, marks=entry.marks or marks
    )


def _after_rejection(fresh: Delivery, entry: Delivery, timings: Timings) -> Delivery:
    """Return the rejected entry while there is nothing new to send, else `fresh`, due `group_interval` after the rejection."""
    if (fresh.revision, fresh.reason) == (entry.revision, entry.reason) or entry.attempt_at is None:
        return entry
    due_at = max(fresh.due_at, entry.attempt_at + timedelta(seconds=timings.group_interval_s))
    return replace(fresh, due_at=due_at, marks=entry.marks or fresh.marks)
