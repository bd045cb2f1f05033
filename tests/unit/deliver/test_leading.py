"""Of two notifiers one sends; the other takes over when that one ends, is cut off or is killed in the middle of a message."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from connectors.memory import MemoryReceiver
from engine.clock import SteadyClock
from engine.deliver import Notifier, NotifierStandby, Policy, delivered, on_a_thread
from engine.deliver import leading as module
from engine.deliver.leading import FollowedNotifier, leading
from engine.errors import StoreAway
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.model.routes import Route
from engine.store import Store, keeping
from engine.store.leases import LEASE_S, Lease
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident
from tests.unit.store.test_leases import turn

POLICY = Policy(Route("ops"), hurry=True)
WITHIN_S = 60


@pytest.fixture
def stores(address: str) -> Iterator[tuple[Store, Store]]:
    """One store, opened as two processes do."""
    pair = Store.open(address), Store.open(address)
    yield pair
    for store in pair:
        store.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr("engine.deliver.notifier.POLL_S", 0.02)


class Told(MemoryReceiver):
    """Takes messages; `arrived` is set by each. The first call waits for `going_on` after it has the message."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived, self.going_on = threading.Event(), threading.Event()

    def deliver(self, notification: Notification) -> Receipt:
        receipt = super().deliver(notification)
        self.arrived.set()
        self.going_on.wait(WITHIN_S)
        return receipt


def standby(store: Store, receiver: Any) -> NotifierStandby:
    def make(of: Store, leads: Callable[[], bool]) -> Notifier:
        return Notifier(of, POLICY, {"ops": receiver}, SteadyClock(), interval_s=0, begin=on_a_thread, leads=leads)

    return NotifierStandby(store, make)


@contextmanager
def running(notifier: NotifierStandby) -> Iterator[list[str]]:
    """Run a notifier on a thread; yield what it says."""
    sentences, stop = list[str](), threading.Event()
    thread = threading.Thread(target=notifier.run, args=(stop, sentences.append), daemon=True)
    thread.start()
    try:
        yield sentences
    finally:
        stop.set()
        notifier.wake()
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def put(store: Store, number: int) -> None:
    with store.batch(BatchId("q", number)) as ledger:
        ledger.put_incidents([incident(id=f"inc-{number}", revision=1, symptoms=())])


