"""What the notifier keeps: entries, who knows what, every attempt, silences."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from engine.model.notifications import Attempt, Delivery, DeliveryState, NotificationLog, Reason, ReceiverStatus, Settlement
from engine.model.routes import LabelMatcher, Silence
from engine.store import Outbox, Store

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
ENTRY = Delivery("ops", "inc-1", 3, Reason.OPENED, NOON, NOON + timedelta(seconds=30))
TOLD = NotificationLog("a", "open", "high", revision=3, at=NOON, marks={"channel": "C1", "ts": "1.0"})


@pytest.fixture
def outbox(address: str) -> Iterator[Outbox]:
    store = Store.open(address)
    yield store.outbox()
    store.close()


def test_an_entry_replaces_the_one_of_its_receiver_and_incident(outbox: Outbox) -> None:
    outbox.put(ENTRY)
    later = replace(ENTRY, revision=4, state=DeliveryState.RETRY_LATER, marks={"ts": "1"}, unsure_since=NOON)
    outbox.put(later)
    assert outbox.entries() == {("ops", "inc-1"): later}
    outbox.change((), (later,))
    assert outbox.entries() == {}


def test_an_attempt_is_recorded_with_what_is_known_by_it(outbox: Outbox) -> None:
    outbox.settle([Settlement(replace(ENTRY, state=DeliveryState.RETRY_LATER, why="wait"), NOON)])
    assert outbox.notification_logs() == {}
    outbox.settle([Settlement(replace(ENTRY, state=DeliveryState.DELIVERED), NOON, TOLD)])
    assert outbox.notification_logs() == {("ops", "inc-1"): TOLD}
    assert outbox.attempts("inc-1") == [
        Attempt("ops", 3, Reason.OPENED, NOON, DeliveryState.RETRY_LATER, "wait"),
        Attempt("ops", 3, Reason.OPENED, NOON, DeliveryState.DELIVERED),
    ]


def test_how_it_stands_is_told_by_receiver(outbox: Outbox) -> None:
    assert outbox.standings("inc-1") == []
    waiting, done = replace(ENTRY, receiver="data"), replace(ENTRY, state=DeliveryState.DELIVERED)
    outbox.put(waiting)
    outbox.settle([Settlement(replace(ENTRY, state=DeliveryState.RETRY_LATER, why="wait"), NOON)])
    outbox.settle([Settlement(done, NOON, TOLD)])
    outbox.put(replace(ENTRY, incident="inc-2"))
    assert outbox.standings("inc-1") == [ReceiverStatus("data", waiting, None, 0), ReceiverStatus("ops", done, TOLD, 1)]


def test_silences_are_found_until_they_end(outbox: Outbox) -> None:
    silence = Silence("s1", (LabelMatcher("topic", "=~", "a.*"),), NOON, NOON + timedelta(hours=1), "deploy")
    outbox.put_silence(silence)
    outbox.put_silence(replace(silence, comment="longer"))
    assert outbox.silences(NOON) == [replace(silence, comment="longer")]
    assert outbox.silences(silence.ends_at) == []
