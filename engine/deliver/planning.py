"""What becomes of an outbox entry when an incident, a silence or the time has moved on: decisions only."""

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
from engine.model.routes import Route, Silence, Timings
from engine.route import (
    Decision,
    Target,
    hours_change_at,
    is_backfill,
    is_minor,
    mute_reason,
    muted_by,
    needs_telling,
    route,
    routing_labels,
)

RETRY_FIRST_S, RETRY_LONGEST_S = 5.0, 300.0
RETRY_AT_LEAST_S, RETRY_AT_MOST_S = 1.0, 3600.0  # whatever a receiver asks for
WAITING = frozenset((DeliveryState.QUEUED, DeliveryState.RETRY_LATER))
_ENDED = frozenset(("resolved", "retracted", "merged"))


class Policy(Struct, frozen=True):
    """What a configuration says of telling.

    `edits`: receivers that keep one message true. `explained`: rules that others may turn out to be the cause of.
    `hurry`: waits count as elapsed (a run that ends); repetitions keep their interval. `links`: what leads on.
    `max_age_s`: what is older when it is first seen is told in a digest only; 0: nothing is too old. `fallbacks`: who is told
    instead of a receiver that refuses; they lead to no circle.
    """

    tree: Route
    edits: frozenset[str] = field(default_factory=frozenset)
    explained: frozenset[str] = field(default_factory=frozenset)
    hurry: bool = False
    links: LinkTargets = NO_LINKS
    max_age_s: float = 0.0
    fallbacks: Mapping[str, str] = field(default_factory=dict)

    def targets(
        self, incident: Incident, informed: Iterable[str], refuses: Callable[[str], bool] = lambda receiver: False
    ) -> tuple[Target, ...]:
        """Return who is told of `incident`, each receiver once: those it is routed to, instead of one that `refuses` it its
        fallback as well, and those who were told of it or of a part before."""
        routed = {target.receiver: target for target in route(routing_labels(incident), self.tree)}
        for target in list(routed.values()):
            for name in self._instead_of(target.receiver, refuses):
                routed.setdefault(name, replace(target, receiver=name, instead_of=target.receiver))
        others = (Target(name, self.tree.timings) for name in sorted(set(informed) - routed.keys()))
        return (*routed.values(), *others)

    def _instead_of(self, receiver: str, refuses: Callable[[str], bool]) -> Iterator[str]:
        while refuses(receiver) and receiver in self.fallbacks:
            receiver = self.fallbacks[receiver]
            yield receiver


class Planned(Struct, frozen=True):
    """The entry as it should be (None: none is wanted), and when to look again if nothing changes before."""

    entry: Delivery | None = None
    again_at: datetime | None = None


def plan_delivery(
    policy: Policy,
    target: Target,
    incident: Incident,
    told: NotificationLog | None,
    entry: Delivery | None,
    silences: Iterable[Silence],
    now: datetime,
) -> Planned:
    """Return what should be in the outbox for `target` and `incident`.

    `entry` is what is there now. An attempt whose outcome is unknown is never forgotten, not even when there would be
    nothing to tell: what may be out there must be made true.
    """
    known_at = _known_at(policy, incident, told, entry, now)
    decision = _decision(policy, target, incident, told, known_at)
    if decision.reason is None and entry is not None and entry.unsure_since is not None:
        decision = Decision(Reason.UPDATED, now)
    if decision.reason is None or (decision.reason is Reason.REPEATED and not decision.is_due(now)):
        return Planned(entry if entry is not None and entry.state is DeliveryState.DELIVERED else None, decision.at)
    wanted = _entry(decision, target, incident, told, entry, known_at)
    if wanted is None or wanted.unsure_since is not None:
        return Planned(wanted)
    muted = _muted(target, incident, wanted, silences, now)
    if muted is not None:
        return muted
    if told is None and (held := _held_for_good(policy, incident, entry, known_at)):
        return Planned(replace(wanted, state=held[0], why=held[1], attempt_at=entry.attempt_at if entry else None))
    may_be_muted = target.hours and (wanted.state in WAITING or wanted.state is DeliveryState.FOLDED)
    return Planned(wanted, hours_change_at(target.hours, now) if may_be_muted else None)


def retried(entry: Delivery, after_s: float | None, now: datetime) -> datetime:
    """Return when a failed entry is tried again: when the receiver said, in bounds, else after 5 s, doubling up to 5 min."""
    doubling = min(RETRY_LONGEST_S, RETRY_FIRST_S * 2.0 ** min(10, max(0, entry.attempts - 1)))
    if after_s is None or isnan(after_s):
        return now + timedelta(seconds=doubling)
    return now + timedelta(seconds=min(RETRY_AT_MOST_S, max(RETRY_AT_LEAST_S, after_s)))


