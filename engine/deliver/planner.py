"""Keep the outbox up to date with incidents, silences and time. Looks only at incidents that have changed or are due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from engine.deliver.agenda import Agenda
from engine.deliver.audit_digests import AuditDigests
from engine.deliver.book import Book, entries_by_digest, is_held
from engine.deliver.digests import (
    FLOOD_INTERVAL,
    FLOOD_PREFIX,
    GATHER,
    Digest,
    digest_id,
    flood_id,
    folded,
    is_digest,
    notified_members,
    plan_digest,
    plan_flood,
)
from engine.deliver.planning import WAITING, Policy, plan_delivery
from engine.deliver.storms import Storms
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, DeliveryState, IncidentChange, NotificationLog
from engine.model.proofs import PROOF_RULE
from engine.model.routes import Silence
from engine.route import Candidate, holds, is_storm, recorded_changes, routing_labels
from engine.store import Store
from engine.store.outbox import Pair

_ENDED = ("resolved", "retracted", "merged")


class Planner:
    """The incidents that may still need notifications, and the planned digests. Used by one thread, except for `policy`.

    Args:
        is_in_flight: whether an incident is being sent to a receiver, by itself or in a digest; its entry stays as it is then.
    """

    def __init__(self, store: Store, book: Book, policy: Policy, is_in_flight: Callable[[Pair], bool]) -> None:
        self._store, self._outbox, self._book = store, store.outbox(), book
        self._policy, self._is_in_flight = policy, is_in_flight
        self._replan_all = True
        self._incidents: dict[str, Incident] = {}
        self._merged_into: defaultdict[str, set[str]] = defaultdict(set)  # surviving incident -> those merged into it
        self._digests: dict[Pair, Digest] = {}
        self.storms = Storms(book, self._incidents, is_in_flight)
        self._audits = AuditDigests(store, book)
        self._flooded_at: dict[str, datetime] = {}  # receiver -> time of its last flood digest
        self._silences: tuple[Silence, ...] = ()
        self._active: tuple[Silence, ...] = ()
        self._mark, self._act_mark = 0, 0
        self._agenda = Agenda()
        self._changed: dict[str, None] = {}  # incidents, in order
        # receivers whose digests may have changed
        self._changed_digests: set[str] = {*book.held, *(receiver for receiver, _ in book.waiting)}

    @property
    def policy(self) -> Policy:
        """The policy of the configuration. A new one takes effect with the next step; may be set from any thread."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy, self._replan_all = policy, True

    def step(self, now: datetime) -> None:
        """Bring the outbox up to date. Raises StoreError; the next step does the rest."""
        self._take_changes(now)
        self._take_silences(now)
        if self._replan_all:
            self._replan_all = False
            self.touch(self._incidents)
        self.touch(self._agenda.due(now))
        self._plan(now)
        self._changed_digests.update(self.storms.due(self._policy, now))
        self._changed_digests.update(self._audits.look(None if self._policy.hurry else self._policy.audit, now))
        self._plan_digests(now)

    def touch(self, incidents: Iterable[str]) -> None:
        """Mark incidents, and those that they were merged into, to be planned by the next step."""
        for id_ in incidents:
            self._changed[id_] = None
            incident = self._incidents.get(id_)
            if incident is not None and incident.merged_into:
                self._changed[incident.merged_into] = None

    def restart_waits(self) -> None:
        """Plan everything again, after the clock and the times in the book were corrected."""
        self._replan_all = True
        self._flooded_at.clear()
        self._audits.restart_waits()

    def incident_of(self, entry: Delivery) -> Incident | None:
        """Return the incident of an entry, for a digest its summary incident; None when it is not (or no longer) loaded."""
        digest = self._digests.get((entry.receiver, entry.incident))
        return digest.incident if digest is not None else self._incidents.get(entry.incident)

    def digest(self, entry: Delivery) -> Digest | None:
        """Return the digest whose outbox entry is `entry`; None when it is not the entry of a digest."""
        return self._digests.get((entry.receiver, entry.incident))

    def changes(self, entry: Delivery, now: datetime) -> tuple[IncidentChange, ...]:
        """Return the changes of the incident since the last delivery, for a receiver that keeps a record; () for others. Raises
        StoreError."""
        if entry.receiver not in self._policy.records:
            return ()
        log, incident = self._book.log((entry.receiver, entry.incident)), self._incidents.get(entry.incident)
        revisions = self._store.later_revisions(entry.incident, log.revision if log else 0)
        acted_on = [incident] if incident is not None and log is not None and incident.revision == log.revision else []
        return recorded_changes(log, chain(acted_on, revisions), now)

    def reported(self, receiver: str) -> Iterator[tuple[Incident, NotificationLog]]:
        """Yield the incidents that `receiver` was notified of by themselves, and not of their end, each with its log."""
        for incident in self._incidents.values():
            log = self._book.log((receiver, incident.id))
            if log is not None and not log.digest and log.status not in _ENDED:
                yield incident, log

    def on_settled(self, entry: Delivery, digest: Digest | None, now: datetime) -> None:
        """Plan again after an attempt that left `entry`; `digest` is the digest that was sent, if it was one."""
        incidents = [] if digest is None else [*digest.incidents, *digest.table]
        self.touch([entry.incident] if digest is None else [incident.id for incident in incidents])
        if digest is not None:
            self._changed_digests.add(entry.receiver)
            if entry.state is DeliveryState.DELIVERED and entry.incident.startswith(FLOOD_PREFIX):
                self._flooded_at[entry.receiver] = now

    def fold(self, receiver: str, candidates: Iterable[Candidate], now: datetime) -> None:
        """Put `candidates` of one receiver into its waiting flood digest, or into a new one. Raises StoreError."""
        id_ = self._open_flood(receiver) or flood_id(now)
        self._changed_digests.add(receiver)
        self._book.change([folded(candidate.entry, id_) for candidate in candidates])
        self._plan_digests(now)

    def fold_storm(self, receiver: str, key: str, candidates: Iterable[Candidate], now: datetime) -> None:
        """Put `candidates` of one receiver into its open storm with `key`, or into a new one. Raises StoreError."""
        self.storms.fold(receiver, key, candidates, now)
        self._changed_digests.add(receiver)
        self._plan_digests(now)

    def _open_flood(self, receiver: str) -> str | None:
        for id_ in entries_by_digest(self._book.held[receiver]):
            if not is_storm(id_) and not self._is_in_flight((receiver, id_)):
                return id_
        return None

    def _take_changes(self, now: datetime) -> None:
        mark, incidents = self._store.changed_since(self._mark)
        act_mark, acted_on = self._store.acts().changed_since(self._act_mark)
        self._mark, self._act_mark = mark, act_mark
        if incidents and (explained := self._store.explained_rules()) is not None:
            self.policy = replace(self.policy, explained=explained)
        incidents = (*incidents, *acted_on)
        if any(incident.rule == PROOF_RULE for incident in incidents):
            self.policy = replace(self.policy, proofs=self._store.proofs().receivers(now))
        for incident in incidents:
            self._incidents[incident.id] = incident
            if incident.merged_into:
                self._merged_into[incident.merged_into].add(incident.id)
        self.touch(incident.id for incident in incidents)

    def _take_silences(self, now: datetime) -> None:
        """Read the silences, and touch the incidents that fit a silence that has begun, ended or changed."""
        self._silences = tuple(self._outbox.silences(now))
        active = tuple(silence for silence in self._silences if silence.starts_at <= now)
        changed = [silence for silence in {*active, *self._active} if (silence in active) is not (silence in self._active)]
        self._active = active
        if changed:
            labels = {id_: routing_labels(incident) for id_, incident in self._incidents.items()}
            self.touch(
                [id_ for id_, own_labels in labels.items() if any(holds(silence.matchers, own_labels) for silence in changed)]
            )

    def _plan(self, now: datetime) -> None:
        put: list[Delivery] = []
        drop: list[Delivery] = []
        next_times: dict[str, datetime | None] = {}
        finished: list[str] = []
        for id_ in self._changed:
            incident = self._incidents.get(id_)
            if incident is None:
                continue
            is_pending, next_times[id_] = self._plan_incident(incident, put, drop, now)
            live_storms = [name for name in self._book.notified_receivers((id_,)) if self.storms.is_live((name, id_))]
            self._changed_digests.update(live_storms)
            is_pending = is_pending or bool(live_storms)
            if incident.status in _ENDED and not is_pending:
                finished.append(id_)  # every receiver has been notified
        self._changed_digests.update(entry.receiver for entry in (*put, *drop) if is_held(entry) or self._is_held(entry))
        self._book.change(put, drop)
        self._changed.clear()
        for id_, at in next_times.items():
            self._agenda.put(id_, at)
        for id_ in finished:
            del self._incidents[id_]

    def _plan_incident(
        self, incident: Incident, put: list[Delivery], drop: list[Delivery], now: datetime
    ) -> tuple[bool, datetime | None]:
        """Add the entries of one incident to `put` and `drop`.

        Return whether a notification is still pending, and when to plan the incident again (None: when it changes).
        """
        notified_receivers = self._book.notified_receivers((incident.id, *self._merged_into.get(incident.id, ())))
        is_pending, times = False, []
        for target in self._policy.targets(incident, notified_receivers, lambda receiver: self._refuses(receiver, incident.id)):
            pair = (target.receiver, incident.id)
            if self._is_in_flight(pair):
                is_pending = True
                continue
            entry = self._book.entry(pair)
            plan = plan_delivery(self._policy, target, incident, self._book.log(pair), entry, self._silences, now)
            if plan.next_at is not None:
                times.append(plan.next_at)
            if plan.entry is None and entry is not None:
                drop.append(entry)
            elif plan.entry is not None and plan.entry != entry:
                put.append(plan.entry)
            is_pending = is_pending or plan.next_at is not None or _is_pending(plan.entry)
        return is_pending, min(times, default=None)

    def _is_held(self, entry: Delivery) -> bool:
        before = self._book.entry((entry.receiver, entry.incident))
        return before is not None and is_held(before)

    def _refuses(self, receiver: str, incident: str) -> bool:
        entry = self._book.entry((receiver, incident))
        return entry is not None and entry.state is DeliveryState.REJECTED

    def _plan_digests(self, now: datetime) -> None:
        for receiver in sorted(self._changed_digests):
            before = {pair: digest for pair, digest in self._digests.items() if pair[0] == receiver}
            for pair in before:
                if not self._is_in_flight(pair):
                    del self._digests[pair]
            self._plan_backfill(receiver, now)
            self._plan_floods(receiver, now)
            for pair, digest in chain(
                self.storms.plan(receiver, self._policy, self._silences, now), self._audits.planned(receiver)
            ):
                if not self._is_in_flight(pair):
                    self._store_digest(pair, digest)
            self._drop_empty(receiver)
        self._changed_digests.clear()

    def _plan_backfill(self, receiver: str, now: datetime) -> None:
        old_entries = [entry for entry in self._book.held[receiver].values() if entry.state is DeliveryState.BACKFILL]
        members = [entry for entry in old_entries if entry.incident in self._incidents]
        pair = (receiver, digest_id(members)) if members else None
        if pair is None or pair in self._digests:
            return
        log = self._book.log(pair)
        if log is not None:  # the process ended after sending the digest, before it recorded the members
            self._book.change(notified_members(members, log, now))
            return
        self._store_digest(pair, plan_digest(self._policy, members, self._incidents, self._book.entry(pair), now))

    def _plan_floods(self, receiver: str, now: datetime) -> None:
        for id_, entries in entries_by_digest(self._book.held[receiver]).items():
            pair, members = (receiver, id_), [entry for entry in entries if entry.incident in self._incidents]
            if members and pair not in self._digests and not is_storm(id_):
                self._store_digest(
                    pair, plan_flood(members, self._incidents, self._book.entry(pair), self._flood_due(receiver, now))
                )

    def _flood_due(self, receiver: str, now: datetime) -> datetime:
        if self._policy.hurry:
            return now
        last = self._flooded_at.get(receiver)
        return now + GATHER if last is None else max(now + GATHER, last + FLOOD_INTERVAL)

    def _store_digest(self, pair: Pair, digest: Digest) -> None:
        if digest.entry != self._book.entry(pair):
            self._book.change([digest.entry])
        self._digests[pair] = digest

    def _drop_empty(self, receiver: str) -> None:
        """Delete the entries of digests that have no members any more."""
        waiting = [entry for pair, entry in self._book.waiting.items() if pair[0] == receiver and is_digest(entry)]
        self._book.change((), [entry for entry in waiting if (receiver, entry.incident) not in self._digests])


def _is_pending(entry: Delivery | None) -> bool:
    return entry is not None and (entry.state in WAITING or is_held(entry))
