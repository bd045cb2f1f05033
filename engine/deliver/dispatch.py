"""Sends what is due: the most severe first, one at a time for a rate limit key, floods in a digest; takes up the outcome."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from engine.clock import SteadyClock
from engine.deliver.book import Book
from engine.deliver.digests import settlements
from engine.deliver.in_flight import InFlight, InFlightSet, rate_limit_key_of
from engine.deliver.pacing import Pace
from engine.deliver.planner import Planner
from engine.deliver.receipts import delivered, expired, settled
from engine.deliver.resuming import is_expired
from engine.model.notifications import Delivery, DeliveryState, Notification, Receipt, Settlement
from engine.ports import Receiver
from engine.route import Candidate, is_minor, knows, overflow, urgency
from engine.route.floods import SINGLES_S


class DeliveryNotice(Struct, frozen=True):
    """An attempt that is over: what was sent to whom, and how it went."""

    entry: Delivery
    receipt: Receipt


class Dispatch:
    """Sends for one notifier; on its thread but for the attempts themselves, which may be on others.

    Args:
        on_notice: called after each attempt is taken up.
    """

    def __init__(
        self,
        book: Book,
        receivers: Mapping[str, Receiver],
        clock: SteadyClock,
        pace: Pace,
        flights: InFlightSet,
        on_notice: Callable[[DeliveryNotice], None],
    ) -> None:
        self._book, self._receivers, self._clock = book, receivers, clock
        self._pace, self.flights = pace, flights
        self._on_notice = on_notice
        self._singles: defaultdict[str, deque[datetime]] = defaultdict(deque)  # when minor incidents were sent by themselves

    def send(self, planner: Planner) -> int:
        """Begin every attempt that can be begun now; return how many were told meanwhile. Raises StoreError."""
        self._fold(planner)
        rate_limit_keys: defaultdict[str, list[Candidate]] = defaultdict(list)
        for candidate in self._due(planner):
            rate_limit_keys[rate_limit_key_of(candidate.entry, self._receivers[candidate.entry.receiver])].append(candidate)
        deliveries = 0
        for rate_limit_key, candidates in rate_limit_keys.items():
            for candidate in sorted(candidates, key=urgency):
                if self._is_busy(rate_limit_key, candidate.entry):
                    break
                if self._book.entry((candidate.entry.receiver, candidate.entry.incident)) is candidate.entry:
                    self._launch(rate_limit_key, candidate, planner)
                    deliveries += self.land(planner)
        return deliveries

    def land(self, planner: Planner) -> int:
        """Take up the attempts that are over; return how many were told by them."""
        deliveries = 0
        for flight, receipt, is_late in self.flights.landed():
            if is_late and not self._is_still_of_use(flight, receipt):
                continue
            self._pace.spend(self._receivers[flight.entry.receiver].rate_limit_key, receipt.messages, self._clock.now())
            self._settle(flight, receipt, planner)
            deliveries += receipt.state is DeliveryState.DELIVERED
        return deliveries

    def give_up(self, planner: Planner) -> None:
        """Let go of the attempts whose lease has expired: the rate limit key is free again, and the entry is unsure."""
        now = self._clock.now()
        for pair, entry in list(self._book.sending.items()):
            if is_expired(entry, now):
                self.flights.abandon(pair)
                ended = expired(entry, now)
                self._book.settle([Settlement(ended, now)])
                planner.settled(ended, planner.digest(ended), now)
                self._on_notice(DeliveryNotice(ended, Receipt(ended.state, ended.why, unsure=True)))

    def restart_waits(self) -> None:
        """Forget times by the clock that was wrong."""
        self._pace.forget()
        self._singles.clear()

    def wait_s(self, planner: Planner) -> float | None:
        """Return how long until something that waits can be sent, None when nothing waits or only for what is under way."""
        now, waits = self._clock.now(), []
        for entry in self._book.waiting.values():
            receiver = self._receivers.get(entry.receiver)
            if receiver is None or self.flights.holds(rate_limit_key_of(entry, receiver)) or planner.subject(entry) is None:
                continue
            waits.append(max((entry.due_at - now).total_seconds(), self._pace.wait_s(receiver.rate_limit_key, now)))
        return min(waits, default=None)

    def _due(self, planner: Planner) -> list[Candidate]:
        now = self._clock.now()
        due = [each for each in self._book.waiting.values() if each.due_at <= now and each.receiver in self._receivers]
        return [Candidate(each, incident) for each in due if (incident := planner.subject(each)) is not None]

    def _fold(self, planner: Planner) -> None:
        """Let digests tell what is too much to be told one by one; a receiver that needs no pacing is never too slow for it."""
        now, receivers = self._clock.now(), defaultdict[str, list[Candidate]](list)
        for candidate in self._due(planner):
            if self._receivers[candidate.entry.receiver].rate_limit_key:
                receivers[candidate.entry.receiver].append(candidate)
        for receiver, candidates in receivers.items():
            if chosen := overflow(candidates, self._recent(receiver, now)):
                planner.fold(receiver, chosen, now)

    def _recent(self, receiver: str, now: datetime) -> int:
        times = self._singles[receiver]
        while times and times[0] <= now - timedelta(seconds=SINGLES_S):
            times.popleft()
        return len(times)

    def _is_busy(self, rate_limit_key: str, entry: Delivery) -> bool:
        receiver = self._receivers[entry.receiver]
        return self.flights.holds(rate_limit_key) or self._pace.wait_s(receiver.rate_limit_key, self._clock.now()) > 0

    def _launch(self, rate_limit_key: str, candidate: Candidate, planner: Planner) -> None:
        entry, incident, now = candidate.entry, candidate.incident, self._clock.now()
        started = replace(entry, state=DeliveryState.SENDING, attempts=entry.attempts + 1, attempt_at=now)
        self._book.change([started])
        planned = planner.digest(entry)
        if planned is None and is_minor(incident) and not entry.marks:
            self._singles[entry.receiver].append(now)
        links = planner.policy.links.of(incident) if planned is None else planner.policy.links.of_all()
        what = Notification(incident, entry.reason, entry.news, entry.marks, entry.unsure_since, links)
        self.flights.launch(
            rate_limit_key, InFlight(started, incident, planned), partial(delivered, self._receivers[entry.receiver], what)
        )

    def _is_still_of_use(self, flight: InFlight, receipt: Receipt) -> bool:
        """Say whether an answer that came after its attempt was given up tells what nobody else will."""
        is_waiting = self._book.waiting.get(flight.pair) is not None and not self.flights.has(flight.pair)
        return receipt.state is DeliveryState.DELIVERED and flight.digest is None and is_waiting

    def _settle(self, flight: InFlight, receipt: Receipt, planner: Planner) -> None:
        now = self._clock.now()
        entry = settled(flight.entry, receipt, now)
        told = knows(flight.incident, now, entry.marks) if entry.state is DeliveryState.DELIVERED else None
        outcomes = [Settlement(entry, now, told)]
        if flight.digest is not None:
            outcomes += settlements(flight.digest, entry, now, entry.receiver in planner.policy.fallbacks)
        self._book.settle(outcomes)
        planner.settled(entry, flight.digest, now)
        self._on_notice(DeliveryNotice(entry, receipt))
