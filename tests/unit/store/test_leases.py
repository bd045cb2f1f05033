"""A lease has one holder at a time, and what a holder before writes changes nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from engine.errors import LeaseLost, StoreError
from engine.store import Store, schema
from engine.store.leases import LEASE_S, HeldLease, Lease
from engine.store.store import BatchId
from tests.unit.store.test_store import SILENT, put


def taken(store: Store, holder: str, name: str = "job") -> Lease:
    lease = store.take_lease(name, holder)
    assert isinstance(lease, Lease)
    return lease


def turn(store: Store, seconds: float) -> None:
    """Let `seconds` pass for every lease; negative: turn the clock of the database back."""
    with store._begin() as connection:
        connection.execute(update(schema.leases).values(until_s=schema.leases.c.until_s - seconds))


def test_a_lease_has_one_holder_until_it_ends_or_is_released(store: Store) -> None:
    first = taken(store, "a")
    other = store.take_lease("job", "b")
    assert isinstance(other, HeldLease)
    assert other.holder == "a"
    assert taken(store, "b", "notifier").token == 1
    turn(store, LEASE_S / 2)
    before = store.take_lease("job", "b")
    store.renew_lease(first)
    after = store.take_lease("job", "b")
    assert isinstance(before, HeldLease)
    assert isinstance(after, HeldLease)
    assert after.until_s > before.until_s
    turn(store, LEASE_S + 0.1)
    second = taken(store, "b")
    assert second.token > first.token
    store.release_lease(first)
    assert isinstance(store.take_lease("job", "a"), HeldLease), "another's lease cannot be released"
    store.release_lease(second)
    assert taken(store, "a").token > second.token


def test_a_clock_that_was_set_back_holds_no_lease_for_long(store: Store) -> None:
    taken(store, "a")
    turn(store, -3600)
    assert taken(store, "b").token == 2


def test_a_holder_that_lost_its_lease_writes_nothing(store: Store) -> None:
    first = taken(store, "a")
    fenced = store.fenced_by(first)
    put(fenced, 0, SILENT)
    turn(store, LEASE_S + 0.1)
    put(fenced, 1)
    taken(store, "b")
    match = r"this job \(a\) was taken over by the job of b"
    for work in (
        lambda: put(fenced, 2, SILENT),
        lambda: fenced.renew_lease(first),
        lambda: fenced.prune(schema.datetime.now(schema.UTC)),
        lambda: fenced.outbox().change(()),
        lambda: fenced.forget_batches("query", 0),
    ):
        with pytest.raises(LeaseLost, match=match):
            work()
    assert store.batches() == 2
    assert [each.id for each in fenced.incidents()] == ["inc-1"], "it can still read"


def test_a_lease_that_is_taken_waits_for_a_transaction_of_its_holder(store: Store, address: str) -> None:
    """So nothing of the holder before is committed after a takeover."""
    fenced = store.fenced_by(taken(store, "a"))
    turn(store, LEASE_S + 0.1)
    other = Store.open(address, busy_s=0.01)
    with fenced.batch(BatchId("q", 0)) as ledger:
        ledger.put_incidents([SILENT])
        with pytest.raises(StoreError, match="another process is writing"):
            other.take_lease("job", "b")
    taken(other, "b")
    assert [each.id for each in other.incidents()] == ["inc-1"]
    other.close()


def test_the_lease_of_a_store_that_was_emptied_is_lost(store: Store) -> None:
    fenced = store.fenced_by(taken(store, "a"))
    with store._begin() as connection:
        connection.execute(schema.leases.delete())
    with pytest.raises(LeaseLost, match="nobody, since the store was emptied or replaced"):
        put(fenced, 0, SILENT)
