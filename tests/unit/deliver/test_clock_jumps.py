"""A clock that jumps: waits do not see it, it is said once, and what a wrong clock left in the store puts nothing off."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from msgspec.structs import replace

from connectors.memory import MemoryReceiver
from engine.clock import SETTLED_S
from engine.deliver import Policy
from engine.model.notifications import DeliveryState, Reason, Receipt
from engine.model.routes import Route, Silence
from engine.store import Store
from tests.unit.deliver.scene import START, Scene

YEAR = timedelta(days=365)
JUMPS = pytest.mark.parametrize("by", [YEAR, -YEAR, timedelta(hours=2)])


@pytest.fixture
def scene(store: Store, ops: MemoryReceiver) -> Scene:
    return Scene(store, {"ops": ops}, Policy(Route("ops"), max_age_s=3600))


def reasons(receiver: MemoryReceiver) -> list[str]:
    return [each.reason.value for each in receiver.notifications]


@JUMPS
def test_what_is_new_when_the_clock_has_jumped_is_told_as_new_and_in_time(
    scene: Scene, ops: MemoryReceiver, by: timedelta
) -> None:
    scene.at(0)
    scene.off = by
    scene.put(last_seen=START)
    assert [scene.at(s) for s in (1, 30, 31)] == [0, 0, 1]
    assert reasons(ops) == ["opened"]
    assert scene.store.outbox().notification_logs()["ops", "inc-1"].at == START + timedelta(seconds=31)


@JUMPS
def test_repetitions_and_retries_come_when_they_would_have(scene: Scene, ops: MemoryReceiver, by: timedelta) -> None:
    ops.answers = [Receipt(DeliveryState.RETRY_LATER, "not now", after_s=100)]
    scene.put(last_seen=START)
    scene.at(0)
    scene.at(30)
    scene.off = by
    assert [scene.at(s) for s in (31, 129, 130, 200, 4 * 3600)] == [0, 0, 1, 0, 0]
    assert scene.at(4 * 3600 + 130) == 1, "the new time was believed meanwhile, and the wait was not changed by it"
    assert reasons(ops) == ["opened", "repeated"]
    told_at = scene.store.outbox().notification_logs()["ops", "inc-1"].at
    assert told_at == START + timedelta(seconds=4 * 3600 + 130) + by


@JUMPS
def test_a_silence_lasts_as_long_as_was_asked_for(scene: Scene, ops: MemoryReceiver, by: timedelta) -> None:
    scene.store.outbox().put_silence(Silence("s", (), START, START + timedelta(seconds=300)))
    scene.put(last_seen=START)
    scene.at(0)
    scene.off = by
    assert [scene.at(s) for s in (31, 299, 300)] == [0, 0, 1]


def test_a_jump_is_said_once_and_so_is_that_it_is_believed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, sentences, steps = threading.Event(), [], iter([0, 1, 2, SETTLED_S + 1, SETTLED_S + 2])
    step = scene.notifier.step
    scene.off = YEAR

    def stepped() -> int:
        second = next(steps, None)
        if second is None:
            stop.set()
        else:
            scene.now = START + timedelta(seconds=second)
        return step()

    monkeypatch.setattr("engine.deliver.notifier.POLL_S", 0.001)
    monkeypatch.setattr(scene.notifier, "step", stepped)
    scene.notifier.run(stop, sentences.append)
    assert len(sentences) == 2
    assert sentences[0].startswith("the clock of this machine went forward by 365 d: waits go on as if it had not")
    assert "is believed now" in sentences[1]


def test_a_digest_of_next_year_is_told_when_the_clock_was_put_right(scene: Scene, ops: MemoryReceiver) -> None:
    scene.off = YEAR
    scene.restart()
    scene.put(last_seen=START - timedelta(hours=9))
    scene.put(id="inc-2", last_seen=START)
    scene.at(0)
    assert [scene.entry(id=id_).state for id_ in ("inc-1", "inc-2")] == [DeliveryState.BACKFILL] * 2
    scene.off = timedelta(0)
    scene.restart()
    assert [scene.at(1), scene.at(2)] == [1, 0]
    assert [scene.at(30), scene.at(31)] == [0, 1], "it was old by the wrong clock only"
    scene.restart()
    assert [scene.at(32), scene.at(4000)] == [0, 0]
    scene.put(id="inc-3", last_seen=START - timedelta(hours=9))
    assert [scene.at(4001), scene.at(4061)] == [0, 1]
    told = [(each.reason.value, each.incident.id[:5], each.incident.count) for each in ops.notifications]
    assert told == [("backfill", "backf", 1), ("opened", "inc-2", 1), ("backfill", "backf", 1)]


def test_times_from_the_future_put_nothing_off_after_a_restart(scene: Scene, ops: MemoryReceiver) -> None:
    scene.off = YEAR
    scene.restart()
    for number in range(3):
        scene.put(id=f"inc-{number}", last_seen=None, first_seen=None)
    ops.answers = [
        Receipt(DeliveryState.DELIVERED),
        Receipt(DeliveryState.RETRY_LATER, "who knows", unsure=True),
        Receipt(DeliveryState.REJECTED, "no"),
    ]
    scene.at(0)
    scene.at(30)
    scene.off = timedelta(0)
    scene.restart()
    sentences: list[str] = []
    scene.notifier.drain(scene.wait, sentences.append)
    assert sentences == [
        "the clock of this machine is 365 d behind times in the incident store: later times count as the present"
    ]
    assert sorted((each.incident.id, each.reason.value) for each in ops.notifications) == [
        ("inc-0", "opened"),
        ("inc-1", "opened"),
        ("inc-2", "opened"),
    ]
    (unsure,) = [each for each in ops.notifications if each.incident.id == "inc-1"]
    assert unsure.unsure_since is not None
    assert unsure.unsure_since < START, "a message that was sent before now is looked for before now"
    assert [scene.at(4 * 3600 + 29), scene.at(4 * 3600 + 100)] == [0, 3]


def test_a_wait_that_a_wrong_clock_or_an_older_version_left_ends_within_an_hour(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put(last_seen=START)
    scene.at(0)
    scene.store.outbox().put(
        replace(scene.entry(), state=DeliveryState.RETRY_LATER, due_at=START + YEAR, attempts=1, attempt_at=START)
    )
    scene.restart()
    assert [scene.at(s) for s in (1, 3599, 3601)] == [0, 0, 1]


@pytest.mark.parametrize("state", [DeliveryState.QUEUED, DeliveryState.SENDING, DeliveryState.FOLDED])
def test_a_flood_of_next_year_is_told_when_the_clock_was_put_right(store: Store, state: DeliveryState) -> None:
    ops = MemoryReceiver(rate_limit_key="channel")
    scene = Scene(store, {"ops": ops}, off=YEAR)
    for number in range(30):
        scene.put(id=f"inc-{number}", severity="low", last_seen=START)
    scene.at(0)
    if state is not DeliveryState.QUEUED:
        scene.at(30)
    if state is DeliveryState.SENDING:
        (digest,) = [each for each in store.outbox().entries().values() if each.reason is Reason.DIGEST]
        store.outbox().put(replace(digest, state=DeliveryState.SENDING, attempts=1, attempt_at=digest.due_at))
    scene.off = timedelta(0)
    scene.restart()
    for second in range(31, 120):
        scene.at(second)
    assert [(each.reason, each.incident.count) for each in ops.notifications] == [(Reason.DIGEST, 30)]
