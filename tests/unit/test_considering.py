"""Which rules were considered for an incident and are no part of it, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine.considering import MOST_RULES, IncidentSpan, considered_rules, entity_names
from engine.model.considered import CONSIDERED_WORDS, ConsideredRule
from engine.model.incidents import Alert, AlertKey, Incident
from tests.building import at
from tests.unit.cli.incidents import incident


def key(rule: str, **entity: str) -> AlertKey:
    return ("prod", rule, tuple(sorted({"cluster": "prod", **entity}.items())))


def alert(rule: str, start: float = 10, severity: str = "high", count: int = 1, **entity: str) -> Alert:
    return Alert(key(rule, **entity), "firing", severity, at(start), at(start + 5), at(start + 9), count, True)


def told(**changes: Any) -> Incident:
    """Return the incident of the silence of broker 1, with a symptom."""
    root = key("broker-silent", broker="1")
    fields = {
        "id": "inc-1",
        "key": root,
        "alerts": (root, key("isr-shrink", broker="1")),
        "first_seen": at(0),
        "last_seen": at(60),
    }
    return incident(**(fields | changes))


def span(id: str, state: str = "open", begin: float = 0, end: float = 60, merged_into: str | None = None) -> IncidentSpan:
    return IncidentSpan(id, state, at(begin), at(end), merged_into)


def considered(*alerts: Alert, incidents: Mapping[AlertKey, Sequence[IncidentSpan]] | None = None) -> list[ConsideredRule]:
    return list(considered_rules(told(), alerts, incidents or {}))


@pytest.mark.parametrize(
    ("spans", "reason", "other"),
    [
        ([span("inc-2")], "apart", "inc-2"),
        ([span("inc-2", "resolved")], "apart", "inc-2"),
        ([span("inc-2", "pending")], "unconfirmed", "inc-2"),
        ([span("inc-2", "retracted")], "taken back", "inc-2"),
        ([span("inc-2", "merged", merged_into="inc-3")], "apart", "inc-3"),
        ([span("inc-2", "retracted"), span("inc-4")], "apart", "inc-4"),
    ],
)
def test_an_alert_of_another_incident_is_named_with_it_and_its_state(
    spans: list[IncidentSpan], reason: str, other: str
) -> None:
    disk = alert("disk-full", count=3, broker="1")
    labels = {"broker": "1", "cluster": "prod"}
    assert considered(disk, incidents={disk.key: spans}) == [ConsideredRule("disk-full", reason, 3, labels, at(10), other)]
    assert reason in CONSIDERED_WORDS


def test_what_only_informs_is_summed_up_by_rule() -> None:
    alerts = [alert("slow-disk", start, "info", count, broker="1") for start, count in ((20, 2), (12, 3))]
    assert [(each.reason, each.count, each.first_seen) for each in considered(*alerts)] == [("informs", 5, at(12))]


def test_what_is_part_of_it_or_about_another_entity_is_left_out() -> None:
    merged = alert("disk-full", broker="1")
    parts = [alert("broker-silent", broker="1"), alert("isr-shrink", broker="1"), merged]
    others = [alert("disk-full", broker="2"), alert("quota", severity="info"), alert("slow-disk", severity="info", broker="11")]
    spans = {merged.key: [span("inc-0", "merged", merged_into="inc-1")]}
    assert considered(*parts, *others, incidents=spans) == []


def test_an_alert_whose_incident_is_not_known_is_left_out() -> None:
    disk = alert("disk-full", broker="1")
    assert considered(disk) == []
    assert considered(disk, incidents={disk.key: [span("inc-2", begin=500, end=600)]}) == []


def test_an_alert_that_the_entity_wrote_counts_as_about_it() -> None:
    topic = Alert(key("slow", topic="a"), "firing", "info", at(1), at(2), None, 1, True, {"broker": "1"})
    assert [(each.rule, each.labels["topic"]) for each in considered(topic)] == [("slow", "a")]


def test_other_incidents_come_first_and_there_are_few() -> None:
    informing = [alert(f"rule-{n:02}", n, "info", broker="1") for n in range(20)]
    disk = alert("disk-full", 50, broker="1")
    rules = [each.rule for each in considered(*informing, disk, incidents={disk.key: [span("inc-2")]})]
    assert rules == ["disk-full", *(f"rule-{n:02}" for n in range(MOST_RULES - 1))]


def test_a_whole_cluster_and_what_is_not_known_are_no_entity() -> None:
    assert entity_names(told(key=("prod", "r", (("broker", "?"), ("cluster", "prod"))))) == frozenset()
