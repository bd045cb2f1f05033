"""Alertmanager: labels that stay, ends that are right, and refreshes before an alert is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from connectors.alertmanager import AlertmanagerReceiver, open_receiver
from engine.errors import UsageError
from engine.model.links import Link
from engine.model.notifications import DeliveryState, Notification, Reason
from tests.standins.alertmanager import AlertmanagerStandIn
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

NOW = datetime(2023, 2, 3, 3, 0, tzinfo=UTC)
LATER = timedelta(minutes=15)


@pytest.fixture
def server() -> Iterator[AlertmanagerStandIn]:
    with AlertmanagerStandIn() as running:
        yield running


def receiver(server: AlertmanagerStandIn, now: datetime = NOW) -> AlertmanagerReceiver:
    return replace(open_receiver(server.address), now=lambda: now)


def deliver(server: AlertmanagerStandIn, now: datetime = NOW, marks: Any = None, **changes: Any) -> dict[str, str]:
    receipt = receiver(server, now).deliver(Notification(incident(**changes), Reason.UPDATED, "", marks or {}))
    assert receipt.state is DeliveryState.DELIVERED, receipt.why
    return dict(receipt.marks or {})


def test_what_is_posted(server: AlertmanagerStandIn) -> None:
    links = (Link("incident", "https://tocsin.example/incidents/inc-1"), Link("kibana", "https://kibana.example/x"))
    receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED, links=links))
    (alert,) = server.alerts.values()
    assert alert.labels == {
        "alertname": TOO_LARGE.rule,
        "severity": "critical",
        "component": "connect",
        "incident": TOO_LARGE.id,
        "cluster": "default",
        "connector": "cdc-source",
        "task": "0",
        "topic": "A.B.C",
        "worker": "kafka-connect-2",
    }
    assert (alert.starts_at, alert.ends_at) == (AT, NOW + LATER)
    assert alert.annotations["summary"].startswith("CRITICAL: A Connect task")
    assert alert.annotations["description"] == TOO_LARGE.cause
    assert "--add-config max.message.bytes=2097152" in alert.annotations["fix"]
    assert (alert.page, alert.annotations["logs"]) == (links[0].url, links[1].url)


def test_it_ends_when_the_incident_does(server: AlertmanagerStandIn) -> None:
    marks = deliver(server)
    assert len(server.active(NOW)) == 1
    deliver(server, NOW, marks, status="resolved", resolved_at=AT + timedelta(minutes=5))
    (alert,) = server.alerts.values()
    assert alert.ends_at == AT + timedelta(minutes=5)
    assert server.active(NOW) == []


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(0)])
def test_times_of_a_log_that_is_ahead_are_no_reason_to_refuse(server: AlertmanagerStandIn, ahead: timedelta) -> None:
    begin = NOW + ahead
    marks = deliver(server, first_seen=begin, last_seen=begin)
    deliver(server, NOW, marks, first_seen=begin, last_seen=begin, status="resolved", resolved_at=begin + timedelta(hours=1))
    assert server.active(NOW + timedelta(seconds=1)) == [], "what is over is over now, whatever the logs' clock says"


def test_labels_stay_while_rule_and_severity_do(server: AlertmanagerStandIn) -> None:
    marks = deliver(server)
    marks = deliver(server, NOW, marks, labels={"cluster": "default", "topic": "other"})
    assert len(server.alerts) == 1, "a label that comes later makes no other alert"
    deliver(server, NOW, marks, severity="low")
    assert [labels["severity"] for labels in server.active(NOW + timedelta(seconds=1))] == ["low"]


def test_what_became_part_of_another_ends_under_its_own_labels(server: AlertmanagerStandIn) -> None:
    marks = deliver(server)
    deliver(server, NOW, marks, status="merged", merged_into="inc-2", severity="low", rule="another")
    assert len(server.alerts) == 1
    assert server.active(NOW) == []


def test_a_refresh_keeps_it_alive_with_the_labels_that_it_was_sent_with(server: AlertmanagerStandIn) -> None:
    marks = deliver(server)
    later = NOW + LATER - timedelta(seconds=1)
    changed = Notification(incident(severity="low", count=77), Reason.REPEATED, marks=marks)
    other = Notification(incident(id="inc-2", severity="high"), Reason.REPEATED)
    assert receiver(server, later).refresh([changed, other]).state is DeliveryState.DELIVERED
    assert server.count("alerts") == 2, "one request for all of them"
    assert [labels["severity"] for labels in server.active(NOW + LATER)] == ["critical", "high"]
    assert "77 times" in next(iter(server.alerts.values())).annotations["when"]
    assert receiver(server).refresh_s == 300.0


def test_names_of_labels_are_those_that_any_version_takes(server: AlertmanagerStandIn) -> None:
    deliver(server, labels={"cluster": "prod", "kubernetes.io/name": "a", "2nd": "b", "empty": "", "alertname": "forged"})
    (alert,) = server.alerts.values()
    assert {"kubernetes_io_name": "a", "_2nd": "b", "cluster": "prod"}.items() <= alert.labels.items()
    assert alert.labels["alertname"] == TOO_LARGE.rule
    assert "empty" not in alert.labels


def test_credentials_are_sent_where_it_is_safe(server: AlertmanagerStandIn) -> None:
    open_receiver(server.address, "Bearer secret").deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert server.headers[0]["Authorization"] == "Bearer secret"
    with pytest.raises(UsageError):
        open_receiver("http://alerts.example:9093", "Bearer secret")
    assert open_receiver("http://alerts.example:9093/am/").url == "http://alerts.example:9093/am"
    with pytest.raises(UsageError):
        open_receiver("file:///x")


def test_what_it_refuses_is_final(server: AlertmanagerStandIn) -> None:
    server.script("alerts", "status:400")
    assert receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED)).state is DeliveryState.REJECTED
