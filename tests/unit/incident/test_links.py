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
