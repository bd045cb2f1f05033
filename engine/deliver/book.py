"""The outbox in memory: every entry and the notification log of each receiver, written through to the store.

The outcome of an attempt exists only here, so it is recorded in memory first and kept until the store has it. A process that
ends before that leaves the entry as `sending`, and the next process resumes it as unsure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from engine.deliver.planning import WAITING
from engine.deliver.resuming import resumed, shift_entry, shift_log
from engine.errors import StoreError
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Settlement
from engine.store import Outbox
from engine.store.outbox import Pair

_AT_ONCE = 500  # entries in one transaction, for which the job has to wait


class Book:
    """Entries and notification logs by receiver and incident. Used by one thread.

    `waiting`: the entries to be sent; `sending`: those in flight; `held`: by receiver, those that wait for a digest; `ahead`:
    how far the latest time in the store is after `now`; `storms`: by receiver and storm, the incidents reported in it.

    Args:
        now: the current time, to resume the entries of an earlier process (see resuming.py).
    """

    def __init__(self, outbox: Outbox, now: datetime) -> None:
        self._outbox = outbox
        self.waiting: dict[Pair, Delivery] = {}
        self.sending: dict[Pair, Delivery] = {}
        self.held: defaultdict[str, dict[Pair, Delivery]] = defaultdict(dict)
        self._entries: dict[Pair, Delivery] = {}
        self._logs: dict[Pair, NotificationLog] = {}
        self.storms: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._notified: defaultdict[str, set[str]] = defaultdict(set)  # incident -> receivers
        self._pending: list[Settlement] = []
        self.ahead = timedelta(0)
        entries, logs = outbox.entries(), outbox.notification_logs()
        times = [*(entry.known_at for entry in entries.values()), *(log.at for log in logs.values())]
        self.ahead = max([timedelta(0), *(at - now for at in times)])
        for entry in entries.values():
            self._put_entry(resumed(entry, now))
        for pair, log in logs.items():
            self._put_log(pair, log if log.at <= now else shift_log(log, now - log.at))

    @property
    def has_pending(self) -> bool:
        """Whether there are outcomes that the store does not have yet."""
        return bool(self._pending)

    @property
    def backlog(self) -> int:
        """The number of entries that wait or are in flight."""
        return len(self.waiting) + len(self.sending)

    def entry(self, pair: Pair) -> Delivery | None:
        """Return the entry of a receiver and an incident; None when there is none."""
        return self._entries.get(pair)

    def log(self, pair: Pair) -> NotificationLog | None:
        """Return the last notification of an incident to a receiver; None when there was none."""
        return self._logs.get(pair)

    def notified_receivers(self, incidents: Iterable[str]) -> set[str]:
        """Return the receivers that were notified of one of these incidents."""
        return {name for id_ in incidents if id_ in self._notified for name in self._notified[id_]}

    def change(self, put: Sequence[Delivery], drop: Collection[Delivery] = ()) -> None:
        """Store the entries `put` and delete `drop`. Raises StoreError; memory then has no entry that the store has not."""
        self.flush()
        for start in range(0, len(put), _AT_ONCE):
            entries = put[start : start + _AT_ONCE]
            self._outbox.change(entries)
            for entry in entries:
                self._put_entry(entry)
        if drop:
            self._outbox.change((), drop)
            for entry in drop:
                self._remove((entry.receiver, entry.incident))

    def settle(self, settlements: Iterable[Settlement]) -> None:
        """Record outcomes of attempts: in memory now, in the store now or with the next `flush`. Never raises."""
        for settlement in settlements:
            pair = (settlement.entry.receiver, settlement.entry.incident)
            self._put_entry(settlement.entry)
            if settlement.log is not None:
                self._put_log(pair, settlement.log)
            self._pending.append(settlement)
        try:
            self.flush()
        except StoreError:
            return  # the next flush raises it

    def flush(self) -> None:
        """Write the outcomes that the store does not have yet, all or none of them. Raises StoreError."""
        if self._pending:
            self._outbox.settle(self._pending)
            self._pending.clear()

    def shift(self, by: timedelta) -> None:
        """Shift every time in memory by `by`, after the clock was corrected by that much, so that waits keep their length."""
        for entry in list(self._entries.values()):
            self._put_entry(shift_entry(entry, by))
        self._logs = {pair: shift_log(log, by) for pair, log in self._logs.items()}

    def _put_log(self, pair: Pair, log: NotificationLog) -> None:
        self._logs[pair] = log
        self._notified[pair[1]].add(pair[0])
        if log.storm:
            self.storms[pair[0]][log.storm].add(pair[1])

    def _put_entry(self, entry: Delivery) -> None:
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
    """Return whether `entry` waits for a digest."""
    return entry.state is DeliveryState.FOLDED or (entry.state is DeliveryState.BACKFILL and entry.attempt_at is None)


def entries_by_digest(held: Mapping[Pair, Delivery]) -> Mapping[str, list[Delivery]]:
    """Return the folded entries by the id of their digest."""
    groups: defaultdict[str, list[Delivery]] = defaultdict(list)
    for entry in held.values():
        if entry.state is DeliveryState.FOLDED:
            groups[entry.digest].append(entry)
    return groups