def until(holds: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(WITHIN_S * 50):
        if holds():
            return
        pause.wait(0.02)
    pytest.fail("it did not come to that")


def told(*receivers: MemoryReceiver) -> list[str]:
    return sorted(each.incident.id for receiver in receivers for each in receiver.notifications)


def test_one_sends_and_the_other_takes_over_when_it_ends(stores: tuple[Store, Store]) -> None:
    first, second = MemoryReceiver(), MemoryReceiver()
    with ExitStack() as ends:
        ends.enter_context(running(standby(stores[0], first)))
        put(stores[0], 0)
        until(lambda: told(first) == ["inc-0"])
        with running(standby(stores[1], second)) as sentences:
            until(lambda: sentences)
            put(stores[0], 1)
            until(lambda: told(first) == ["inc-0", "inc-1"])
            ends.close()
            put(stores[0], 2)
            until(lambda: told(second) == ["inc-2"])
    assert sentences[0].startswith("notifications are sent by process ")
    assert sentences[0].endswith(": this process takes over when that one ends")
    assert sentences[1].endswith("sends no notifications any more: this process does now")
    assert told(first, second) == ["inc-0", "inc-1", "inc-2"]


def test_a_bounded_run_leaves_the_messages_to_the_notifier_that_leads(stores: tuple[Store, Store]) -> None:
    put(stores[0], 0)
    sentences: list[str] = []
    with leading(stores[0]):
        assert standby(stores[1], MemoryReceiver()).drain(lambda _: None, sentences.append) == (0, 0)
    assert len(sentences) == 1
    receiver = MemoryReceiver()
    assert standby(stores[1], receiver).drain(lambda _: None, sentences.append) == (1, 0)
    assert told(receiver) == ["inc-0"]


def test_an_error_of_any_kind_is_said_once_and_the_next_attempt_leads(stores: tuple[Store, Store]) -> None:
    put(stores[0], 0)
    receiver, attempts = MemoryReceiver(), list[int]()

    def make(of: Store, leads: Callable[[], bool]) -> Notifier:
        attempts.append(1)
        if len(attempts) < 4:
            raise OSError(5, "Input/output error")
        return Notifier(of, POLICY, {"ops": receiver}, SteadyClock(), interval_s=0, begin=on_a_thread, leads=leads)

    with running(NotifierStandby(stores[0], make)) as sentences:
        until(lambda: told(receiver) == ["inc-0"])
    assert sentences == ["the notifier goes on after an error: OSError: [Errno 5] Input/output error"]


@pytest.mark.parametrize("is_leading", [True, False])
def test_a_step_that_ends_because_the_store_is_away_is_a_sign_of_life(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch, is_leading: bool
) -> None:
    def away(*_: object) -> None:
        raise StoreAway("the store is away")

    def make(of: Store, leads: Callable[[], bool]) -> Notifier:
        if not is_leading:
            away()
        notifier = Notifier(of, POLICY, {}, SteadyClock(), interval_s=0, begin=on_a_thread, leads=leads)
        monkeypatch.setattr(notifier, "step", away)
        return notifier

    looks = list[int]()
    with running(NotifierStandby(stores[0], make, lambda: looks.append(1))):
        until(lambda: len(looks) > 1)


@pytest.mark.server
def test_one_that_is_cut_off_in_the_middle_of_a_message_writes_and_sends_nothing_more(
    postgresql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped, as a virtual machine may be, after the message and before its outcome is stored; its lease ends."""
    monkeypatch.setattr(keeping, "RENEW_EVERY_S", 3600.0)
    address = postgresql.empty_store()
    cut_off, other = Store.open(address), Store.open(address)
    first, second = Told(), MemoryReceiver()
    put(other, 0)
    with running(standby(cut_off, first)) as sentences:
        assert first.arrived.wait(WITHIN_S)
        turn(other, LEASE_S + 1)
        with leading(other) as leadership:
            notifier = standby(leadership.store, second)._make(leadership.store, leadership.is_valid)
            notifier.step()
            until(lambda: second.notifications)
            until(
                lambda: notifier.step() or leadership.store.outbox().entries()["ops", "inc-0"].state is DeliveryState.DELIVERED
            )
            first.going_on.set()
            until(lambda: any("was taken over by the notifier of" in sentence for sentence in sentences))
            put(other, 1)
            notifier.step()
            until(lambda: told(second) == ["inc-0", "inc-1"])
            assert told(first) == ["inc-0"]
        assert second.notifications[0].unsure_since is not None, "the receiver is asked to look for the first message"
    cut_off.close()
    other.close()


def test_nothing_is_sent_while_it_is_not_sure_who_leads(stores: tuple[Store, Store]) -> None:
    """The lease could not be renewed for as long as it lasts, since the store was away; it may still be renewed."""
    put(stores[0], 0)
    receiver, leads = MemoryReceiver(), [False]
    notifier = Notifier(stores[0], POLICY, {"ops": receiver}, SteadyClock(), interval_s=0, leads=lambda: leads[0])
    notifier.step()
    assert (told(receiver), notifier.backlog()) == ([], 1)
    assert delivered(receiver, Notification(incident(), Reason.OPENED), lambda: False).state is DeliveryState.RETRY_LATER
    leads[0] = True
    notifier.step()
    assert told(receiver) == ["inc-0"]


@pytest.mark.server
def test_a_lease_that_is_held_names_its_holder(postgresql: Any) -> None:
    store = Store.open(postgresql.empty_store())
    assert isinstance(store.take_lease("notifier", "process 7 on node-a"), Lease)
    with pytest.raises(FollowedNotifier, match="process 7 on node-a"), leading(store):
        pass
    store.close()
