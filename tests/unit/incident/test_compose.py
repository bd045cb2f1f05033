"""Incidents as they are composed of alerts."""

from __future__ import annotations

from engine.incident import MemoryLedger, group
from engine.model.incidents import Verdict
from tests.unit.incident.scene import alert, explains, plan, rule

SILENT = rule("broker-silent", "critical", explains=[explains("peer-complains", broker="node")])
COMPLAINS = rule("peer-complains", "medium")


def test_an_incident_about_somebody_who_says_nothing_is_known_as_such() -> None:
    rules = plan(SILENT, COMPLAINS, silences=["broker-silent"])
    alerts = [alert("broker-silent", 0), alert("peer-complains", 100)]
    verdicts = [Verdict(each.key, (each,)) for each in alerts]
    told = {each.rule: each.is_silence for each in group(verdicts, rules, MemoryLedger())}
    assert told == {"broker-silent": True, "peer-complains": False}
