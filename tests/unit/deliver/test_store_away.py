"""A store that another process holds, or that is away: no receipt is lost, nothing is told twice, nothing stays `sending`."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from connectors import slack
from connectors.memory import MemoryReceiver
from engine.clock import SteadyClock
from engine.deliver import Notifier, Policy, on_a_thread
from engine.deliver.resuming import LEASE
from engine.errors import StoreAway
from engine.model.notifications import DeliveryState, Notification, Receipt
from engine.model.routes import Route, Timings
from engine.store import Store
from tests.standins.slack import TOKEN, SlackStandIn
from tests.unit.deliver.scene import START, Scene
from tests.unit.deliver.test_in_flight import WITHIN_S, Hanging, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tocsin.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{path}", busy_s=0.01)
    yield opened
    opened.close()


class Hold:
    """Another process that begins to write, and goes on for as long as it likes."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def end(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def hold(store: Store, path: Path) -> Iterator[Hold]:
    with closing(Hold(path)) as other:
        yield other


class Locking(MemoryReceiver):
    """Its answer comes when somebody else has just locked the store."""

    def __init__(self, lock: Callable[[], None]) -> None:
        super().__init__()
        self.lock = lock

    def deliver(self, notification: Notification) -> Receipt:
        self.lock()
        return super().deliver(notification)


def test_a_receipt_that_cannot_be_written_is_kept_and_written_when_the_store_is_free(store: Store, hold: Hold) -> None:
    ops = Locking(hold.begin)
    scene = Scene(store, {"ops": ops}, Policy(Route("ops", timings=Timings(0, 0, 0))))
    scene.put()
    scene.at(0)
    assert len(ops.notifications) == 1
    assert scene.entry().state is DeliveryState.SENDING
    for second in range(1, 90):
        with pytest.raises(StoreAway):
            scene.at(second)
    hold.end()
    ops.lock = lambda: None
    scene.at(91)
    assert scene.entry().state is DeliveryState.DELIVERED
    assert scene.outcomes() == [("opened", "delivered")]
    assert scene.store.outbox().notification_logs()["ops", "inc-1"].at == START
    scene.at(1000)
    assert len(ops.notifications) == 1


def test_nothing_is_sent_while_it_cannot_be_written_down_that_it_is(store: Store, hold: Hold) -> None:
    ops = MemoryReceiver()
    scene = Scene(store, {"ops": ops})
    scene.put()
    scene.at(0)
    hold.begin()
    with pytest.raises(StoreAway):
        scene.at(30)
    assert ops.notifications == []
    hold.end()
    assert scene.at(31) == 1


def test_what_changed_while_the_store_was_locked_is_not_forgotten(store: Store, hold: Hold) -> None:
    ops = MemoryReceiver()
    scene = Scene(store, {"ops": ops})
    scene.put()
    hold.begin()
    with pytest.raises(StoreAway):
        scene.at(0)
    hold.end()
    assert [scene.at(1), scene.at(31)] == [0, 1]


def test_a_process_that_dies_with_an_unwritten_receipt_searches_slack_first(store: Store, hold: Hold) -> None:
    with SlackStandIn() as server:
        receiver = slack.open_receiver("#kafka-ops", TOKEN, server.base_url)
        locking = Locking(hold.begin)
        locking.deliver = lambda what: (hold.begin(), receiver.deliver(what))[1]
        scene = Scene(store, {"ops": locking}, Policy(Route("ops", timings=Timings(0, 0, 0))))
        scene.put()
        scene.at(0)
        assert len(server.parents()) == 1
        hold.end()
        scene.receivers = {"ops": receiver}
        scene.wait(60)
        scene.restart()
        assert scene.at(61) == 1
        assert len(server.parents()) == 1
        assert scene.entry().state is DeliveryState.DELIVERED


def test_a_run_that_ends_waits_for_the_store(store: Store, hold: Hold) -> None:
    ops = Locking(hold.begin)
    scene = Scene(store, {"ops": ops}, Policy(Route("ops"), hurry=True))
    scene.put()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        scene.wait(seconds)
        pauses.append(seconds)
        if len(pauses) == 90:
            hold.end()

    assert scene.notifier.drain(pause) == 1
    assert len(pauses) == 90
    assert scene.entry().state is DeliveryState.DELIVERED


