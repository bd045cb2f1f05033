"""The outbox in memory: every entry, and what each receiver knows, written through to the store.

How an attempt went is known here only, so it is taken up in memory first and kept until the store has it. A process that ends
before that leaves the entry as `sending`, and the next one takes it up as unsure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from engine.deliver.planning import WAITING
from engine.deliver.resuming import entry_moved, resumed, told_moved
from engine.errors import StoreError
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Settlement
from engine.store import Outbox
from engine.store.outbox import Pair

_AT_ONCE = 500  # entries of one transaction, which the job has to wait for


class Book:
    """Entries and knowledge by receiver and incident. Used by one thread.

    `waiting`: the entries that are to be sent; `held`: by receiver, those that a digest is to tell of.

    Args:
        now: the time at which what an earlier process left is taken up (see resuming.py).
    """

    def __init__(self, outbox: Outbox, now: datetime) -> None:
        self._outbox = outbox
        self.waiting: dict[Pair, Delivery] = {}
        self.sending: dict[Pair, Delivery] = {}
        self.held: defaultdict[str, dict[Pair, Delivery]] = defaultdict(dict)
        self._entries: dict[Pair, Delivery] = {}
        self._told: dict[Pair, NotificationLog] = {}
        self._receivers: defaultdict[str, set[str]] = defaultdict(set)  # of an incident: who was told of it
        self._unwritten: list[Settlement] = []
        self.ahead = timedelta(0)
        entries, told = outbox.entries(), outbox.notification_logs()
        times = [*(each.known_at for each in entries.values()), *(each.at for each in told.values())]
        self.ahead = max([timedelta(0), *(at - now for at in times)])
        for entry in entries.values():
            self._enter(resumed(entry, now))
        for pair, each in told.items():
            self._learn(pair, each if each.at <= now else told_moved(each, now - each.at))

    @property
    def unwritten(self) -> bool:
        """Whether outcomes wait for the store."""
        return bool(self._unwritten)

    @property
    def backlog(self) -> int:
        """How many entries wait to be sent, or to be known as sent."""
        return len(self.waiting) + len(self.sending)

    def entry(self, pair: Pair) -> Delivery | None:
        """Return the entry of a receiver and an incident, None when there is none."""
        return self._entries.get(pair)

    def told(self, pair: Pair) -> NotificationLog | None:
        """Return what a receiver knows of an incident, None when it was never told."""
        return self._told.get(pair)

    def informed(self, incidents: Iterable[str]) -> set[str]:
        """Return the receivers that were told of one of these incidents."""
        return {name for id_ in incidents if id_ in self._receivers for name in self._receivers[id_]}

    def change(self, put: Sequence[Delivery], drop: Collection[Delivery] = ()) -> None:
        """Store entries and take others out. Raises StoreError; what is not in the store then is not in memory."""
        self.flush()
        for at in range(0, len(put), _AT_ONCE):
            part = put[at : at + _AT_ONCE]
            self._outbox.change(part)
            for entry in part:
                self._enter(entry)
        if drop:
            self._outbox.change((), drop)
            for entry in drop:
                self._remove((entry.receiver, entry.incident))

    def settle(self, settlements: Iterable[Settlement]) -> None:
        """Take up how attempts went: in memory in any case, and in the store now or with the next `flush`. Never raises."""
        for settlement in settlements:
            pair = (settlement.entry.receiver, settlement.entry.incident)
            self._enter(settlement.entry)
            if settlement.told is not None:
                self._learn(pair, settlement.told)
            self._unwritten.append(settlement)
        try:
            self.flush()
        except StoreError:
            return  # the next flush says so

    def flush(self) -> None:
        """Write the outcomes that the store does not have yet, all of them or none. Raises StoreError."""
        if self._unwritten:
            self._outbox.settle(self._unwritten)
            self._unwritten.clear()

    def move(self, by: timedelta) -> None:
        """Move every time in memory: the clock was put right `by` so much, and waits are not to be longer or shorter for it."""
        for entry in list(self._entries.values()):
            self._enter(entry_moved(entry, by))
        self._told = {pair: told_moved(each, by) for pair, each in self._told.items()}

    def _learn(self, pair: Pair, told: NotificationLog) -> None:
        self._told[pair] = told
        self._receivers[pair[1]].add(pair[0])

    def _enter(self, entry: Delivery) -> None:
        pair = (entry.receiver, entry.incident)
        self._remove(pair)
        self._entries[pair] = entry
        if entry.state in WAITING:
            self.waiting[pair] = entry
        elif entry.state is DeliveryState.SENDING:
            self.sending[pair] = entry
        elif is_held(entry):
            self.held[entry.receiver][pair] = entry

    def _remove(self, pair: Pair) -> None:
        self._entries.pop(pair, None)
        for index in (self.waiting, self.sending, self.held[pair[0]]):
            index.pop(pair, None)


def is_held(entry: Delivery) -> bool:
    """Say whether a digest is still to tell of `entry`."""
    return entry.state is DeliveryState.FOLDED or (entry.state is DeliveryState.BACKFILL and entry.attempt_at is None)


def entries_by_digest(held: Mapping[Pair, Delivery]) -> Mapping[str, list[Delivery]]:
    """Return the folded entries by the id of their digest."""
    groups: defaultdict[str, list[Delivery]] = defaultdict(list)
    for entry in held.values():
        if entry.state is DeliveryState.FOLDED:
            groups[entry.digest].append(entry)
    return groups
