"""A receiver that hangs keeps no other waiting; each is still told one thing after the other, and nothing is told twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from connectors.memory import MemoryReceiver
from engine.clock import SteadyClock
from engine.deliver import Notifier, Policy, on_a_thread
from engine.model.notifications import DeliveryState, Notification, Receipt
from engine.model.routes import Route, Timings
from engine.store import Store
from tests.unit.deliver.scene import Scene

NO_WAITS = Timings(0, 0, 3600)
BOTH = Route("ops", routes=(Route("slow", timings=NO_WAITS, goes_on=True), Route("ops", timings=NO_WAITS)))
WITHIN_S = 20


class Hanging(MemoryReceiver):
    """Answers when it is let go; remembers how many were in it at once."""

    def __init__(self, rate_limit_key: str = "") -> None:
        super().__init__(rate_limit_key=rate_limit_key)
        self.entered, self.go, self.inside, self.most = threading.Event(), threading.Event(), 0, 0

    def deliver(self, notification: Notification) -> Receipt:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        assert self.go.wait(WITHIN_S)
        self.inside -= 1
        return super().deliver(notification)


@pytest.fixture
def slow() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.go.set()


def notifier(store: Store, slow: Hanging, ops: MemoryReceiver) -> Notifier:
    receivers = {"slow": slow, "ops": ops}
    return Notifier(store, Policy(BOTH, hurry=True), receivers, SteadyClock(), interval_s=0, begin=on_a_thread)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def told(receiver: MemoryReceiver) -> list[tuple[str, int]]:
    return [(each.incident.id, each.incident.revision) for each in receiver.notifications]


def test_others_are_told_while_one_hangs_and_it_is_told_everything_in_the_end(store: Store, slow: Hanging) -> None:
    ops, scene = MemoryReceiver(), Scene(store, {})
    telling = notifier(store, slow, ops)
    for number in range(3):
        scene.put(id=f"inc-{number}")
    until(lambda: telling.step() >= 0 and telling.backlog() == 3)
    assert (len(ops.notifications), slow.notifications) == (3, [])
    slow.go.set()
    until(lambda: telling.step() >= 0 and len(slow.notifications) == 3)
    assert told(slow) == told(ops) == [(f"inc-{number}", 1) for number in range(3)]
    assert slow.most == 1
    until(lambda: telling.step() >= 0 and telling.backlog() == 0)


def test_what_changes_while_it_is_being_told_is_told_afterwards(store: Store, slow: Hanging) -> None:
    scene, telling = Scene(store, {}), notifier(store, slow, MemoryReceiver())
    scene.put()
    telling.step()
    assert slow.entered.wait(WITHIN_S)
    scene.put(revision=2, status="resolved")
    telling.step()
    assert store.outbox().entries()["slow", "inc-1"].state is DeliveryState.SENDING
    slow.go.set()
    until(lambda: telling.step() >= 0 and len(slow.notifications) == 2)
    assert told(slow) == [("inc-1", 1), ("inc-1", 2)]


def test_receivers_of_one_channel_share_its_lane(store: Store) -> None:
    slow, other = Hanging(rate_limit_key="channel"), MemoryReceiver(rate_limit_key="channel")
    telling = notifier(store, slow, other)
    Scene(store, {}).put()
    until(lambda: telling.step() >= 0 and slow.entered.is_set())
    telling.step()
    assert other.notifications == []
    slow.go.set()
    until(lambda: telling.step() >= 0 and len(slow.notifications) == len(other.notifications) == 1)


def test_a_loop_that_is_woken_does_not_rest_any_longer(store: Store, slow: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.deliver.notifier.POLL_S", 2.0 * WITHIN_S)
    ops, stop = MemoryReceiver(), threading.Event()
    telling, scene = notifier(store, slow, ops), Scene(store, {})
    slow.go.set()
    loop = threading.Thread(target=telling.run, args=(stop, pytest.fail))
    loop.start()
    for number in range(2):
        scene.put(id=f"inc-{number}")
        telling.wake()
        until(lambda number=number: len(ops.notifications) == len(slow.notifications) == number + 1)
    stop.set()
    telling.wake()
    loop.join(WITHIN_S)
    assert not loop.is_alive()


def test_an_attempt_under_way_is_taken_up_before_the_loop_ends(store: Store, slow: Hanging) -> None:
    telling, stop = notifier(store, slow, MemoryReceiver()), threading.Event()
    Scene(store, {}).put()
    loop = threading.Thread(target=telling.run, args=(stop, pytest.fail))
    loop.start()
    assert slow.entered.wait(WITHIN_S)
    stop.set()
    slow.go.set()
    loop.join(WITHIN_S)
    assert not loop.is_alive()
    assert store.outbox().entries()["slow", "inc-1"].state is DeliveryState.DELIVERED


def test_a_run_that_ends_waits_for_what_is_under_way(store: Store, slow: Hanging) -> None:
    telling = notifier(store, slow, MemoryReceiver())
    Scene(store, {}).put()
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        slow.go.set()
        time.sleep(seconds)

    assert telling.drain(wait) == 2
    assert waits
