"""Attempts under way: one at a time for a rate limit key; what came of them is handed over when asked for."""

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
    """An attempt: the entry as it was sent, what it tells of, and the digest that it is, if it is one."""

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


def at_once(work: Work) -> None:
    """Do `work` here and now."""
    work()


def on_a_thread(work: Work) -> None:
    """Do `work` on a thread of its own, which keeps no process alive."""
    threading.Thread(target=work, name="sender", daemon=True).start()


def rate_limit_key_of(entry: Delivery, receiver: Receiver) -> str:
    """Return what is told one thing after the other: a receiver, or all that share its channel."""
    return receiver.rate_limit_key or f" {entry.receiver}"  # no channel begins with a blank


class InFlightSet:
    """What is under way. Used by one thread; only the attempts themselves may be on others, as `begin` has it.

    Args:
        over: called whenever one is over, wherever that was.
    """

    def __init__(self, begin: StartWork = at_once, over: Callable[[], None] = lambda: None) -> None:
        self._begin, self._over = begin, over
        self._flying: dict[str, InFlight] = {}
        self._pairs: set[Pair] = set()
        self._landed: SimpleQueue[tuple[str, InFlight, Receipt]] = SimpleQueue()

    def __bool__(self) -> bool:
        """Tell whether anything is under way, or over and not yet taken up."""
        return bool(self._flying)

    def holds(self, rate_limit_key: str) -> bool:
        """Tell whether `rate_limit_key` is busy."""
        return rate_limit_key in self._flying

    def has(self, pair: Pair) -> bool:
        """Tell whether a receiver is being told of an incident, by itself or in a digest."""
        return pair in self._pairs

    def launch(self, rate_limit_key: str, flight: InFlight, deliver: Callable[[], Receipt]) -> None:
        """Begin an attempt on a rate limit key that is free. `deliver` must not raise."""

        def work() -> None:
            self._landed.put((rate_limit_key, flight, deliver()))
            self._over()

        self._flying[rate_limit_key] = flight
        self._pairs.update(flight.pairs)
        self._begin(work)

    def abandon(self, pair: Pair) -> None:
        """Wait no longer for the attempt under way for `pair`, if there is one: its rate limit key is free from then on."""
        for rate_limit_key, flight in list(self._flying.items()):
            if flight.pair == pair:
                self._end(rate_limit_key)

    def landed(self) -> Iterator[tuple[InFlight, Receipt, bool]]:
        """Yield what is over, each once, and whether it was abandoned before; its rate limit key is free from then on."""
        while True:
            try:
                rate_limit_key, flight, receipt = self._landed.get_nowait()
            except Empty:
                return
            is_late = self._flying.get(rate_limit_key) is not flight
            if not is_late:
                self._end(rate_limit_key)
            yield flight, receipt, is_late

    def _end(self, rate_limit_key: str) -> None:
        self._pairs.difference_update(self._flying.pop(rate_limit_key).pairs)
