"""Whatever happens between the store, the clock, the process and a receiver: everything is told, and nothing twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.deliver import Policy
from engine.errors import StoreAway
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.model.routes import Route, Timings
from engine.route.floods import SINGLES
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident
from tests.unit.deliver.scene import Scene

LATER = Receipt(DeliveryState.RETRY_LATER, "not now", after_s=5)
YEAR_S = 365 * 86400


class Channel:
    """A receiver as Slack is: it edits by its mark, and looks for a message of unknown outcome before it posts another."""

    edits, records, rate_limit_key = True, False, "channel"

    def __init__(self) -> None:
        self.messages: list[tuple[str, Notification]] = []
        self.faults: list[str] = []
        self.lock = lambda: None

    def deliver(self, what: Notification) -> Receipt:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "later":
            return LATER
        ts = what.marks.get("ts") or self._searched(what)
        if ts:
            self.messages[int(ts) - 1] = (what.incident.id, what)
        else:
            self.messages.append((what.incident.id, what))
            ts = str(len(self.messages))
        if fault == "lost":
            return Receipt(DeliveryState.RETRY_LATER, "the connection broke", unsure=True)
        if fault == "locked":
            self.lock()
        return Receipt(DeliveryState.DELIVERED, marks={"ts": ts})

    def _searched(self, what: Notification) -> str:
        if what.unsure_since is None:
            return ""
        return next((str(n) for n, (key, _) in enumerate(self.messages, 1) if key == what.incident.id), "")


class World:
    """A scene, and somebody who locks its store."""

    def __init__(self, folder: Path) -> None:
        self.channel = Channel()
        self.store = Store.open(f"sqlite:///{folder}/tocsin.db", busy_s=0.001)
        policy = Policy(Route("ops", timings=Timings(5, 60, 0)), max_age_s=0)
        self.scene = Scene(self.store, {"ops": self.channel}, policy)
        self.other = sqlite3.connect(folder / "tocsin.db", isolation_level=None)
        self.channel.lock = self.lock
        self.ids: list[str] = []

    def lock(self) -> None:
        if not self.other.in_transaction:
            self.other.execute("BEGIN IMMEDIATE")

    def unlock(self) -> None:
        if self.other.in_transaction:
            self.other.execute("COMMIT")

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.scene.wait(1)
            with suppress(StoreAway):
                self.scene.notifier.step()

    def put(self, number: int, severity: str) -> None:
        ids = [f"inc-{len(self.ids) + n}" for n in range(number)]
        self.ids += ids
        self.unlock()
        with self.store.batch(BatchId("query", next(self.scene.batches))) as ledger:
            ledger.put_incidents(incident(id=id_, revision=1, severity=severity, symptoms=()) for id_ in ids)

    def do(self, step: tuple[str, int]) -> None:
        what, number = step
        if what in ("low", "high"):
            self.put(number, what)
        elif what == "flood":
            self.put(SINGLES + number, "low")
        elif what in ("later", "lost", "locked"):
            self.channel.faults.append(what)
        elif what == "wait":
            self.wait(5 * number)
        elif what == "jump":
            self.scene.off = timedelta(seconds=(number - 3) * YEAR_S)
        elif what == "kill":
            self.scene.restart()
        elif what == "die":
            self.die()
        else:
            getattr(self, what)()

    def die(self) -> None:
        """Let the process end after a message was taken, and before that is in the store."""
        self.channel.faults.insert(0, "locked")
        self.put(1, "high")
        self.wait(8)
        self.scene.restart()

    def end(self) -> None:
        self.unlock()
        self.channel.faults.clear()
        self.scene.off = timedelta(0)
        self.wait(120)


KINDS = ("low", "high", "flood", "later", "lost", "locked", "wait", "wait", "wait", "jump", "kill", "die", "lock", "unlock")
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 6)), min_size=3, max_size=14)


# a history takes a tenth of a second, and making a failing one smaller would take minutes
UNSHRUNK = {"deadline": None, "phases": (Phase.explicit, Phase.reuse, Phase.generate)}


@settings(max_examples=settings().max_examples // 8, suppress_health_check=[HealthCheck.too_slow], **UNSHRUNK)
@given(STEPS)
def test_everything_is_told_once(steps: list[tuple[str, int]]) -> None:
    check(steps)


@pytest.mark.slow
@pytest.mark.long
@settings(max_examples=4 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], **UNSHRUNK)
@given(STEPS)
def test_everything_is_told_once_in_many_histories(steps: list[tuple[str, int]]) -> None:
    check(steps)


def check(steps: list[tuple[str, int]]) -> None:
    """Play a history to its end, and compare what the channel holds with what was to be told."""
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        with closing(world.other), closing(world.store):
            for step in steps:
                world.do(step)
            world.end()
            unsettled = {each.state for each in world.store.outbox().entries().values()} - {DeliveryState.DELIVERED}
            world.scene.restart()
            world.wait(30)
            keys = Counter(key for key, _ in world.channel.messages)
            told = world.store.outbox().notification_logs()
    assert [key for key, times in keys.items() if times > 1] == []
    assert not unsettled, "nothing waits for another process"
    assert {id_ for _, id_ in told} >= set(world.ids)
    single = {key for key, what in world.channel.messages if what.reason is not Reason.DIGEST}
    digests = sum(what.incident.count for _, what in world.channel.messages if what.reason is Reason.DIGEST)
    assert single <= set(world.ids)
    assert len(single) + digests == len(world.ids), "each by itself, or in one digest"
