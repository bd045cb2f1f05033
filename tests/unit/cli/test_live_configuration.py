"""A run takes up a changed configuration: the next incident goes to the new receiver, changed rules become a new plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.cli.config_reloading import RunConfiguration
from engine.cli.live_configuration import LiveConfiguration, LiveNotifications, LiveReceivers
from engine.cli.monitoring import Monitoring
from engine.cli.notifying import build
from engine.cli.receiving import open_receivers
from engine.cli.rulebook import configured_plan
from engine.config import load
from engine.model.notifications import Notification
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import TOO_LARGE

BASE = "sources: [{type: files, paths: [a.log]}]\nrules: [mine]\nnotify_max_age: 0s\n"
RULE = "id: {0}\ntitle: t\nseverity: info\ncomponent: any\ndetection: {{seen: something bad, condition: seen}}\n"
ROUTE = "route: {{receiver: {0}, group_wait: 0s}}\n"


class Running:
    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.said, self.shown = folder, folder / "tocsin.yml", list[str](), list[Notification]()
        (folder / "mine").mkdir()
        (folder / "mine" / "first.yml").write_text(RULE.format("first"))
        self.path.write_text(BASE + ROUTE.format("a") + "receivers: [{name: a, terminal: {}}]\n")
        settings = load(self.path)
        plan = configured_plan(settings)
        receivers = open_receivers(settings.receivers, self.shown.append)
        self.store = Store.open(settings.store)
        self.notifier = build(
            self.store, settings, receivers, self.said.append, False, Monitoring(settings, self.store, has_notifier=True)
        )
        self.asked = threading.Event()
        live_receivers = LiveReceivers(settings, receivers, self.notifier, self.shown.append)
        self.live = LiveConfiguration(RunConfiguration(self.path), settings, plan, live_receivers, self.said.append, self.asked)
        self.notifications = LiveNotifications(self.path, settings, live_receivers, self.said.append, self.asked)

    def put(self, number: int) -> None:
        with self.store.batch(BatchId("query", number)) as ledger:
            ledger.put_incidents([replace(TOO_LARGE, id=f"inc-{number}", key=("default", "x", (("n", str(number)),)))])
        self.notifier.drain(time.sleep, self.said.append)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.store.close()


def test_a_new_receiver_is_opened_and_notified_and_the_plan_stays(running: Running) -> None:
    running.put(1)
    running.path.write_text(
        BASE + ROUTE.format("b") + "receivers: [{name: b, terminal: {}}, {name: c, slack: {webhook_url: 'env:NOT_SET'}}]\n"
    )
    running.asked.set()
    assert running.live.renewed() is None
    assert "env:NOT_SET" in running.said[0], "a secret that is not there refuses the change as a whole"
    running.path.write_text(BASE + ROUTE.format("b") + "receivers: [{name: b, terminal: {}}]\n")
    running.asked.set()
    assert running.live.renewed() is None
    assert running.said[-2].endswith("taken up: route, receivers")
    running.put(2)
    outbox = running.store.outbox()
    assert {*outbox.notification_logs()} == {("a", "inc-1"), ("b", "inc-1"), ("b", "inc-2")}, "open ones go to it too"


def test_an_override_and_a_changed_rule_give_a_new_plan(running: Running) -> None:
    running.path.write_text(
        BASE + ROUTE.format("a") + "receivers: [{name: a, terminal: {}}]\noverrides: {first: {labels: {team: data}}}\n"
    )
    running.asked.set()
    plan = running.live.renewed()
    assert plan is not None
    assert plan.rules()["first"].labels == {"team": "data"}
    (running.folder / "mine" / "second.yml").write_text(RULE.format("second"))
    running.asked.set()
    plan = running.live.renewed()
    assert plan is not None
    assert {*plan.rules()} == {"first", "second"}
    assert plan.rules()["first"].labels == {"team": "data"}, "the rules are read with the new overrides"


def test_rules_with_errors_refuse_the_change(running: Running) -> None:
    running.path.write_text(running.path.read_text() + "overrides: {nothing-like-this: {severity: low}}\n")
    running.asked.set()
    assert running.live.renewed() is None
    assert "rules that do not exist: nothing-like-this" in running.said[0]


def test_a_process_that_only_notifies_takes_up_its_part(running: Running) -> None:
    running.put(1)
    running.path.write_text(BASE + ROUTE.format("b") + "receivers: [{name: b, terminal: {}}]\nretention: 1d\n")
    running.asked.set()
    running.notifications.poll()
    assert not running.asked.is_set()
    running.put(2)
    assert {*running.store.outbox().notification_logs()} == {("a", "inc-1"), ("b", "inc-1"), ("b", "inc-2")}
    assert [sentence for sentence in running.said if "retention" in sentence]