def test_the_loop_waits_for_the_store_says_so_after_a_while_and_writes_before_it_ends(
    store: Store, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.deliver.notifier.POLL_S", 0.01)
    monkeypatch.setattr("engine.store.outage.ANNOUNCE_AFTER_S", 0.05)
    ops, stop, sentences = Locking(hold.begin), threading.Event(), []
    waiting = threading.Event()

    def say(sentence: str) -> None:
        sentences.append(sentence)
        waiting.set()

    policy = Policy(Route("ops", timings=Timings(0, 0, 0)))
    telling = Notifier(store, policy, {"ops": ops}, SteadyClock(), begin=on_a_thread)
    Scene(store, {}).put()
    loop = threading.Thread(target=telling.run, args=(stop, say))
    loop.start()
    assert waiting.wait(WITHIN_S)
    stop.set()
    hold.end()
    loop.join(WITHIN_S)
    assert not loop.is_alive()
    assert "waiting for the incident store" in sentences[0]
    assert store.outbox().entries()["ops", "inc-1"].state is DeliveryState.DELIVERED


@contextmanager
def hanging(store: Store) -> Iterator[tuple[Scene, Hanging]]:
    slow = Hanging(rate_limit_key="channel")
    scene = Scene(store, {"ops": slow}, Policy(Route("ops", timings=Timings(0, 0, 0))))
    scene.notifier = Notifier(store, scene.policy, scene.receivers, scene.clock(), begin=on_a_thread)
    scene.put()
    scene.at(0)
    assert slow.entered.wait(WITHIN_S)
    yield scene, slow
    slow.go.set()


def test_an_attempt_that_nobody_hears_of_is_given_up_and_tried_again_as_unsure(store: Store) -> None:
    with hanging(store) as (scene, slow):
        scene.at(LEASE.total_seconds() - 1)
        assert scene.entry().state is DeliveryState.SENDING
        scene.at(LEASE.total_seconds())
        assert (scene.entry().state, scene.entry().unsure_since) == (DeliveryState.RETRY_LATER, START)
        slow.entered.clear()
        scene.at(LEASE.total_seconds() + 10)
        assert slow.entered.wait(WITHIN_S)
        assert scene.entry().state is DeliveryState.SENDING


def test_an_answer_that_comes_late_is_taken_up_all_the_same(store: Store) -> None:
    with hanging(store) as (scene, slow):
        scene.at(LEASE.total_seconds())
        slow.go.set()
        until(lambda: scene.notifier.step() >= 0 and scene.entry().state is DeliveryState.DELIVERED)
        scene.at(LEASE.total_seconds() + 60)
        assert len(slow.notifications) == 1


@pytest.mark.parametrize("after_s", [1e9, float("inf"), float("9" * 400)])
def test_a_receiver_is_waited_for_an_hour_at_most(store: Store, after_s: float) -> None:
    ops = MemoryReceiver(answers=[Receipt(DeliveryState.RETRY_LATER, "come back next year", after_s=after_s)])
    scene = Scene(store, {"ops": ops}, Policy(Route("ops", timings=Timings(0, 0, 0))))
    scene.put()
    scene.at(0)
    assert scene.entry().due_at == START + timedelta(hours=1)
    assert [scene.at(3599), scene.at(3600)] == [0, 1]


@pytest.mark.parametrize("after_s", [0.0, -5.0])
def test_a_receiver_that_asks_for_no_wait_is_not_hammered(store: Store, after_s: float) -> None:
    ops = MemoryReceiver(answers=[Receipt(DeliveryState.RETRY_LATER, "again", after_s=after_s)] * 9)
    scene = Scene(store, {"ops": ops}, Policy(Route("ops", timings=Timings(0, 0, 0))))
    scene.put()
    scene.at(0)
    assert scene.entry().due_at == START + timedelta(seconds=1)


def test_a_wait_that_is_no_number_is_none(store: Store) -> None:
    ops = MemoryReceiver(answers=[Receipt(DeliveryState.RETRY_LATER, "again", after_s=float("nan"))])
    scene = Scene(store, {"ops": ops}, Policy(Route("ops", timings=Timings(0, 0, 0))))
    scene.put()
    scene.at(0)
    assert scene.entry().due_at == START + timedelta(seconds=5)
