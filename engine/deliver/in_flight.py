"""Attempts in flight: one at a time for each rate limit key; their receipts are collected by polling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

from msgspec import Struct

from engine.deliver.digests import Digest
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, Receipt
from engine.ports import Receiver
from engine.store.outbox import Pair

Work = Callable[[], None]
StartWork = Callable[[Work], None]


class InFlight(Struct, frozen=True):
    """An attempt: the entry as sent, its incident, and the digest if it sends one."""

    entry: Delivery
    incident: Incident
    digest: Digest | None = None

    @property
    def pair(self) -> Pair:
        """The receiver and the incident."""
        return self.entry.receiver, self.entry.incident

    @property
    def pairs(self) -> Iterator[Pair]:
        """The receiver, with the incident and with every member of the digest."""
        yield self.pair
        for member in self.digest.members if self.digest is not None else ():
            yield member.receiver, member.incident


class Refresh(Struct, frozen=True):
    """An attempt to send the open incidents to `receiver` again: to one that forgets them otherwise."""

    receiver: str

    @property
    def pair(self) -> Pair:
        """The receiver, and no incident."""
        return self.receiver, ""

    @property
    def pairs(self) -> Iterator[Pair]:
        """Nothing: the notifications of the incidents are planned as ever."""
        yield from ()


def at_once(work: Work) -> None:
    """Do `work` now, on this thread."""
    work()


def on_a_thread(work: Work) -> None:
    """Do `work` on a daemon thread of its own."""
    threading.Thread(target=work, name="sender", daemon=True).start()


def receiver_key(name: str, receiver: Receiver) -> str:
    """Return the key within which messages are sent one after the other: the receiver's rate limit key, or its name."""
    return receiver.rate_limit_key or f" {name}"  # no channel begins with a blank


class InFlightSet:
    """The attempts in flight. Used by one thread; only the attempts themselves may run on others.

    Args:
        start_work: runs an attempt, on this thread or another.
        on_finished: called after each attempt, on the attempt's thread.
    """

    def __init__(self, start_work: StartWork = at_once, on_finished: Callable[[], None] = lambda: None) -> None:
        self._start_work, self._on_finished = start_work, on_finished
        self._attempts: dict[str, InFlight | Refresh] = {}
        self._pairs: set[Pair] = set()
        self._finished: SimpleQueue[tuple[str, InFlight | Refresh, Receipt]] = SimpleQueue()

    def __bool__(self) -> bool:
        """Return whether any attempt is in flight, or finished and not collected yet."""
        return bool(self._attempts)

    def holds(self, rate_limit_key: str) -> bool:
        """Return whether an attempt with `rate_limit_key` is in flight."""
        return rate_limit_key in self._attempts

    def has(self, pair: Pair) -> bool:
        """Return whether an incident is being sent to a receiver, by itself or in a digest."""
        return pair in self._pairs

    def start(self, rate_limit_key: str, flight: InFlight | Refresh, deliver: Callable[[], Receipt]) -> None:
        """Start an attempt; its rate limit key must be free. `deliver` must not raise."""

        def work() -> None:
            self._finished.put((rate_limit_key, flight, deliver()))
            self._on_finished()

        self._attempts[rate_limit_key] = flight
        self._pairs.update(flight.pairs)
        self._start_work(work)

    def abandon(self, pair: Pair) -> None:
        """Stop waiting for the attempt in flight for `pair`, if there is one, and free its rate limit key."""
        for rate_limit_key, flight in list(self._attempts.items()):
            if flight.pair == pair:
                self._end(rate_limit_key)

    def finished(self) -> Iterator[tuple[InFlight | Refresh, Receipt, bool]]:
        """Yield (attempt, receipt, whether it was abandoned) for each finished attempt, once; frees its rate limit key."""
        while True:
            try:
                rate_limit_key, flight, receipt = self._finished.get_nowait()
            except Empty:
                return
            is_late = self._attempts.get(rate_limit_key) is not flight
            if not is_late:
                self._end(rate_limit_key)
            yield flight, receipt, is_late

    def _end(self, rate_limit_key: str) -> None:
        self._pairs.difference_update(self._attempts.pop(rate_limit_key).pairs)
