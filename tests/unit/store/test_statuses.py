"""What the parts of a run store about themselves, in each database."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason, Settlement
from engine.model.statuses import JobStatus, NotifierStatus, ReceiverHistory, StreamStatus
from engine.store import Store

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
ENTRY = Delivery("ops", "inc-1", 1, Reason.OPENED, NOON, NOON)
LOG = NotificationLog("a", "open", "high", revision=1, at=NOON, marks={})


def test_the_last_status_of_a_part_replaces_the_one_before(store: Store) -> None:
    statuses = store.statuses()
    assert (statuses.job(), statuses.notifier()) == (None, None)
    job = JobStatus("process 1", "0.2.0", NOON, NOON, 3, 0.5, 0.7, {"a.log": StreamStatus(1, 2, NOON, NOON, 4)}, 1)
    statuses.put(JobStatus("process 1", "0.2.0", NOON, NOON))
    statuses.put(job)
    notifier = NotifierStatus("process 1", "0.2.0", NOON, NOON)
    statuses.put(notifier)
    assert (statuses.job(), statuses.notifier()) == (job, notifier)


def test_a_receiver_fails_since_the_first_attempt_after_its_last_delivery(store: Store) -> None:
    outbox, statuses = store.outbox(), store.statuses()
    assert statuses.receiver_histories() == []

    def attempt(minute: int, state: DeliveryState, receiver: str = "ops", why: str = "") -> None:
        entry = Delivery(receiver, "inc-1", 1, Reason.OPENED, NOON, NOON, state, why=why)
        log = LOG if state is DeliveryState.DELIVERED else None
        outbox.settle([Settlement(entry, NOON + timedelta(minutes=minute), log)])

    attempt(0, DeliveryState.RETRY_LATER, why="timeout")
    attempt(1, DeliveryState.DELIVERED)
    attempt(2, DeliveryState.DELIVERED, "chat")
    assert statuses.receiver_histories() == [
        ReceiverHistory("chat", NOON + timedelta(minutes=2), NOON + timedelta(minutes=2), "delivered"),
        ReceiverHistory("ops", NOON + timedelta(minutes=1), NOON + timedelta(minutes=1), "delivered"),
    ]
    attempt(3, DeliveryState.RETRY_LATER, why="timeout")
    attempt(4, DeliveryState.REJECTED, why="no such channel")
    assert statuses.receiver_histories()[1] == ReceiverHistory(
        "ops",
        NOON + timedelta(minutes=1),
        NOON + timedelta(minutes=4),
        "rejected",
        "no such channel",
        NOON + timedelta(minutes=3),
    )


def test_the_store_names_who_holds_its_leases_and_its_time(store: Store) -> None:
    lease = store.take_lease("job", "process 1 on a")
    assert store.statuses().lease_holders() == {"job": "process 1 on a"}
    store.release_lease(lease)
    assert store.statuses().lease_holders() == {}
    assert abs(store.statuses().time_s() - time.time()) < 60
    if store.is_on_a_server:
        assert store.statuses().size_bytes() > 0
