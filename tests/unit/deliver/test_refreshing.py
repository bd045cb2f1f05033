"""Open incidents are sent again to a receiver that forgets them: in time, after a restart, and never after their end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from connectors.alertmanager import open_receiver
from engine.deliver import Policy
from engine.deliver.in_flight import InFlightSet, Work
from engine.deliver.refreshing import Refresher
from engine.model.notifications import DeliveryState, Receipt
from engine.model.routes import Route, Timings
from engine.store import Store
from tests.standins.alertmanager import AlertmanagerStandIn
from tests.unit.deliver.scene import START, Scene

MINUTE = 60.0
WITHIN = Policy(Route("ops", timings=Timings(0.0, 0.0, 4 * 3600.0)))


@pytest.fixture
def server() -> Iterator[AlertmanagerStandIn]:
    with AlertmanagerStandIn() as running:
        yield running


@pytest.fixture
def scene(server: AlertmanagerStandIn, store: Store) -> Scene:
    scene = Scene(store, {}, WITHIN)
    scene.receivers = {"ops": replace(open_receiver(server.address), now=lambda: scene.now)}
    scene.restart()
    return scene


def active(scene: Scene, server: AlertmanagerStandIn) -> list[str]:
    return [labels["incident"] for labels in server.active(scene.now)]


def run(scene: Scene, until_s: float) -> None:
    """Let the notifier step every minute up to `until_s` after the start."""
    at = (scene.now - START).total_seconds()
    while at < until_s:
        at = min(at + MINUTE, until_s)
        scene.at(at)


def test_an_open_incident_stays_active_for_hours_and_nothing_is_recorded_of_that(
    scene: Scene, server: AlertmanagerStandIn
) -> None:
    scene.put()
    scene.put(id="inc-2", severity="low")
    scene.at(0)
    for hour in range(1, 4):
        run(scene, hour * 3600.0)
        assert active(scene, server) == ["inc-1", "inc-2"]
    assert scene.outcomes() == [("opened", "delivered")]
    assert server.count("alerts") < 2 + 40, "one request in five minutes for all of them"


def test_after_its_end_it_is_not_sent_again(scene: Scene, server: AlertmanagerStandIn) -> None:
    scene.put()
    scene.at(0)
    run(scene, 1200.0)
    scene.put(status="resolved", revision=2, resolved_at=scene.now)
    scene.at(1201)
    assert active(scene, server) == []
    posts = server.count("alerts")
    run(scene, 3600.0)
    assert server.count("alerts") == posts


def test_a_muted_end_is_told_by_the_refresh(scene: Scene, server: AlertmanagerStandIn) -> None:
    scene.policy = replace(WITHIN, tree=replace(WITHIN.tree, timings=Timings(0.0, 7200.0, 0.0)))
    scene.restart()
    scene.put()
    scene.at(0)
    scene.put(status="resolved", revision=2, resolved_at=scene.now)
    run(scene, 600.0)
    assert active(scene, server) == []
    assert scene.outcomes() == [("opened", "delivered")], "that it is over waits for group_interval"


def test_a_new_process_sends_them_at_once(scene: Scene, server: AlertmanagerStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.wait(890.0)
    scene.restart()
    scene.notifier.step()
    scene.wait(60.0)
    assert active(scene, server) == ["inc-1"]


def test_a_receiver_that_a_reload_replaces_is_refreshed_from_then_on(scene: Scene, server: AlertmanagerStandIn) -> None:
    scene.put()
    scene.at(0)
    with AlertmanagerStandIn() as moved:
        scene.notifier.reconfigure(WITHIN, {"ops": replace(open_receiver(moved.address), now=lambda: scene.now)})
        run(scene, 3600.0)
        assert active(scene, moved) == ["inc-1"]


def test_failures_are_said_once_and_mended_by_the_next(scene: Scene, server: AlertmanagerStandIn) -> None:
    remarks: list[str] = []
    scene.put()
    scene.at(0)
    server.script("alerts", "status:503", "status:503")
    for minute in range(1, 14):
        scene.at(minute * MINUTE)
        remarks += scene.notifier._taken_remarks()
    assert remarks == ["ops could not be sent the open incidents again: Alertmanager answers with status 503: no"]
    run(scene, 1000.0)
    assert active(scene, server) == ["inc-1"]


def test_none_is_sent_beside_a_notification_to_the_same_receiver(scene: Scene, server: AlertmanagerStandIn) -> None:
    held: list[Work] = []
    in_flight = InFlightSet(held.append)
    refresher = Refresher(in_flight)
    scene.put()
    scene.at(0)
    refresher.step(scene.notifier._planner, scene.receivers, scene.now)
    refresher.step(scene.notifier._planner, scene.receivers, scene.now + timedelta(hours=1))
    assert len(held) == 1, "the first one is still in flight"
    held[0]()
    (finished,) = in_flight.finished()
    assert finished[1] == Receipt(DeliveryState.DELIVERED)
    refresher.step(scene.notifier._planner, scene.receivers, scene.now + timedelta(hours=1))
    assert len(held) == 2
