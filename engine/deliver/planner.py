"""Keeps the outbox in line with the incidents, the silences and the time. Looks only at what has changed or is due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime

from engine.deliver.agenda import Agenda
from engine.deliver.book import Book, entries_by_digest, is_held
from engine.deliver.digests import (
    FLOOD_INTERVAL,
    GATHER,
    Digest,
    digest_id,
    flood_id,
    folded,
    is_digest,
    plan_digest,
    plan_flood,
    told_in_digest,
)
from engine.deliver.planning import WAITING, Policy, plan_delivery
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, DeliveryState
from engine.model.routes import Silence
from engine.route import Candidate, holds, routing_labels
from engine.store import Store
from engine.store.outbox import Pair

_ENDED = ("resolved", "retracted", "merged")


class Planner:
    """The incidents somebody may have to be told of, and the digests on their way. Used by one thread, but for `policy`.

    Args:
        is_sent: whether a receiver is being told of an incident now, by itself or in a digest: that is not changed meanwhile.
    """

    def __init__(self, store: Store, book: Book, policy: Policy, is_sent: Callable[[Pair], bool]) -> None:
        self._store, self._outbox, self._book = store, store.outbox(), book
        self._policy, self._is_sent = policy, is_sent
        self._all_anew = True
        self._incidents: dict[str, Incident] = {}
        self._parts: defaultdict[str, set[str]] = defaultdict(set)  # survivor: the incidents merged into it
        self._digests: dict[Pair, Digest] = {}
        self._flooded_at: dict[str, datetime] = {}  # when a receiver was last told of a flood
        self._silences: tuple[Silence, ...] = ()
        self._active: tuple[Silence, ...] = ()
        self._mark = 0
        self._agenda = Agenda()
        self._changed: dict[str, None] = {}  # incidents, in order
        # receivers whose digests may have changed
        self._regrouped: set[str] = {*book.held, *(receiver for receiver, _ in book.waiting)}

    @property
    def policy(self) -> Policy:
        """What the configuration says of telling. Another one holds from the next step on; may be set from any thread."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy, self._all_anew = policy, True

    def step(self, now: datetime) -> None:
        """Bring the outbox up to date. Raises StoreError; what could not be done is done by the next step."""
        self._take_changes()
        self._take_silences(now)
        if self._all_anew:
            self._all_anew = False
            self.touch(self._incidents)
        self.touch(self._agenda.due(now))
        self._plan(now)
        self._plan_digests(now)

    def touch(self, incidents: Iterable[str]) -> None:
        """Let these incidents be looked at by the next step, with those that they became part of."""
        for id_ in incidents:
            self._changed[id_] = None
            incident = self._incidents.get(id_)
            if incident is not None and incident.merged_into:
                self._changed[incident.merged_into] = None

    def restart_waits(self) -> None:
        """Look at everything again: the clock was put right, and with it the times in the book."""
        self._all_anew = True
        self._flooded_at.clear()

    def subject(self, entry: Delivery) -> Incident | None:
        """Return what the entry tells of, None when that is not known (any more)."""
        planned = self._digests.get((entry.receiver, entry.incident))
        return planned.incident if planned is not None else self._incidents.get(entry.incident)

    def digest(self, entry: Delivery) -> Digest | None:
        """Return the digest whose entry this is, None when it is none."""
        return self._digests.get((entry.receiver, entry.incident))

    def settled(self, entry: Delivery, planned: Digest | None, now: datetime) -> None:
        """Take up that an attempt is over which left `entry`; `planned` is the digest that was told, if it was one."""
        self.touch([entry.incident] if planned is None else [member.incident for member in planned.members])
        if planned is not None:
            self._regrouped.add(entry.receiver)
            if entry.state is DeliveryState.DELIVERED and planned.members[0].state is DeliveryState.FOLDED:
                self._flooded_at[entry.receiver] = now

    def fold(self, receiver: str, candidates: Iterable[Candidate], now: datetime) -> None:
        """Let a digest tell of `candidates` of one receiver: the one that waits, or a new one. Raises StoreError."""
        id_ = self._open_flood(receiver) or flood_id(now)
        self._regrouped.add(receiver)
        self._book.change([folded(each.entry, id_) for each in candidates])
        self._plan_digests(now)

    def _open_flood(self, receiver: str) -> str | None:
        for id_ in entries_by_digest(self._book.held[receiver]):
            if not self._is_sent((receiver, id_)):
                return id_
        return None

    def _take_changes(self) -> None:
        mark, incidents = self._store.changed_since(self._mark)
        self._mark = mark
        for incident in incidents:
            self._incidents[incident.id] = incident
            if incident.merged_into:
                self._parts[incident.merged_into].add(incident.id)
        self.touch(incident.id for incident in incidents)

    def _take_silences(self, now: datetime) -> None:
        """Read the silences, and touch the incidents that one of those fits which have begun, ended or changed."""
        self._silences = tuple(self._outbox.silences(now))
        active = tuple(silence for silence in self._silences if silence.starts_at <= now)
        changed = [silence for silence in {*active, *self._active} if (silence in active) is not (silence in self._active)]
        self._active = active
        if changed:
            labels = {id_: routing_labels(incident) for id_, incident in self._incidents.items()}
            self.touch([id_ for id_, own in labels.items() if any(holds(each.matchers, own) for each in changed)])

    def _plan(self, now: datetime) -> None:
        put: list[Delivery] = []
        drop: list[Delivery] = []
        again: dict[str, datetime | None] = {}
        over: list[str] = []
        for id_ in self._changed:
            incident = self._incidents.get(id_)
            if incident is None:
                continue
            wanted, again[id_] = self._plan_incident(incident, put, drop, now)
            if incident.status in _ENDED and not wanted:
                over.append(id_)  # and everybody knows
        self._regrouped.update(entry.receiver for entry in (*put, *drop) if is_held(entry) or self._is_held(entry))
        self._book.change(put, drop)
        self._changed.clear()
        for id_, at in again.items():
            self._agenda.put(id_, at)
        for id_ in over:
            del self._incidents[id_]

    def _plan_incident(
        self, incident: Incident, put: list[Delivery], drop: list[Delivery], now: datetime
    ) -> tuple[bool, datetime | None]:
        """Note what is to be stored and taken out for one incident; return whether something is still to be told, and when to
        look again."""
        informed = self._book.informed((incident.id, *self._parts.get(incident.id, ())))
        is_wanted, times = False, []
        for target in self._policy.targets(incident, informed, lambda receiver: self._refuses(receiver, incident.id)):
            pair = (target.receiver, incident.id)
            if self._is_sent(pair):
                is_wanted = True
                continue
            entry = self._book.entry(pair)
            planned = plan_delivery(self._policy, target, incident, self._book.told(pair), entry, self._silences, now)
            if planned.again_at is not None:
                times.append(planned.again_at)
            if planned.entry is None and entry is not None:
                drop.append(entry)
            elif planned.entry is not None and planned.entry != entry:
                put.append(planned.entry)
            is_wanted = is_wanted or planned.again_at is not None or _is_to_be_told(planned.entry)
        return is_wanted, min(times, default=None)

    def _is_held(self, entry: Delivery) -> bool:
        before = self._book.entry((entry.receiver, entry.incident))
        return before is not None and is_held(before)

    def _refuses(self, receiver: str, incident: str) -> bool:
        entry = self._book.entry((receiver, incident))
        return entry is not None and entry.state is DeliveryState.REJECTED

    def _plan_digests(self, now: datetime) -> None:
        for receiver in sorted(self._regrouped):
            before = {pair: each for pair, each in self._digests.items() if pair[0] == receiver}
            for pair in before:
                if not self._is_sent(pair):
                    del self._digests[pair]
            self._plan_backfill(receiver, now)
            self._plan_floods(receiver, now)
            self._drop_empty(receiver)
        self._regrouped.clear()

    def _plan_backfill(self, receiver: str, now: datetime) -> None:
        held = self._book.held[receiver].values()
        members = [each for each in held if each.state is DeliveryState.BACKFILL and each.incident in self._incidents]
        pair = (receiver, digest_id(members)) if members else None
        if pair is None or pair in self._digests:
            return
        told = self._book.told(pair)
        if told is not None:  # the process ended before it was written down whom the digest told of
            self._book.change(told_in_digest(members, told, now))
            return
        self._keep(pair, plan_digest(self._policy, members, self._incidents, self._book.entry(pair), now))

    def _plan_floods(self, receiver: str, now: datetime) -> None:
        for id_, entries in entries_by_digest(self._book.held[receiver]).items():
            pair, members = (receiver, id_), [each for each in entries if each.incident in self._incidents]
            if members and pair not in self._digests:
                self._keep(pair, plan_flood(members, self._incidents, self._book.entry(pair), self._flood_due(receiver, now)))

    def _flood_due(self, receiver: str, now: datetime) -> datetime:
        if self._policy.hurry:
            return now
        last = self._flooded_at.get(receiver)
        return now + GATHER if last is None else max(now + GATHER, last + FLOOD_INTERVAL)

    def _keep(self, pair: Pair, planned: Digest) -> None:
        if planned.entry != self._book.entry(pair):
            self._book.change([planned.entry])
        self._digests[pair] = planned

    def _drop_empty(self, receiver: str) -> None:
        """Take out the entries of digests whose members have all gone."""
        waiting = [each for pair, each in self._book.waiting.items() if pair[0] == receiver and is_digest(each)]
        self._book.change((), [each for each in waiting if (receiver, each.incident) not in self._digests])


def _is_to_be_told(entry: Delivery | None) -> bool:
    return entry is not None and (entry.state in WAITING or is_held(entry))
