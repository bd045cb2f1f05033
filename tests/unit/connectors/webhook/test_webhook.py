"""The generic webhook: one JSON document a notification, its token only where it is safe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connectors.webhook import open_receiver
from engine.errors import UsageError
from engine.model.answers import incident_value
from engine.model.links import LineLinks, Link
from engine.model.notifications import DeliveryState, Notification, Reason
from tests.standins.slack import SlackStandIn
from tests.unit.cli.incidents import TOO_LARGE


def test_what_is_posted() -> None:
    with SlackStandIn() as server:
        receiver = open_receiver(f"{server.address}/hook", incident_value, "secret")
        links = (Link("incident", "https://tocsin.example/incidents/inc-1"),)
        lines = {TOO_LARGE.evidence[0].event_id: LineLinks((Link("line", "https://k/1"),), "a: b")}
        told = Notification(TOO_LARGE, Reason.ESCALATED, "severity is critical now", links=links, lines=lines, query="c: d")
        receipt = receiver.deliver(told)
        ((headers, said),) = server.hooks
    assert receipt.state is DeliveryState.DELIVERED
    assert (said["schema"], said["reason"], said["news"]) == (1, "escalated", "severity is critical now")
    assert said["incident"] == incident_value(TOO_LARGE)
    assert said["query"] == "c: d" and said["lines"] == [{"links": {"line": "https://k/1"}, "query": "a: b"}]
    assert said["links"] == {"incident": "https://tocsin.example/incidents/inc-1"}
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Idempotency-Key"] == "inc-0123456789/2/escalated"


def test_each_repetition_is_a_request_of_its_own_and_an_attempt_that_is_made_again_is_not() -> None:
    with SlackStandIn() as server:
        receiver = open_receiver(f"{server.address}/hook", incident_value)
        noon = datetime(2026, 10, 5, 12, tzinfo=UTC)
        for last_at in (noon, noon, noon + timedelta(hours=4)):
            receiver.deliver(Notification(TOO_LARGE, Reason.REPEATED, last_at=last_at))
        first, again, next_one = (headers["Idempotency-Key"] for headers, _ in server.hooks)
    assert first == again != next_one


@pytest.mark.parametrize(
    ("status", "state"), [(400, DeliveryState.REJECTED), (422, DeliveryState.REJECTED), (410, DeliveryState.REJECTED)]
)
def test_what_the_listener_has_judged_is_final(status: int, state: DeliveryState) -> None:
    with SlackStandIn() as server:
        server.script("hook", f"status:{status}")
        receipt = open_receiver(f"{server.address}/hook", incident_value).deliver(Notification(TOO_LARGE, Reason.OPENED))
        assert receipt.state is state


@pytest.mark.parametrize(("url", "token"), [("http://page.example/", "secret"), ("ftp://page.example/", ""), ("file:///x", "")])
def test_addresses_that_are_refused(url: str, token: str) -> None:
    with pytest.raises(UsageError):
        open_receiver(url, incident_value, token)
    open_receiver("http://page.example/", incident_value)
