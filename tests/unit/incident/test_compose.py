"""Incidents as they are composed of alerts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.incident import MemoryLedger, group
from engine.model.incidents import Verdict
from engine.model.rules import Clear
from tests.unit.incident.scene import alert, explains, plan, rule

SILENT = rule("broker-silent", "critical", explains=[explains("peer-complains", broker="node")])
COMPLAINS = rule("peer-complains", "medium")


def test_an_incident_about_somebody_who_says_nothing_is_known_as_such() -> None:
    rules = plan(SILENT, COMPLAINS, silences=["broker-silent"])
    alerts = [alert("broker-silent", 0), alert("peer-complains", 100)]
    verdicts = [Verdict(each.key, (each,)) for each in alerts]
    told = {each.rule: each.is_silence for each in group(verdicts, rules, MemoryLedger())}
    assert told == {"broker-silent": True, "peer-complains": False}


@pytest.mark.parametrize(("over", "status"), [(False, "open"), (True, "resolved")])
@pytest.mark.parametrize("in_s", [0.0, 3600.0], ids=["lasts", "passes"])
def test_an_incident_is_not_over_before_a_symptom_that_lasts(over: bool, status: str, in_s: float) -> None:
    cause = rule("record-unreadable", explains=[explains("task-killed")])
    rules = plan(cause, replace(rule("task-killed"), clear=Clear(in_s=in_s)))
    alerts = [alert("record-unreadable", 0, over=True), alert("task-killed", 1, 5, over=over)]
    verdicts = [Verdict(each.key, (each,)) for each in alerts]
    (incident,) = {each.id: each for each in group(verdicts, rules, MemoryLedger())}.values()
    assert incident.rule == "record-unreadable"
    assert incident.status == ("resolved" if in_s else status)
    assert incident.resolved_at == {"open": None, "resolved": alerts[int(not in_s)].ends_at}[incident.status]
