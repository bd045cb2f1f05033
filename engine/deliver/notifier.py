"""The notifier's loop: read changes from the store, plan the outbox, send due entries, record outcomes.

Everything runs on the loop's own thread except the sending itself, which lasts until the receiver answers: an attempt is
started (in_flight.py), and its outcome is recorded when it is finished.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from engine.clock import TOLERANCE, SteadyClock
from engine.deliver.book import Book
from engine.deliver.dispatch import DeliveryNotice, Dispatch
from engine.deliver.in_flight import InFlightSet, StartWork, at_once
from engine.deliver.pacing import INTERVAL_S, Pace
from engine.deliver.planner import Planner
from engine.deliver.planning import Policy
from engine.deliver.receipts import presentable
from engine.errors import LeaseLost, StoreAway, StoreError
from engine.model.phrases import lasting
from engine.ports import Receiver, Say
from engine.store import Store
from engine.store.outage import StoreOutage, until_back

POLL_S = 1.0
PATIENCE_S = 60.0  # how long a run that ends keeps trying to send
LOOK_S = 0.02  # polling interval for finished attempts, in a run that ends


def _ignore(_: object) -> None:
    pass


def _ignore_step() -> None:
    pass


class Notifier:
    """Notifies `receivers` of the incidents in `store` according to `policy`, and waits for an explanation where the rules of
    the job in the store have one. A store has at most one notifier at a time (see leading.py).

    Args:
        clock: the clock for waits and repetitions, which never follow the logs; its jumps are reported.
        on_notice: called after each attempt.
        interval_s: the pause after a message, for each rate limit key.
        begin: runs an attempt: `at_once`, or `on_a_thread`, so that a hanging receiver does not delay others.
        leads: whether this is still the only notifier; asked right before a message is sent.
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
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._clock, self._wake_event = clock, threading.Event()
        self._book = Book(store.outbox(), clock.now())
        self._in_flight = InFlightSet(begin, self._wake_event.set)
        self._planner = Planner(store, self._book, policy, self._in_flight.has)
        self._dispatch = Dispatch(self._book, receivers, clock, Pace(interval_s), self._in_flight, on_notice, leads)
        self._deliveries = 0
        self._configuration: tuple[Policy, Mapping[str, Receiver]] | None = None  # for the next step
        self._remarks: list[str] = []
        if self._book.ahead > TOLERANCE:
            self._remarks.append(
                f"the clock of this machine is {lasting(self._book.ahead)} behind times in the incident store:"
                " later times count as the present"
            )

    def step(self) -> int:
        """Do everything that is due now; return the number of deliveries since the last step.

        Raises StoreError; call it again then, nothing is lost.
        """
        self._take_configuration()
        self._check_clock()
        self._take_finished()
        self._dispatch.expire_attempts(self._planner)
        self._planner.step(self._clock.now())
        self._deliveries += self._dispatch.send(self._planner)
        self._dispatch.refresh(self._planner)
        deliveries, self._deliveries = self._deliveries, 0
        return deliveries

    def reconfigure(self, policy: Policy, receivers: Mapping[str, Receiver]) -> None:
        """Replace policy and receivers from the next step on; may be called from any thread."""
        self._configuration = (policy, receivers)
        self.wake()

    def wake(self) -> None:
        """Wake the loop for its next step now; may be called from any thread."""
        self._wake_event.set()

    def run(self, stop: threading.Event, say: Say, on_step: Callable[[], None] = _ignore_step) -> None:
        """Step every second, when woken and when an attempt is finished, until `stop` is set; then step once more and wait for
        the attempts in flight.

        `on_step` is called after each step that went well, and each that ended because the store is away. An error is reported
        once and the step repeated; an unavailable store is reported after a while.
        """
        last_problem, stopped, outage = "", False, StoreOutage()
        while not stopped or self._in_flight or self._book.has_pending:
            action = self._take_finished if stopped else self.step
            stopped = self._rest(stop)
            try:
                action()
                last_problem = ""
                on_step()
                sentences = [*self._taken_remarks(), outage.ends()]
            except LeaseLost:
                raise
            except StoreAway as error:
                on_step()
                sentences = [outage.goes_on(error)]
            except Exception as error:  # the thread must survive everything: without it nobody is notified
                problem = str(error) if isinstance(error, StoreError) else presentable(f"{type(error).__name__}: {error}")
                sentences = [f"the notifier goes on after an error: {problem}"] if problem != last_problem else []
                last_problem = problem
            for sentence in sentences:
                if sentence:
                    say(sentence)

    def drain(self, wait: Callable[[float], object], say: Say = _ignore) -> int:
        """Send until no entry waits, for at most PATIENCE_S; return the number of deliveries. The rest stays in the outbox.

        Waits without limit for a store that is locked or away. A true result of `wait` ends it: a stop was requested.
        """
        deliveries, began = until_back(self.step, wait, say), self._clock.now()
        while (rest_s := self._rest_s()) is not None and (self._clock.now() - began).total_seconds() + rest_s <= PATIENCE_S:
            if wait(max(rest_s, 0.01)):
                break
            deliveries += until_back(self.step, wait, say)
        until_back(self._book.flush, wait, say)
        for sentence in self._taken_remarks():
            say(sentence)
        return deliveries

    def backlog(self) -> int:
        """Return the number of entries that wait or are in flight."""
        return self._book.backlog

    def _take_configuration(self) -> None:
        if self._configuration is not None:
            (self._planner.policy, receivers), self._configuration = self._configuration, None
            self._dispatch.use(receivers)

    def _take_finished(self) -> None:
        self._book.flush()
        self._deliveries += self._dispatch.take_finished(self._planner)

    def _check_clock(self) -> None:
        jump = self._clock.check()
        if jump is None:
            return
        self._remarks.append(str(jump))
        if jump.adopted:
            self._book.shift(jump.by)
            self._planner.restart_waits()
            self._dispatch.restart_waits()

    def _taken_remarks(self) -> list[str]:
        remarks, self._remarks = [*self._remarks, *self._dispatch.taken_remarks()], []
        return remarks

    def _rest(self, stop: threading.Event) -> bool:
        """Wait POLL_S or until woken; return whether to stop."""
        self._wake_event.wait(POLL_S)
        self._wake_event.clear()
        return stop.is_set()

    def _rest_s(self) -> float | None:
        """Return the seconds until there is something to do; None when no entry waits."""
        waits = [LOOK_S] if self._in_flight else []
        rest_s = self._dispatch.wait_s(self._planner)
        return min([*waits, *([] if rest_s is None else [rest_s])], default=None)
