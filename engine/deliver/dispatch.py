"""Send due entries: the most severe first, one at a time for each rate limit key, floods in a digest; record the outcome."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from engine.clock import SteadyClock
from engine.deliver.book import Book
from engine.deliver.digests import settlements
from engine.deliver.in_flight import InFlight, InFlightSet, Refresh, receiver_key
from engine.deliver.pacing import Pace
from engine.deliver.planner import Planner
from engine.deliver.receipts import delivered, expired, settled
from engine.deliver.refreshing import Refresher
from engine.deliver.resuming import is_expired
from engine.model.incidents import DAWN
from engine.model.links import LinkTargets
from engine.model.notifications import AUDIT_RULE, Delivery, DeliveryState, Notification, Reason, Receipt, Settlement
from engine.model.prose import localised
from engine.ports import Receiver
from engine.route import Candidate, held_until, is_minor, notification_log, overflow, storm_keys, storming, urgency
from engine.route.floods import SINGLES_S
from engine.route.storms import STORM_S


def with_links(notification: Notification, targets: LinkTargets, *, is_digest: bool) -> Notification:
    """Return `notification` with the links of its incident and evidence; a digest links to the list of its members only."""
    if is_digest:
        is_of_risks = notification.incident.rule == AUDIT_RULE
        return replace(notification, links=targets.of_risks() if is_of_risks else targets.of_all())
    incident = notification.incident
    return replace(notification, links=targets.of(incident), lines=targets.of_lines(incident), query=targets.query(incident))


class DeliveryNotice(Struct, frozen=True):
    """A finished attempt: the entry after it, and the receipt."""

    entry: Delivery
    receipt: Receipt


class Dispatch:
    """Sends the entries of one notifier. Runs on its thread; only the attempts themselves may run on others.

    Args:
        on_notice: called after the outcome of an attempt is recorded.
        leads: whether this is still the only notifier.
    """

    def __init__(
        self,
        book: Book,
        receivers: Mapping[str, Receiver],
        clock: SteadyClock,
        pace: Pace,
        in_flight: InFlightSet,
        on_notice: Callable[[DeliveryNotice], None],
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._book, self._receivers, self._clock = book, receivers, clock
        self._pace, self.in_flight = pace, in_flight
        self._on_notice, self._leads = on_notice, leads
        self._refresher = Refresher(in_flight)
        self._remarks: list[str] = []
        self._opened: defaultdict[str, deque[tuple[datetime, tuple[str, str]]]] = defaultdict(deque)  # own messages: storm keys
        self._singles: defaultdict[str, deque[datetime]] = defaultdict(deque)  # times of minor incidents' own messages

    def use(self, receivers: Mapping[str, Receiver]) -> None:
        """Send to `receivers` from now on; attempts in flight end as they began."""
        self._receivers = receivers

    def send(self, planner: Planner) -> int:
        """Start every attempt that can start now; return the number of deliveries meanwhile. None starts while another notifier
        may have taken over. Raises StoreError."""
        if not self._leads():
            return 0
        self._gather(planner)
        self._fold(planner)
        rate_limit_keys: defaultdict[str, list[Candidate]] = defaultdict(list)
        for candidate in self._due(planner):
            rate_limit_keys[self._key(candidate.entry)].append(candidate)
        deliveries = 0
        for rate_limit_key, candidates in rate_limit_keys.items():
            for candidate in sorted(candidates, key=urgency):
                if self._is_busy(rate_limit_key, candidate.entry):
                    break
                if self._book.entry((candidate.entry.receiver, candidate.entry.incident)) is candidate.entry:
                    self._start(rate_limit_key, candidate, planner)
                    deliveries += self.take_finished(planner)
        return deliveries

    def take_finished(self, planner: Planner) -> int:
        """Record the outcomes of finished attempts; return how many were delivered."""
        deliveries = 0
        for flight, receipt, is_late in self.in_flight.finished():
            if isinstance(flight, Refresh):
                self._remarks += filter(None, [self._refresher.finished(flight, receipt)])
                continue
            if is_late and not self._is_late_success(flight, receipt):
                continue
            if (receiver := self._receivers.get(flight.entry.receiver)) is not None:  # else it is not configured any more
                self._pace.spend(receiver.rate_limit_key, receipt.messages, self._clock.now())
            self._settle(flight, receipt, planner)
            deliveries += receipt.state is DeliveryState.DELIVERED
        return deliveries

    def refresh(self, planner: Planner) -> None:
        """Send the open incidents again to receivers that forget them, where it is time."""
        self._refresher.step(planner, self._receivers, self._clock.now())

    def taken_remarks(self) -> list[str]:
        """Return the sentences about refreshes since the last call."""
        remarks, self._remarks = self._remarks, []
        return remarks

    def expire_attempts(self, planner: Planner) -> None:
        """Abandon the attempts whose lease has expired: frees their rate limit keys, and makes their entries unsure."""
        now = self._clock.now()
        for pair, entry in list(self._book.sending.items()):
            if is_expired(entry, now):
                self.in_flight.abandon(pair)
                expired_entry = expired(entry, now)
                self._book.settle([Settlement(expired_entry, now)])
                planner.on_settled(expired_entry, planner.digest(expired_entry), now)
                self._on_notice(DeliveryNotice(expired_entry, Receipt(expired_entry.state, expired_entry.why, unsure=True)))

    def restart_waits(self) -> None:
        """Forget the times of a clock that was wrong."""
        self._pace.forget()
        self._refresher.restart_waits()
        self._singles.clear()
        self._opened.clear()

    def wait_s(self, planner: Planner) -> float | None:
        """Return the seconds until a waiting entry can be sent; None when none waits, or only for attempts in flight."""
        now, waits = self._clock.now(), []
        held_until_of = self._holds(planner, now)
        for entry in self._book.waiting.values():
            receiver = self._receivers.get(entry.receiver)
            if (
                receiver is None
                or self.in_flight.holds(receiver_key(entry.receiver, receiver))
                or planner.incident_of(entry) is None
            ):
                continue
            due_at = max(entry.due_at, held_until_of(entry))
            waits.append(max((due_at - now).total_seconds(), self._pace.wait_s(receiver.rate_limit_key, now)))
        return min(waits, default=None)

    def _due(self, planner: Planner) -> list[Candidate]:
        now = self._clock.now()
        due = [entry for entry in self._book.waiting.values() if entry.due_at <= now and entry.receiver in self._receivers]
        held_until_of = self._holds(planner, now)
        ready = [entry for entry in due if held_until_of(entry) <= now]
        return [Candidate(entry, incident) for entry in ready if (incident := planner.incident_of(entry)) is not None]

    def _holds(self, planner: Planner, now: datetime) -> Callable[[Delivery], datetime]:
        """Return until when an entry is held back as its incident may become part of a storm (see held_until)."""
        policy = planner.policy
        gatherers = policy.gatherers if policy.storm_size and not policy.hurry else ()
        counts = {receiver: self._recent_keys(receiver, now) for receiver in gatherers if self._opened[receiver]}

        def held(entry: Delivery) -> datetime:
            recent, incident = counts.get(entry.receiver), planner.incident_of(entry)
            return DAWN if not recent or incident is None else held_until(Candidate(entry, incident), recent)

        return held

    def _gather(self, planner: Planner) -> None:
        """Put storms into one message each, where people read it."""
        now, policy = self._clock.now(), planner.policy
        for receiver in sorted(policy.gatherers) if policy.storm_size else ():
            entries = [entry for entry in self._book.waiting.values() if entry.receiver == receiver]
            waiting = [Candidate(entry, incident) for entry in entries if (incident := planner.incident_of(entry)) is not None]
            if waiting:
                recent, open_storms = self._recent_keys(receiver, now), planner.storms.open(receiver, now)
                for key, candidates in storming(waiting, recent, policy.storm_size, open_storms, now).items():
                    planner.fold_storm(receiver, key, candidates, now)

    def _recent_keys(self, receiver: str, now: datetime) -> Counter[str]:
        opened = self._opened[receiver]
        while opened and opened[0][0] <= now - timedelta(seconds=STORM_S):
            opened.popleft()
        return Counter(key for _, keys in opened for key in keys)

    def _fold(self, planner: Planner) -> None:
        """Put floods into digests; receivers without a rate limit key need none, as they are never too slow."""
        now, receivers = self._clock.now(), defaultdict[str, list[Candidate]](list)
        for candidate in self._due(planner):
            if self._receivers[candidate.entry.receiver].rate_limit_key:
                receivers[candidate.entry.receiver].append(candidate)
        for receiver, candidates in receivers.items():
            if overflowing := overflow(candidates, self._recent(receiver, now)):
                planner.fold(receiver, overflowing, now)

    def _key(self, entry: Delivery) -> str:
        return receiver_key(entry.receiver, self._receivers[entry.receiver])

    def _recent(self, receiver: str, now: datetime) -> int:
        times = self._singles[receiver]
        while times and times[0] <= now - timedelta(seconds=SINGLES_S):
            times.popleft()
        return len(times)

    def _is_busy(self, rate_limit_key: str, entry: Delivery) -> bool:
        receiver = self._receivers[entry.receiver]
        return self.in_flight.holds(rate_limit_key) or self._pace.wait_s(receiver.rate_limit_key, self._clock.now()) > 0

    def _start(self, rate_limit_key: str, candidate: Candidate, planner: Planner) -> None:
        entry, incident, now = candidate.entry, candidate.incident, self._clock.now()
        changes = planner.changes(entry, now)
        attempt = replace(entry, state=DeliveryState.SENDING, attempts=entry.attempts + 1, attempt_at=now)
        self._book.change([attempt])
        digest = planner.digest(entry)
        if digest is None and is_minor(incident) and not entry.marks and self._receivers[entry.receiver].rate_limit_key:
            self._singles[entry.receiver].append(now)
        is_gathered = planner.policy.storm_size and entry.receiver in planner.policy.gatherers
        if digest is None and entry.reason is Reason.OPENED and is_gathered:
            self._opened[entry.receiver].append((now, storm_keys(incident)))
        members = digest.table if digest is not None else ()
        log = self._book.log((entry.receiver, entry.incident))
        last_at = log.at if log is not None else None
        attempted = (incident, entry.reason, entry.news, entry.marks, entry.unsure_since, last_at)
        notification = Notification(*attempted, changes=changes, members=members)
        notification = localised(notification, planner.policy.words_of(entry.receiver))
        notification = with_links(notification, planner.policy.links, is_digest=digest is not None)
        self.in_flight.start(
            rate_limit_key,
            InFlight(attempt, incident, digest),
            partial(delivered, self._receivers[entry.receiver], notification, self._leads),
        )

    def _is_late_success(self, flight: InFlight, receipt: Receipt) -> bool:
        """Return whether the receipt of an abandoned attempt is a delivery that spares the next attempt."""
        is_waiting = self._book.waiting.get(flight.pair) is not None and not self.in_flight.has(flight.pair)
        return receipt.state is DeliveryState.DELIVERED and flight.digest is None and is_waiting

    def _settle(self, flight: InFlight, receipt: Receipt, planner: Planner) -> None:
        now = self._clock.now()
        entry = settled(flight.entry, receipt, now)
        earlier = self._book.log((entry.receiver, entry.incident))
        storm = earlier.storm if earlier is not None else ""
        is_delivered = entry.state is DeliveryState.DELIVERED
        log = notification_log(flight.incident, now, entry.marks, storm=storm) if is_delivered else None
        outcomes = [Settlement(entry, now, log)]
        if flight.digest is not None:
            outcomes += settlements(flight.digest, entry, now, entry.receiver in planner.policy.fallbacks)
        self._book.settle(outcomes)
        planner.on_settled(entry, flight.digest, now)
        self._on_notice(DeliveryNotice(entry, receipt))
