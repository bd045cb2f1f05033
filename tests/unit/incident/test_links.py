"""Who explains whom: what nobody said who may say it explains no more than its own log."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.incident.links import link_alerts
from tests.unit.incident.scene import alert, explains, plan, rule


@pytest.mark.parametrize(("sources", "explained"), [(("app.log",), True), (("2.log",), False)])
def test_hearsay_explains_only_what_its_own_log_shows(sources: tuple[str, ...], explained: bool) -> None:
    stopping = rule("stopping", severity="info", explains=[explains("lost", cluster="cluster")])
    heard = replace(alert("stopping", 0, severity="info", sources=["app.log"]), hearsay=True)
    found = link_alerts([heard, alert("lost", 1, sources=sources)], plan(stopping, rule("lost")))
    assert (found.parent == {1: 0}) == explained


@pytest.mark.parametrize(
    ("count", "minute", "severity"),
    [
        pytest.param(1, 1, "low", id="once"),
        pytest.param(2, 1, "high", id="again"),
        pytest.param(1, 90, "high", id="long after"),
    ],
)
def test_what_lowers_an_alert_does_not_hide_it(count: int, minute: float, severity: str) -> None:
    renewing = rule("renewing", severity="info", explains=[replace(explains("refused", cluster="cluster"), lowers=True)])
    alerts = [alert("renewing", 0, severity="info"), alert("refused", minute, count=count)]
    links = link_alerts(alerts, plan(renewing, rule("refused")))
    assert (links.parent, links.alerts[1].severity) == ({}, severity)


def test_what_is_low_already_stays_so() -> None:
    renewing = rule("renewing", severity="info", explains=[replace(explains("refused", cluster="cluster"), lowers=True)])
    alerts = [alert("renewing", 0, severity="info"), alert("refused", 1, severity="info")]
    assert link_alerts(alerts, plan(renewing, rule("refused"))).alerts[1].severity == "info"
