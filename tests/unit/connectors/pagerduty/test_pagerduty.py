"""PagerDuty: the events of an incident's life, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.pagerduty import PagerDutyReceiver, open_receiver
from engine.errors import UsageError
from engine.model.links import Link
from engine.model.notifications import DeliveryState, Notification, Reason
from tests.standins.pagerduty import ROUTING_KEY, PagerDutyStandIn
from tests.unit.cli.incidents import TOO_LARGE, incident


@pytest.fixture
def server() -> Iterator[PagerDutyStandIn]:
    with PagerDutyStandIn() as running:
        yield running


def receiver(server: PagerDutyStandIn) -> PagerDutyReceiver:
    return open_receiver(ROUTING_KEY, server.address)


def test_what_is_triggered(server: PagerDutyStandIn) -> None:
    links = (Link("incident", "https://tocsin.example/incidents/inc-1"), Link("kibana", "https://kibana.example/x"))
    receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED, links=links))
    (event,) = server.events
    payload = event["payload"]
    assert (event["event_action"], event["dedup_key"]) == ("trigger", TOO_LARGE.id)
    assert payload["summary"] == "CRITICAL: A Connect task produced a record larger than max.request.size"
    assert payload["source"] == "connector=cdc-source task=0 topic=A.B.C worker=kafka-connect-2"
    assert (payload["severity"], payload["class"], payload["component"]) == ("critical", TOO_LARGE.rule, "connect")
    assert payload["timestamp"] == "2023-02-03T02:05:02.285Z"
    assert payload["custom_details"]["Cause"] == TOO_LARGE.cause
    assert "producer.max.request.size=2097152" in payload["custom_details"]["Fix 1"]
    assert event["links"] == [{"href": x.url, "text": x.title} for x in links]
    assert (event["client"], event["client_url"]) == ("tocsin", links[0].url)


@pytest.mark.parametrize(
    ("severity", "expected"),
    [("critical", "critical"), ("high", "error"), ("medium", "warning"), ("low", "warning"), ("info", "info")],
)
def test_severities(server: PagerDutyStandIn, severity: str, expected: str) -> None:
    receiver(server).deliver(Notification(incident(severity=severity), Reason.OPENED))
    assert server.events[0]["payload"]["severity"] == expected


def test_the_life_of_an_alert(server: PagerDutyStandIn) -> None:
    marks: dict[str, str] = {}
    states = []
    for status in ("open", "acknowledged", "open", "resolved", "open", "merged"):
        receipt = receiver(server).deliver(Notification(incident(status=status), Reason.UPDATED, "", marks))
        assert receipt.state is DeliveryState.DELIVERED
        marks = dict(receipt.marks or {})
        states.append(server.alerts.get(TOO_LARGE.id))
    assert states == ["triggered", "acknowledged", "acknowledged", None, "triggered", None]


def test_one_that_somebody_has_already_is_triggered_and_acknowledged(server: PagerDutyStandIn) -> None:
    server.script("enqueue", "accept", "ratelimited:3")
    notification = Notification(incident(status="acknowledged"), Reason.OPENED)
    receipt = receiver(server).deliver(notification)
    assert (receipt.state, receipt.after_s, receipt.messages) == (DeliveryState.RETRY_LATER, 3.0, 1)
    assert receiver(server).deliver(Notification(notification.incident, Reason.OPENED, "", receipt.marks or {})).messages == 1
    assert [event["event_action"] for event in server.events] == ["trigger", "acknowledge"], "nothing is sent twice"


def test_a_digest_pages_for_what_is_open_only(server: PagerDutyStandIn) -> None:
    for severity, reason in (("info", Reason.BACKFILL), ("high", Reason.BACKFILL), ("info", Reason.DIGEST)):
        digest = incident(id=f"digest-{severity}-{reason.value}", severity=severity)
        assert receiver(server).deliver(Notification(digest, reason)).state is DeliveryState.DELIVERED
    assert list(server.alerts) == ["digest-high-backfill"]


def test_a_wrong_key_is_refused_in_its_words(server: PagerDutyStandIn) -> None:
    receipt = open_receiver("short", server.address).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert receipt.state is DeliveryState.REJECTED
    assert "Event object is invalid" in receipt.why


def test_a_key_is_sent_by_https_only() -> None:
    with pytest.raises(UsageError, match="a routing key is sent to https addresses"):
        open_receiver(ROUTING_KEY, "http://events.example/")
    assert open_receiver(ROUTING_KEY).rate_limit_key != open_receiver(ROUTING_KEY[::-1]).rate_limit_key
