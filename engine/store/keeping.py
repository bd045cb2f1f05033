"""Keep a lease: renew it on a thread of its own for as long as the work lasts."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from engine.errors import LeaseLost, StoreAway, StoreError
from engine.ports import Say
from engine.store.leases import LEASE_S, RENEW_EVERY_S, HeldLease, Lease
from engine.store.store import Store

LOOK_EVERY_S = 1.0
ENDS_WITHIN_S = 5.0  # how long the end waits for a renewal that is under way


class LeaseKeeper:
    """Renews `lease` every RENEW_EVERY_S until it is lost.

    Args:
        elapsed_s: a clock that goes on while the machine sleeps.
    """

    def __init__(
        self, store: Store, lease: Lease, elapsed_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    ) -> None:
        self._store, self.lease, self._elapsed_s = store, lease, elapsed_s
        self._renewed_at_s = elapsed_s()
        self._loss: LeaseLost | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"{lease.name} lease", daemon=True)

    def check(self) -> None:
        """Raise LeaseLost when another process has taken the lease."""
        if self._loss is not None:
            raise self._loss

    def is_valid(self) -> bool:
        """Return whether no other process can have the lease yet."""
        return self._loss is None and self._elapsed_s() - self._renewed_at_s < LEASE_S

    @contextmanager
    def keeping(self) -> Iterator[LeaseKeeper]:
        """Renew the lease while the body runs, and release it at the end."""
        self._thread.start()
        try:
            yield self
        finally:
            self._end.set()
            self._thread.join(ENDS_WITHIN_S)
            if not self._thread.is_alive():  # else the store does not answer, and the lease ends by itself
                with suppress(StoreError):
                    self._store.release_lease(self.lease)

    def _keep(self) -> None:
        while self._loss is None and not self._end.wait(RENEW_EVERY_S):
            asked_at_s = self._elapsed_s()
            try:
                self._store.renew_lease(self.lease)
                self._renewed_at_s = asked_at_s
            except LeaseLost as loss:
                self._loss = loss
            except StoreError:
                continue  # the store is away: for others too, or they take the lease, and the next renewal tells


def this_process() -> str:
    """Return the name of this process for people on other machines."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def take_from_the_dead(store: Store, name: str, pause: Callable[[float], object], say: Say) -> Lease | HeldLease:
    """Take the lease `name`. While another process holds it, wait whether that is alive: a renewal shows it, and its lease is
    returned; otherwise the lease ends and is taken.

    Args:
        pause: waits for a number of seconds; a true result means that a stop was requested.
        say: takes a sentence about the wait.

    Raises StoreError; StoreAway after a stop.
    """
    first: HeldLease | None = None
    while True:
        lease = store.take_lease(name, this_process())
        if isinstance(lease, Lease):
            return lease
        if first is None:
            say(f"{lease.holder} has the {name} lease of the incident store: looking whether it is still there")
        first = first or lease
        if lease.until_s > first.until_s or lease.holder != first.holder:
            return lease
        if pause(LOOK_EVERY_S):
            raise StoreAway(f"{store.name}: ended while it was waiting for {lease.holder}")
