"""What becomes of an outbox entry when an incident, a silence or the time has moved on: decisions only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from engine.model.incidents import Incident
from engine.model.links import NO_LINKS, Links
from engine.model.notifications import Delivery, Reason, State, Told
from engine.model.routes import Route, Silence, Timings
from engine.route import Decision, Target, muted_by, needs_telling, route, routing_labels

RETRY_FIRST_S, RETRY_LONGEST_S = 5.0, 300.0


@dataclass(frozen=True, slots=True)
class Policy:
    """What a configuration says of telling.

    `edits`: receivers that keep one message true. `explained`: rules that others may turn out to be the cause of.
    `hurry`: waits count as elapsed (a run that ends); repetitions keep their interval. `links`: what leads on.
    """

    tree: Route
    edits: frozenset[str] = field(default_factory=frozenset)
    explained: frozenset[str] = field(default_factory=frozenset)
    hurry: bool = False
    links: Links = NO_LINKS

    def targets(self, incident: Incident, informed: Iterable[str]) -> tuple[Target, ...]:
        """Return who is told of `incident`: those it is routed to, and those who were told of it or of a part before."""
        routed = route(routing_labels(incident), self.tree)
        known = {target.receiver for target in routed}
        return (*routed, *(Target(name, self.tree.timings) for name in sorted(set(informed) - known)))


@dataclass(frozen=True, slots=True)
class Planned:
    """The entry as it should be (None: none is wanted), and when to look again if nothing changes before."""

    entry: Delivery | None = None
    again_at: datetime | None = None


def plan_delivery(
    policy: Policy,
    target: Target,
    incident: Incident,
    told: Told | None,
    entry: Delivery | None,
    silences: Iterable[Silence],
    now: datetime,
) -> Planned:
    """Return what should be in the outbox for `target` and `incident`.

    `entry` is what is there now. An attempt whose outcome is unknown is never forgotten, not even when there would be
    nothing to tell: what may be out there must be made true.
    """
    silence = muted_by(routing_labels(incident), silences, now)
    if silence is not None:
        return Planned(entry if entry is not None and entry.unsure_since is not None else None, silence.ends_at)
    known_at = entry.known_at if entry is not None and told is None else now
    decision = _decision(policy, target, incident, told, known_at)
    if decision.reason is None and entry is not None and entry.unsure_since is not None:
        decision = Decision(Reason.UPDATED, now)
    if decision.reason is None or (decision.reason is Reason.REPEATED and not decision.is_due(now)):
        return Planned(entry if entry is not None and entry.state is State.DELIVERED else None, decision.at)
    return Planned(_entry(decision, target, incident, told, entry, known_at))


def retried(entry: Delivery, after_s: float | None, now: datetime) -> datetime:
    """Return when a failed entry is tried again: when the receiver said, else after 5 s, doubling up to 5 min."""
    doubling = min(RETRY_LONGEST_S, RETRY_FIRST_S * 2.0 ** min(10, max(0, entry.attempts - 1)))
    return now + timedelta(seconds=doubling if after_s is None else after_s)


def _decision(policy: Policy, target: Target, incident: Incident, told: Told | None, known_at: datetime) -> Decision:
    timings, explained = target.timings, incident.rule in policy.explained
    if policy.hurry:
        timings, explained = Timings(0.0, 0.0, target.timings.repeat_interval_s), False
    return needs_telling(told, incident, timings, known_at, explained=explained, edits=target.receiver in policy.edits)


def _entry(
    decision: Decision, target: Target, incident: Incident, told: Told | None, entry: Delivery | None, known_at: datetime
) -> Delivery | None:
    if decision.reason is None or decision.at is None:
        return None
    marks = told.marks if told is not None else {}
    fresh = Delivery(
        target.receiver, incident.id, incident.revision, decision.reason, known_at, decision.at, news=decision.news, marks=marks
    )
    if entry is None or entry.state is State.DELIVERED:
        return fresh
    if entry.state is State.REJECTED:
        return _after_rejection(fresh, entry, target.timings)
    due_at = max(decision.at, entry.due_at) if entry.state is State.RETRY_LATER else decision.at
    return replace(
        entry, revision=fresh.revision, reason=fresh.reason, news=fresh.news, due_at=due_at, marks=entry.marks or marks
    )


def _after_rejection(fresh: Delivery, entry: Delivery, timings: Timings) -> Delivery:
    """Return the rejected entry while there is nothing newer to say, else a fresh one that keeps its distance."""
    if (fresh.revision, fresh.reason) == (entry.revision, entry.reason) or entry.attempt_at is None:
        return entry
    due_at = max(fresh.due_at, entry.attempt_at + timedelta(seconds=timings.group_interval_s))
    return replace(fresh, due_at=due_at, marks=entry.marks or fresh.marks)
