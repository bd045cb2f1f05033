"""The desk of a run: people's clicks reach its store, wake its notifier, and leave with the run."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.cli.desk import StoreDesk, listening_to_people
from engine.cli.receiving import open_receivers
from engine.config import load
from engine.errors import UnknownIncident
from engine.store import Store
from tests.standins.slack import TOKEN
from tests.standins.slack_socket import APP_TOKEN, LATE_S, SlackWithPeople
from tests.unit.deliver.scene import Scene

SLACK = 'token: "env:TOCSIN_TEST_TOKEN", base_url: "BASE"'
WITH_PEOPLE = f'{SLACK}, app_token: "env:TOCSIN_TEST_APP"'
CONFIG = f"""
sources: [{{type: files, paths: [a.log]}}]
route: {{receiver: ops}}
receivers:
  - {{name: ops, slack: {{channel: "#kafka-ops", {WITH_PEOPLE}}}}}
  - {{name: more, slack: {{channel: "#2339_데이터_모니터링", {WITH_PEOPLE}}}}}
  - {{name: quiet, slack: {{channel: "#kafka-ops", {SLACK}}}}}
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(Store.open(f"sqlite:///{tmp_path}/tocsin.db"), {})


def test_a_click_in_any_channel_of_an_app_is_recorded_and_wakes_the_notifier(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
    monkeypatch.setenv("TOCSIN_TEST_APP", APP_TOKEN)
    woken = threading.Event()
    with SlackWithPeople() as server:
        (tmp_path / "tocsin.yml").write_text(CONFIG.replace("BASE", server.base_url), encoding="utf-8")
        settings = load(tmp_path / "tocsin.yml")
        scene.receivers = open_receivers(settings.receivers, lambda notification: None)
        scene.restart()
        scene.put()
        scene.at(0)
        scene.at(30)
        with listening_to_people(settings, scene.receivers, scene.store, woken.set, lambda sentence: None):
            server.wait_connected()
            (message,) = server.parents()
            server.answer(server.click(message, "acknowledge"), LATE_S)
            assert woken.wait(LATE_S)
            assert server.connections == 1, "one for an app, however many channels it has"
    assert [act.by for act in scene.store.acts().of("inc-1")] == ["jun"]
    scene.store.close()


def test_what_is_looked_up(scene: Scene) -> None:
    scene.put(severity="low")
    scene.put(id="inc-2", severity="critical")
    scene.put(id="inc-3", status="resolved")
    desk = StoreDesk(scene.store, lambda: None)
    incidents, total = desk.going_on(1)
    assert ([incident.id for incident in incidents], total) == (["inc-2"], 2)
    assert desk.find("3").id == "inc-3"
    with pytest.raises(UnknownIncident, match="not the beginning of one id alone"):
        desk.find("inc")
    scene.store.close()