def _known_at(
    policy: Policy, incident: Incident, told: NotificationLog | None, entry: Delivery | None, now: datetime
) -> datetime:
    """Return when it was first seen that there is something to tell; what was backfill and has a new sign is new."""
    if entry is None or told is not None:
        return now
    is_alive = entry.state is DeliveryState.BACKFILL and not is_backfill(incident, now, policy.max_age_s)
    return now if is_alive else entry.known_at


def _decision(policy: Policy, target: Target, incident: Incident, told: NotificationLog | None, known_at: datetime) -> Decision:
    timings, explained = target.timings, incident.rule in policy.explained
    if policy.hurry:
        timings, explained = Timings(0.0, 0.0, target.timings.repeat_interval_s), False
    if target.instead_of:  # the wait is over: another receiver was to be told already
        timings, explained = replace(timings, group_wait_s=0.0), False
    edits = target.receiver in policy.edits and not (told is not None and told.digest)
    decision = needs_telling(told, incident, timings, known_at, explained=explained, edits=edits)
    if target.instead_of and told is None and decision.reason is not None:
        return replace(decision, news=f"told here because {target.instead_of} refuses it")
    return decision


def _muted(target: Target, incident: Incident, wanted: Delivery, silences: Iterable[Silence], now: datetime) -> Planned | None:
    """Return the entry that waits for the end of what mutes it; None when nothing does."""
    silence = muted_by(routing_labels(incident), silences, now)
    if silence is not None:
        remark = f" ({silence.comment})" if silence.comment else ""
        why = f"silenced until {moment(silence.ends_at)}{remark}"
        return Planned(replace(wanted, state=DeliveryState.MUTED, why=why), silence.ends_at)
    if why := mute_reason(target.hours, now):
        return Planned(replace(wanted, state=DeliveryState.MUTED, why=why), hours_change_at(target.hours, now))
    return None


def _held_for_good(
    policy: Policy, incident: Incident, entry: Delivery | None, known_at: datetime
) -> tuple[DeliveryState, str] | None:
    """Return why an incident that nobody was told of is not told by itself, and as what its entry stays."""
    if is_backfill(incident, known_at, policy.max_age_s):
        age = lasting(timedelta(seconds=policy.max_age_s))
        return DeliveryState.BACKFILL, f"older than {age} when it was first seen: told in a digest only"
    if entry is not None and entry.state is DeliveryState.MUTED and incident.status in _ENDED:
        return DeliveryState.MUTED, "it was over before it could be told: it was muted until then"
    return None


def _entry(
    decision: Decision,
    target: Target,
    incident: Incident,
    told: NotificationLog | None,
    entry: Delivery | None,
    known_at: datetime,
) -> Delivery | None:
    if decision.reason is None or decision.at is None:
        return None
    marks = told.marks if told is not None else {}
    fresh = Delivery(
        target.receiver, incident.id, incident.revision, decision.reason, known_at, decision.at, news=decision.news, marks=marks
    )
    if entry is None or entry.state in (DeliveryState.DELIVERED, DeliveryState.MUTED, DeliveryState.BACKFILL):
        return fresh
    if entry.state is DeliveryState.FOLDED:
        changes = {"revision": fresh.revision, "reason": fresh.reason, "news": fresh.news}
        return replace(entry, **changes) if is_minor(incident) else fresh
    if entry.state is DeliveryState.REJECTED:
        return _after_rejection(fresh, entry, target.timings)
    due_at = max(decision.at, entry.due_at) if entry.state is DeliveryState.RETRY_LATER else decision.at
    return replace(
        entry, revision=fresh.revision, reason=fresh.reason, news=fresh.news, due_at=due_at, marks=entry.marks or marks
    )


def _after_rejection(fresh: Delivery, entry: Delivery, timings: Timings) -> Delivery:
    """Return the rejected entry while there is nothing newer to say, else a fresh one that keeps its distance."""
    if (fresh.revision, fresh.reason) == (entry.revision, entry.reason) or entry.attempt_at is None:
        return entry
    due_at = max(fresh.due_at, entry.attempt_at + timedelta(seconds=timings.group_interval_s))
    return replace(fresh, due_at=due_at, marks=entry.marks or fresh.marks)
