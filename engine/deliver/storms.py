"""Plan the messages about storms: one for each storm and receiver, kept up to date until all its incidents are over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from engine.deliver.book import Book, entries_by_digest
from engine.deliver.digests import Digest, folded
from engine.deliver.planning import WAITING, Policy, muting
from engine.model.incidents import DAWN, Incident
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason
from engine.model.routes import Silence, Timings
from engine.route import Candidate, Decision, decide_storm, in_order, is_of, is_storm, storm_digest, storm_id
from engine.route.storms import JOIN
from engine.store.outbox import Pair

_MUTABLE = frozenset((Reason.ESCALATED, Reason.REPEATED, Reason.DIGEST))
_OVER = frozenset(("resolved", "retracted", "merged"))
_ALONE = WAITING | {DeliveryState.SENDING, DeliveryState.MUTED}


class Storms:
    """The storms of one notifier, as its book and its `incidents` have them.

    Args:
        is_in_flight: whether the message about a storm is being sent.
    """

    def __init__(self, book: Book, incidents: Mapping[str, Incident], is_in_flight: Callable[[Pair], bool]) -> None:
        self._book, self._incidents, self._is_in_flight = book, incidents, is_in_flight
        self._muted_until: dict[Pair, datetime] = {}

    def open(self, receiver: str, now: datetime) -> list[str]:
        """Return the ids of the storms that new incidents join, the latest first."""
        ids = sorted(
            {*self._book.storms[receiver], *self._waiting(receiver)}, key=lambda id_: id_.rpartition("-")[2], reverse=True
        )
        return [id_ for id_ in ids if not self._is_final(receiver, id_) and self._joined_at(receiver, id_) + JOIN > now]

    def fold(self, receiver: str, key: str, candidates: Iterable[Candidate], now: datetime) -> None:
        """Put `candidates` into the open storm with `key`, or into a new one. Raises StoreError."""
        id_ = next((id_ for id_ in self.open(receiver, now) if is_of(id_, key)), None) or storm_id(key, now)
        self._book.change([folded(candidate.entry, id_) for candidate in candidates])

    def is_live(self, pair: Pair) -> bool:
        """Return whether an incident is part of a storm whose end the receiver was not notified of."""
        log = self._book.log(pair)
        return log is not None and bool(log.storm) and not self._is_final(pair[0], log.storm)

    def plan(self, receiver: str, policy: Policy, silences: Sequence[Silence], now: datetime) -> Iterator[tuple[Pair, Digest]]:
        """Yield the message about each storm of `receiver` that is to be sent, now or later. While all its open incidents are
        muted it says only what is over."""
        waiting = self._waiting(receiver)
        for id_ in sorted({*self._book.storms[receiver], *waiting}):
            pair, members = (receiver, id_), waiting.get(id_, [])
            self._muted_until.pop(pair, None)
            if self._is_in_flight(pair) or (self._is_final(receiver, id_) and not members):
                continue
            digest = self._digest(pair, members, policy, silences, now)
            if digest is not None:
                yield pair, digest

    def due(self, policy: Policy, now: datetime) -> Iterator[str]:
        """Yield the receivers of storms that are open for `repeat_interval` since their last message, or not muted any more."""
        yield from {receiver for (receiver, _), until in self._muted_until.items() if until <= now}
        for receiver, storms in self._book.storms.items():
            for id_ in storms:
                log, entry = self._book.log((receiver, id_)), self._book.entry((receiver, id_))
                is_waiting = entry is not None and entry.state in WAITING
                interval_s = policy.tree.timings.repeat_interval_s
                if log is None or log.status != "open" or not interval_s or is_waiting or (receiver, id_) in self._muted_until:
                    continue
                if (now - log.at).total_seconds() >= interval_s:
                    yield receiver

    def _digest(
        self, pair: Pair, members: list[Delivery], policy: Policy, silences: Sequence[Silence], now: datetime
    ) -> Digest | None:
        receiver, id_ = pair
        parts = {*self._book.storms[receiver].get(id_, ()), *(member.incident for member in members)}
        incidents = [self._incidents[part] for part in sorted(parts) if part in self._incidents]
        settled = [member for member in members if member.incident in self._incidents]
        if not incidents:
            return None
        apart = {incident.id for incident in incidents if self._is_apart((receiver, incident.id))}
        summary, log, entry = storm_digest(id_, incidents, apart), self._book.log(pair), self._book.entry(pair)
        timings = Timings(0.0, 0.0, policy.tree.timings.repeat_interval_s) if policy.hurry else policy.tree.timings
        decision = decide_storm(log, summary, len(settled), timings, now, edits=receiver in policy.edits)
        if decision.reason is Reason.REPEATED and not decision.is_due(now):
            decision = Decision()
        if decision.reason in _MUTABLE and (until := _muted_until(receiver, incidents, policy, silences, now)) is not None:
            self._muted_until[pair], decision = until, Decision()
        if decision.reason is None and entry is not None and entry.unsure_since is not None:
            decision = Decision(Reason.UPDATED, now)
        if decision.reason is None:
            return None
        planned = _entry(pair, summary, decision, log, entry, settled, now if policy.hurry else None)
        table, settling = tuple(in_order(incidents)), tuple(self._incidents[member.incident] for member in settled)
        return Digest(summary, planned, tuple(settled), settling, table)

    def _waiting(self, receiver: str) -> Mapping[str, list[Delivery]]:
        entries = entries_by_digest(self._book.held[receiver])
        return {id_: members for id_, members in entries.items() if is_storm(id_)}

    def _is_apart(self, pair: Pair) -> bool:
        """Return whether an incident of a storm has a message of its own, or is due one that may be muted."""
        log, entry = self._book.log(pair), self._book.entry(pair)
        return (log is not None and not log.digest) or (entry is not None and entry.state in _ALONE)

    def _is_final(self, receiver: str, id: str) -> bool:
        log = self._book.log((receiver, id))
        return log is not None and log.status == "resolved"

    def _joined_at(self, receiver: str, id: str) -> datetime:
        logs = (self._book.log((receiver, incident)) for incident in self._book.storms[receiver].get(id, ()))
        times = [log.at for log in logs if log is not None and log.digest]
        return max([*times, *(member.known_at for member in self._waiting(receiver).get(id, ()))], default=DAWN)


def _muted_until(
    receiver: str, incidents: Iterable[Incident], policy: Policy, silences: Sequence[Silence], now: datetime
) -> datetime | None:
    """Return when the first of the open ones of `incidents` is not muted any more; None when one of them, or none, is open and
    not muted."""
    ends = []
    for incident in incidents:
        if incident.status in _OVER:
            continue
        target = next(target for target in policy.targets(incident, (receiver,)) if target.receiver == receiver)
        muted = muting(target, incident, silences, now)
        if muted is None:
            return None
        ends.append(muted[0])
    return min(ends, default=None)


def _entry(
    pair: Pair,
    summary: Incident,
    decision: Decision,
    log: NotificationLog | None,
    entry: Delivery | None,
    members: list[Delivery],
    now: datetime | None,
) -> Delivery:
    """Return the entry of a storm: the one in the outbox, brought up to date, or a new one. `now` is set when nothing waits."""
    assert decision.reason is not None and decision.at is not None
    retries = [member.due_at for member in members if member.state is DeliveryState.RETRY_LATER]
    due_at = now or max([decision.at, *retries])
    known_at = min([member.known_at for member in members], default=due_at)
    marks = log.marks if log is not None else {}
    fresh = Delivery(*pair, summary.revision, decision.reason, known_at, due_at, news=decision.news, marks=marks)
    if entry is None or entry.state is DeliveryState.DELIVERED:
        return fresh
    if entry.state is DeliveryState.REJECTED:
        return entry if entry.revision == fresh.revision else fresh
    changes = {"revision": fresh.revision, "reason": fresh.reason, "news": fresh.news}
    is_retry = entry.state is DeliveryState.RETRY_LATER
    return replace(entry, **changes, due_at=max(entry.due_at, due_at) if is_retry else due_at, marks=entry.marks or marks)
