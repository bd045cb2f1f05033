"""The notifier's loop: take what changed in the store, plan the outbox, send what is due, record how it went.

Everything happens on the loop's own thread but the sending itself, which may take as long as a receiver takes to answer: that
is begun (flights.py), and what came of it is taken up when it is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from engine.clock import TOLERANCE, SteadyClock
from engine.deliver.book import Book
from engine.deliver.dispatch import DeliveryNotice, Dispatch
from engine.deliver.in_flight import InFlightSet, StartWork, at_once
from engine.deliver.pacing import INTERVAL_S, Pace
from engine.deliver.planner import Planner
from engine.deliver.planning import Policy
from engine.deliver.receipts import presentable
from engine.errors import StoreAway, StoreError
from engine.model.phrases import lasting
from engine.ports import Receiver, Say
from engine.store import Store
from engine.store.patience import StoreOutage, until_back

POLL_S = 1.0
PATIENCE_S = 60.0  # how long a run that ends goes on trying
LOOK_S = 0.02  # between two looks at whether an attempt is over, in a run that ends


def _ignore(_: object) -> None:
    pass


class Notifier:
    """Tells `receivers` what `policy` wants told of the incidents in `store`. One at a time for a store.

    Args:
        clock: what waits and repetitions follow, never the logs; its jumps are said.
        on_notice: called after each attempt.
        interval_s: what a rate limit key rests after a message.
        begin: how an attempt is begun: `at_once`, or `on_a_thread`, so that a receiver that hangs keeps no other waiting.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        receivers: Mapping[str, Receiver],
        clock: SteadyClock,
        on_notice: Callable[[DeliveryNotice], None] = _ignore,
        interval_s: float = INTERVAL_S,
        begin: StartWork = at_once,
    ) -> None:
        self._clock, self._news = clock, threading.Event()
        self._book = Book(store.outbox(), clock.now())
        self._flights = InFlightSet(begin, self._news.set)
        self._planner = Planner(store, self._book, policy, self._flights.has)
        self._dispatch = Dispatch(self._book, receivers, clock, Pace(interval_s), self._flights, on_notice)
        self._deliveries = 0
        self._remarks: list[str] = []
        if self._book.ahead > TOLERANCE:
            self._remarks.append(
                f"the clock of this machine is {lasting(self._book.ahead)} behind times in the incident store:"
                " what is ahead of it counts as of now"
            )

    def step(self) -> int:
        """Do what is to be done now; return how many were told since the last step.

        Raises StoreError, and is to be called again then: nothing is lost by it.
        """
        self._check_clock()
        self._land()
        self._dispatch.give_up(self._planner)
        self._planner.step(self._clock.now())
        self._deliveries += self._dispatch.send(self._planner)
        deliveries, self._deliveries = self._deliveries, 0
        return deliveries

    def rules_changed(self, explained: frozenset[str]) -> None:
        """Let other rules be those that settle, from the next step on; may be called from any thread."""
        self._planner.policy = replace(self._planner.policy, explained=explained)

    def wake(self) -> None:
        """Let a loop that rests take its next step now; may be called from any thread."""
        self._news.set()

    def run(self, stop: threading.Event, say: Say) -> None:
        """Step every second, when woken and when an attempt is over, until `stop` is set; once more then, and take up what is
        under way.

        What goes wrong is said once and tried again; that the store is locked or away, after a while.
        """
        last, stopped, absence = "", False, StoreOutage()
        while not stopped or self._flights or self._book.unwritten:
            do = self._land if stopped else self.step
            stopped = self._rest(stop)
            try:
                do()
                last = ""
                sentences = [*self._taken_remarks(), absence.ends()]
            except StoreAway as error:
                sentences = [absence.goes_on(error)]
            except Exception as error:  # the thread must outlive anything: nobody is told if it dies
                what = str(error) if isinstance(error, StoreError) else presentable(f"{type(error).__name__}: {error}")
                sentences = [f"the notifier goes on after an error: {what}"] if what != last else []
                last = what
            for sentence in sentences:
                if sentence:
                    say(sentence)

    def drain(self, wait: Callable[[float], None], say: Say = _ignore) -> int:
        """Send until nothing waits, at most PATIENCE_S; return how many were told. What is left stays in the outbox.

        A store that is locked or away is waited for as long as it takes.
        """
        deliveries, began = until_back(self.step, wait, say), self._clock.now()
        while (rest := self._rest_s()) is not None and (self._clock.now() - began).total_seconds() + rest <= PATIENCE_S:
            wait(max(rest, 0.01))
            deliveries += until_back(self.step, wait, say)
        until_back(self._book.flush, wait, say)
        for sentence in self._taken_remarks():
            say(sentence)
        return deliveries

    def backlog(self) -> int:
        """Return how many entries wait to be sent, or to be known as sent."""
        return self._book.backlog

    def _land(self) -> None:
        self._book.flush()
        self._deliveries += self._dispatch.land(self._planner)

    def _check_clock(self) -> None:
        jump = self._clock.check()
        if jump is None:
            return
        self._remarks.append(str(jump))
        if jump.adopted:
            self._book.move(jump.by)
            self._planner.restart_waits()
            self._dispatch.restart_waits()

    def _taken_remarks(self) -> list[str]:
        remarks, self._remarks = self._remarks, []
        return remarks

    def _rest(self, stop: threading.Event) -> bool:
        """Wait a second, or until there may be something to do, and tell whether to stop."""
        self._news.wait(POLL_S)
        self._news.clear()
        return stop.is_set()

    def _rest_s(self) -> float | None:
        """Return how long until there is something to do, None when nothing waits."""
        waits = [LOOK_S] if self._flights else []
        rest_s = self._dispatch.wait_s(self._planner)
        return min([*waits, *([] if rest_s is None else [rest_s])], default=None)
