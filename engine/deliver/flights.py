"""Attempts under way: one at a time for a lane, each wherever it is begun; what came of them is handed over when asked for."""

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
Begin = Callable[[Work], None]


class Flight(Struct, frozen=True):
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


def lane_of(entry: Delivery, receiver: Receiver) -> str:
    """Return what is told one thing after the other: a receiver, or all that share its channel."""
    return receiver.lane or f" {entry.receiver}"  # no channel begins with a blank


class Flights:
    """What is under way. Used by one thread; only the attempts themselves may be on others, as `begin` has it.

    Args:
        over: called whenever one is over, wherever that was.
    """

    def __init__(self, begin: Begin = at_once, over: Callable[[], None] = lambda: None) -> None:
        self._begin, self._over = begin, over
        self._flying: dict[str, Flight] = {}
        self._pairs: set[Pair] = set()
        self._landed: SimpleQueue[tuple[str, Flight, Receipt]] = SimpleQueue()

    def __bool__(self) -> bool:
        """Tell whether anything is under way, or over and not yet taken up."""
        return bool(self._flying)

    def holds(self, lane: str) -> bool:
        """Tell whether `lane` is busy."""
        return lane in self._flying

    def has(self, pair: Pair) -> bool:
        """Tell whether a receiver is being told of an incident, by itself or in a digest."""
        return pair in self._pairs

    def launch(self, lane: str, flight: Flight, deliver: Callable[[], Receipt]) -> None:
        """Begin an attempt on a lane that is free. `deliver` must not raise."""

        def work() -> None:
            self._landed.put((lane, flight, deliver()))
            self._over()

        self._flying[lane] = flight
        self._pairs.update(flight.pairs)
        self._begin(work)

    def abandon(self, pair: Pair) -> None:
        """Wait no longer for the attempt that is under way for `pair`, if there is one: its lane is free from then on."""
        for lane, flight in list(self._flying.items()):
            if flight.pair == pair:
                self._end(lane)

    def landed(self) -> Iterator[tuple[Flight, Receipt, bool]]:
        """Yield what is over, each once, and whether it was abandoned before; its lane is free from then on."""
        while True:
            try:
                lane, flight, receipt = self._landed.get_nowait()
            except Empty:
                return
            is_late = self._flying.get(lane) is not flight
            if not is_late:
                self._end(lane)
            yield flight, receipt, is_late

    def _end(self, lane: str) -> None:
        self._pairs.difference_update(self._flying.pop(lane).pairs)
