"""A lease is renewed while the work lasts; another process tells a holder that is alive from one that is dead."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from engine.errors import LeaseLost, StoreAway
from engine.store import Store, keeping
from engine.store.keeping import LeaseKeeper, take_from_the_dead, this_process
from engine.store.leases import LEASE_S, HeldLease, Lease
from tests.unit.store.test_leases import taken, turn


def until(holds: object, keeper: LeaseKeeper) -> None:
    """Return when the keeper has noticed that its lease is lost."""
    keeper._thread.join(30)
    assert not keeper._thread.is_alive(), holds


def test_a_lease_is_renewed_and_released_at_the_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "RENEW_EVERY_S", 0.01)
    lease = taken(store, "a")
    with LeaseKeeper(store, lease).keeping() as keeper:
        turn(store, LEASE_S - 1)
        assert isinstance(take_from_the_dead(store, "job", lambda _: None, lambda _: None), HeldLease)
        keeper.check()
        assert keeper.is_valid()
    assert taken(store, "b").token == 2


def test_a_renewal_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers, releases = threading.Event(), threading.Event(), list[Lease]()

    class Hanging:
        def renew_lease(self, _: Lease) -> None:
            asked.set()
            answers.wait()

        def release_lease(self, lease: Lease) -> None:
            releases.append(lease)

    monkeypatch.setattr(keeping, "RENEW_EVERY_S", 0.01)
    monkeypatch.setattr(keeping, "ENDS_WITHIN_S", 0.01)
    with LeaseKeeper(cast(Store, Hanging()), Lease("job", "a", 1)).keeping():
        asked.wait(30)
    assert releases == []
    answers.set()


def test_a_lost_lease_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "RENEW_EVERY_S", 0.01)
    with LeaseKeeper(store, Lease("job", "a", 7)).keeping() as keeper:
        until("the renewals to end", keeper)
        assert not keeper.is_valid()
        with pytest.raises(LeaseLost):
            keeper.check()


def test_a_lease_is_not_valid_for_longer_than_the_others_wait(store: Store) -> None:
    """The machine slept, or the store was away: nothing is sent any more, before anybody knows whether it is lost."""
    now_s = [100.0]
    keeper = LeaseKeeper(store, taken(store, "a"), lambda: now_s[0])
    now_s[0] += LEASE_S - 0.1
    assert keeper.is_valid()
    now_s[0] += 0.2
    assert not keeper.is_valid()


def test_the_lease_of_a_dead_process_is_taken_when_it_ends(store: Store) -> None:
    taken(store, "the dead one")
    pauses, sentences = list[float](), list[str]()

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        turn(store, seconds)
        return False

    lease = take_from_the_dead(store, "job", pause, sentences.append)
    assert isinstance(lease, Lease)
    assert (lease.token, lease.holder) == (2, this_process())
    assert LEASE_S <= sum(pauses) + 1 <= LEASE_S + 2
    assert sentences == ["the dead one has the job lease of the incident store: looking whether it is still there"]


def test_a_stop_ends_the_look(store: Store) -> None:
    taken(store, "another")
    with pytest.raises(StoreAway, match="ended while it was waiting for another"):
        take_from_the_dead(store, "job", lambda _: True, lambda _: None)
