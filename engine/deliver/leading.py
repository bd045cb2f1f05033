"""Of several notifiers with one store, one leads and sends; another takes over when it ends or is cut off.

A store that is a file is held by a lock file, which the kernel releases with the process. A store on a server is held by a
lease: it ends LEASE_S after the last renewal, and everything that a notifier writes is fenced by it. So a takeover finds what
the one before was sending as `sending`, and resumes it as unsure (resuming.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from engine.deliver.notifier import Notifier
from engine.deliver.planning import Policy
from engine.deliver.receipts import presentable
from engine.errors import StoreAway, StoreError
from engine.ports import Receiver, Say
from engine.store import Store
from engine.store.keeping import LeaseKeeper, this_process
from engine.store.leases import Lease
from engine.store.locks import LockHeld, ProcessLock
from engine.store.outage import StoreOutage, until_back

NOTIFIER = "notifier"  # the name of its lease
LOOK_EVERY_S = 1.0

MakeNotifier = Callable[[Store, Callable[[], bool]], Notifier]


class Leadership(Struct, frozen=True):
    """The right to send: the store to write with, and whether no other notifier can have it yet."""

    store: Store
    is_valid: Callable[[], bool] = lambda: True


def _ignore() -> None:
    pass


class FollowedNotifier(Exception):
    """Another process leads; the message names it."""


@contextmanager
def leading(store: Store) -> Iterator[Leadership]:
    """Lead while the body runs. Raises FollowedNotifier when another process leads, and StoreError."""
    if store.is_on_a_server:
        lease = store.take_lease(NOTIFIER, this_process())
        if not isinstance(lease, Lease):
            raise FollowedNotifier(lease.holder)
        with LeaseKeeper(store, lease).keeping() as keeper:
            yield Leadership(store.fenced_by(lease), keeper.is_valid)
        return
    if store.path is None:
        yield Leadership(store)
        return
    try:
        lock = ProcessLock(store.path.with_name(f"{store.path.name}.{NOTIFIER}.lock"), "the notifier of the store")
    except LockHeld as held:
        raise FollowedNotifier(held.holder) from None
    try:
        yield Leadership(store)
    finally:
        lock.release()


class NotifierStandby:
    """A notifier that sends while it leads, and otherwise waits to take over.

    Args:
        make: returns the notifier for a store and for the question whether it still leads; it reads the state of the store.
        on_look: called each time another process was found to lead or the store to be away.
        on_step: called after each step of the notifier that went well, or ended because the store is away; None: `on_look`.
    """

    def __init__(
        self,
        store: Store,
        make: MakeNotifier,
        on_look: Callable[[], None] = _ignore,
        on_step: Callable[[], None] | None = None,
    ) -> None:
        self._store, self._make, self._on_look, self._on_step = store, make, on_look, on_step or on_look
        self._notifier: Notifier | None = None
        self._configuration: tuple[Policy, Mapping[str, Receiver]] | None = None  # in place of those that `make` has

    def reconfigure(self, policy: Policy, receivers: Mapping[str, Receiver]) -> None:
        """Replace policy and receivers of the notifier, now or when it leads; may be called from any thread."""
        self._configuration = (policy, receivers)
        if (notifier := self._notifier) is not None:
            notifier.reconfigure(policy, receivers)

    def wake(self) -> None:
        """Wake the notifier, if it leads, for its next step now; may be called from any thread."""
        if (notifier := self._notifier) is not None:
            notifier.wake()

    def run(self, stop: threading.Event, say: Say) -> None:
        """Lead whenever no other process does, until `stop` is set (see Notifier.run)."""
        followed, last_problem, outage = "", "", StoreOutage()
        while not stop.is_set():
            problem: str | None = None
            try:
                followed = self._lead(stop, say, followed)
                sentence = outage.ends()
            except StoreAway as error:
                self._on_look()
                sentence = outage.goes_on(error)
            except Exception as error:  # LeaseLost too; the thread must survive everything: without it nobody is notified
                what = str(error) if isinstance(error, StoreError) else presentable(f"{type(error).__name__}: {error}")
                problem = f"the notifier goes on after an error: {what}"
                sentence = problem if problem != last_problem else None
            last_problem = problem or ""
            if sentence:
                say(sentence)
            stop.wait(LOOK_EVERY_S)

    def drain(self, wait: Callable[[float], object], say: Say) -> tuple[int, int]:
        """Send everything that waits, and return how many were sent and how many are left; nothing while another process
        leads. Waits without limit for a store that is locked or away."""
        try:
            return until_back(lambda: self._drain(wait, say), wait, say)
        except FollowedNotifier as other:
            say(f"notifications are sent by {other}")
            return 0, 0

    def _drain(self, wait: Callable[[float], object], say: Say) -> tuple[int, int]:
        with leading(self._store) as leadership:
            notifier = self._made(leadership)
            return notifier.drain(wait, say), notifier.backlog()

    def _made(self, leadership: Leadership) -> Notifier:
        self._notifier = notifier = self._make(leadership.store, leadership.is_valid)
        if self._configuration is not None:  # read after the notifier is set: `reconfigure` does the two the other way round
            notifier.reconfigure(*self._configuration)
        return notifier

    def _lead(self, stop: threading.Event, say: Say, followed: str) -> str:
        """Lead until `stop` is set; return at once the process that leads when there is one, else nothing."""
        try:
            with leading(self._store) as leadership:
                if followed:
                    say(f"{followed} sends no notifications any more: this process does now")
                self._made(leadership).run(stop, say, self._on_step)
                return ""
        except FollowedNotifier as other:
            self._on_look()
            if str(other) != followed:
                say(f"notifications are sent by {other}: this process takes over when that one ends")
            return str(other)
        finally:
            self._notifier = None
