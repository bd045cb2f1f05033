"""The notifier's loop: take what changed in the store, plan the outbox, send what is due, record how it went.

Everything happens on the loop's own thread but the sending itself, which may take as long as a receiver takes to answer: that
is begun (flights.py), and what came of it is taken up when it is over.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from engine.deliver.digests import Digest, digest_id, plan_digest, told_in_digest, untold
from engine.deliver.flights import Begin, Flight, Flights, at_once, lane_of
from engine.deliver.pacing import INTERVAL_S, Pace
from engine.deliver.planning import WAITING, Policy, plan_delivery, retried
from engine.errors import StoreError
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, Notification, Reason, Receipt, State, Told
from engine.model.routes import Silence
from engine.ports import Receiver
from engine.route import Target, knows
from engine.store import Store
from engine.store.outbox import Pair

POLL_S = 1.0
PATIENCE_S = 60.0  # how long a run that ends goes on trying
LOOK_S = 0.02  # between two looks at whether an attempt is over, in a run that ends


class Notice(Struct, frozen=True):
    """An attempt that is over: what was sent to whom, and how it went."""

    entry: Delivery
    receipt: Receipt


def _ignore(notice: Notice) -> None:
    pass


class Notifier:
    """Tells `receivers` what `policy` wants told of the incidents in `store`. One at a time for a store.

    Args:
        clock: the time now, aware; waits and repetitions follow it, never the logs.
        on_notice: called after each attempt is recorded.
        interval_s: what a lane rests after a message.
        begin: how an attempt is begun: `at_once`, or `on_a_thread`, so that a receiver that hangs keeps no other waiting.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        receivers: Mapping[str, Receiver],
        clock: Callable[[], datetime],
        on_notice: Callable[[Notice], None] = _ignore,
        interval_s: float = INTERVAL_S,
        begin: Begin = at_once,
    ) -> None:
        self._store, self._outbox = store, store.outbox()
        self._policy, self._receivers = policy, receivers
        self._clock, self._on_notice = clock, on_notice
        self._news = threading.Event()
        self._pace, self._flights = Pace(interval_s), Flights(begin, self._news.set)
        self._told = dict(self._outbox.told())
        self._entries = {pair: self._resumed(entry) for pair, entry in self._outbox.entries().items()}
        self._incidents: dict[str, Incident] = {}
        self._digests: dict[Pair, Digest] = {}
        self._parts: defaultdict[str, set[str]] = defaultdict(set)  # survivor: the incidents merged into it
        self._silences: tuple[Silence, ...] = ()
        self._mark = 0
        self._again_at: datetime | None = None

    def step(self) -> int:
        """Do what is to be done now; return how many were told since the last step. Raises StoreError."""
        told, now = self._land(), self._clock()
        is_time = self._again_at is not None and self._again_at <= now
        if self._take_changes() | self._silences_changed(now) | is_time:
            self._plan(now)
        return told + self._send()

    def rules_changed(self, explained: frozenset[str]) -> None:
        """Let other rules be those that settle, from the next step on; may be called from any thread."""
        self._policy = replace(self._policy, explained=explained)

    def wake(self) -> None:
        """Let a loop that rests take its next step now; may be called from any thread."""
        self._news.set()

    def run(self, stop: threading.Event, say: Callable[[str], None]) -> None:
        """Step every second, when woken and when an attempt is over, until `stop` is set; once more then, and take up what is
        under way.

        What goes wrong is said once and tried again.
        """
        last, stopped = "", False
        while not stopped or self._flights:
            do = self._land if stopped else self.step
            stopped = self._rest(stop)
            try:
                do()
                last = ""
            except Exception as error:  # the thread must outlive anything: nobody is told if it dies
                sentence = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
                if sentence != last:
                    say(f"the notifier goes on after an error: {sentence}")
                last = sentence

    def drain(self, wait: Callable[[float], object]) -> int:
        """Send until nothing waits, at most PATIENCE_S; return how many were told. What is left stays in the outbox."""
        told, began = self.step(), self._clock()
        while (rest := self._rest_s()) is not None and (self._clock() - began).total_seconds() + rest <= PATIENCE_S:
            wait(max(rest, 0.01))
            told += self.step()
        return told

    def backlog(self) -> int:
        """Return how many entries wait to be sent, or to be known as sent."""
        return sum(1 for entry in self._entries.values() if entry.state in WAITING or entry.state is State.SENDING)

    def _resumed(self, entry: Delivery) -> Delivery:
        """Return an entry as a new process takes it up: an attempt cut short is unsure, a refusal is worth another try."""
        if entry.state is State.SENDING:
            entry = replace(entry, state=State.RETRY_LATER, unsure_since=entry.unsure_since or entry.attempt_at)
        elif entry.state is State.REJECTED:
            entry = replace(entry, state=State.QUEUED)
        return entry

    def _take_changes(self) -> bool:
        mark, changed = self._store.changed_since(self._mark)
        self._mark = mark
        for incident in changed:
            self._incidents[incident.id] = incident
            if incident.merged_into:
                self._parts[incident.merged_into].add(incident.id)
        return bool(changed)

    def _silences_changed(self, now: datetime) -> bool:
        before, self._silences = self._silences, tuple(self._outbox.silences(now))
        return before != self._silences

    def _plan(self, now: datetime) -> None:
        self._again_at = min((s.starts_at for s in self._silences if s.starts_at > now), default=None)
        for incident in list(self._incidents.values()):
            informed = self._informed(incident)
            wanted = [self._plan_one(incident, target, now) for target in self._policy.targets(incident, informed)]
            if incident.status in ("resolved", "retracted", "merged") and not any(wanted):
                del self._incidents[incident.id]  # over, and everybody knows
        self._plan_digests()

    def _plan_digests(self) -> None:
        self._digests = {pair: digest for pair, digest in self._digests.items() if self._flights.has(pair)}
        for receiver, members in untold(self._entries.values()).items():
            pair = (receiver, digest_id(members))
            if pair in self._digests:
                continue
            if pair in self._told:  # the process ended before it was written down whom the digest told of
                self._note_digested(members, self._told[pair])
                continue
            planned = plan_digest(self._policy, members, self._incidents, self._entries.get(pair))
            self._digests[pair] = planned
            if planned.entry != self._entries.get(pair):
                self._keep(planned.entry)

    def _note_digested(self, members: Sequence[Delivery], told: Told) -> None:
        for entry in told_in_digest(members, told):
            self._keep(entry)

    def _subject(self, entry: Delivery) -> Incident | None:
        """Return what the entry tells of, None when that is not known (any more)."""
        planned = self._digests.get((entry.receiver, entry.incident))
        return planned.incident if planned is not None else self._incidents.get(entry.incident)

    def _informed(self, incident: Incident) -> set[str]:
        known = {incident.id, *self._parts.get(incident.id, ())}
        return {receiver for receiver, id_ in self._told if id_ in known}

    def _plan_one(self, incident: Incident, target: Target, now: datetime) -> bool:
        """Bring one entry up to date; say whether something is still to be told."""
        pair = (target.receiver, incident.id)
        if self._flights.has(pair):
            return True
        entry = self._entries.get(pair)
        planned = plan_delivery(self._policy, target, incident, self._told.get(pair), entry, self._silences, now)
        if planned.again_at is not None:
            self._again_at = min(planned.again_at, self._again_at or planned.again_at)
        if planned.entry is None and entry is not None:
            self._outbox.drop(entry)
            del self._entries[pair]
        elif planned.entry is not None and planned.entry != entry:
            self._keep(planned.entry)
        return planned.again_at is not None or (planned.entry is not None and _is_to_be_told(planned.entry))

    def _keep(self, entry: Delivery) -> None:
        self._outbox.put(entry)
        self._entries[entry.receiver, entry.incident] = entry

    def _send(self) -> int:
        told = 0
        due = sorted((e for e in self._entries.values() if e.state in WAITING), key=lambda entry: entry.due_at)
        for entry in due:
            now, receiver = self._clock(), self._receivers.get(entry.receiver)
            incident = self._subject(entry)
            if receiver is None or incident is None or entry.due_at > now or self._is_busy(entry, receiver, now):
                continue
            self._launch(entry, receiver, incident, now)
            told += self._land()
        return told

    def _is_busy(self, entry: Delivery, receiver: Receiver, now: datetime) -> bool:
        return self._flights.holds(lane_of(entry, receiver)) or self._pace.wait_s(receiver.lane, now) > 0

    def _launch(self, entry: Delivery, receiver: Receiver, incident: Incident, now: datetime) -> None:
        started = replace(entry, state=State.SENDING, attempts=entry.attempts + 1, attempt_at=now)
        self._keep(started)
        links = self._policy.links.of_all() if entry.reason is Reason.BACKFILL else self._policy.links.of(incident)
        what = Notification(incident, entry.reason, entry.news, entry.marks, entry.unsure_since, links)
        digest = self._digests.get((entry.receiver, entry.incident))
        flight = Flight(started, incident, digest.members if digest is not None else ())
        self._flights.launch(lane_of(entry, receiver), flight, partial(_delivered, receiver, what))

    def _land(self) -> int:
        """Take up the attempts that are over; return how many were told by them."""
        told = 0
        for flight, receipt in self._flights.landed():
            self._pace.spend(self._receivers[flight.entry.receiver].lane, receipt.messages, self._clock())
            self._settle(flight, receipt)
            told += receipt.state is State.DELIVERED
        return told

    def _settle(self, flight: Flight, receipt: Receipt) -> None:
        now = self._clock()
        entry = settled(flight.entry, receipt, now)
        told = knows(flight.incident, now, entry.marks) if entry.state is State.DELIVERED else None
        self._outbox.settle(entry, now, told)
        self._entries[flight.pair] = entry
        if told is not None:
            self._told[flight.pair] = told
            self._note_digested(flight.members, told)
        self._again_at = now
        self._on_notice(Notice(entry, receipt))

    def _rest(self, stop: threading.Event) -> bool:
        """Wait a second, or until there may be something to do, and tell whether to stop."""
        self._news.wait(POLL_S)
        self._news.clear()
        return stop.is_set()

    def _rest_s(self) -> float | None:
        """Return how long until there is something to do, None when nothing waits."""
        now, waits = self._clock(), [LOOK_S] if self._flights else []
        for entry in self._entries.values():
            receiver = self._receivers.get(entry.receiver)
            if receiver is None or self._flights.holds(lane_of(entry, receiver)):
                continue
            if entry.state in WAITING and self._subject(entry) is not None:
                waits.append(max((entry.due_at - now).total_seconds(), self._pace.wait_s(receiver.lane, now)))
        return min(waits, default=None)


def settled(started: Delivery, receipt: Receipt, now: datetime) -> Delivery:
    """Return the entry after an attempt that ended with `receipt` at `now`."""
    marks = started.marks if receipt.marks is None else receipt.marks
    unsure_since = started.unsure_since or (started.attempt_at if receipt.unsure else None)
    ended = replace(started, state=receipt.state, why=receipt.why, marks=marks, unsure_since=unsure_since)
    if receipt.state is State.RETRY_LATER:
        return replace(ended, due_at=retried(started, receipt.after_s, now))
    if receipt.state is State.DELIVERED:
        return replace(ended, attempts=0, unsure_since=None, news="")
    return replace(ended, unsure_since=None)


def _is_to_be_told(entry: Delivery) -> bool:
    return entry.state in WAITING or (entry.state is State.BACKFILL and entry.attempt_at is None)


def _delivered(receiver: Receiver, what: Notification) -> Receipt:
    try:
        return receiver.deliver(what)
    except Exception as error:  # a receiver that breaks its contract must not keep the others from being told
        return Receipt(State.RETRY_LATER, f"{type(error).__name__}: {error}", unsure=True)
