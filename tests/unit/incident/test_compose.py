"""Incidents as they are composed of alerts."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from engine.incident import MemoryLedger, group
from engine.model.incidents import QUIET, Capture, Verdict
from engine.model.pictures import ClusterPicture
from engine.model.rules import Clear
from tests.unit.incident.scene import NOON, alert, explains, plan, rule
from tests.unit.model.test_pictures import broker, partition, topic

SILENT = rule("broker-silent", "critical", explains=[explains("peer-complains", broker="node")])
COMPLAINS = rule("peer-complains", "medium")


def test_an_incident_about_somebody_who_says_nothing_is_known_as_such() -> None:
    rules = plan(SILENT, COMPLAINS, silences=["broker-silent"])
    alerts = [alert("broker-silent", 0), alert("peer-complains", 100)]
    verdicts = [Verdict(each.key, (each,)) for each in alerts]
    told = {each.rule: each.is_silence for each in group(verdicts, rules, MemoryLedger())}
    assert told == {"broker-silent": True, "peer-complains": False}


@pytest.mark.parametrize(
    ("why", "in_s", "symptom_over", "status"),
    [
        pytest.param(QUIET, 0.0, False, "open", id="it lasts"),
        pytest.param(QUIET, 0.0, True, "resolved", id="it lasted"),
        pytest.param(QUIET, 3600.0, False, "resolved", id="it passes by itself"),
        pytest.param("broker-started seen", 0.0, False, "resolved", id="its cause is seen to be over"),
    ],
)
def test_silence_does_not_end_an_incident_before_a_symptom_that_lasts(
    why: str, in_s: float, symptom_over: bool, status: str
) -> None:
    cause = rule("record-unreadable", explains=[explains("task-killed")])
    rules = plan(cause, replace(rule("task-killed"), clear=Clear(in_s=in_s)))
    alerts = [replace(alert("record-unreadable", 0, over=True), why=why), alert("task-killed", 1, 5, over=symptom_over)]
    verdicts = [Verdict(each.key, (each,)) for each in alerts]
    (incident,) = {each.id: each for each in group(verdicts, rules, MemoryLedger())}.values()
    assert (incident.rule, incident.status) == ("record-unreadable", status)
    assert incident.resolved_at == {"open": None, "resolved": alerts[int(symptom_over)].ends_at}[status]


def test_partition_and_offset_are_those_of_one_line() -> None:
    captures = {
        "topic": Capture(("orders", "audit")),
        "partition": Capture((0, 3), 0, 3, 0, 3, 3),
        "offset": Capture((100, 9), 100, 9, 9, 100, 109),
        "size": Capture((5, 8), 5, 8, 5, 8, 13),
    }
    unread = replace(alert("record-unreadable", 0, 5), captures=captures)
    (incident,) = group([Verdict(unread.key, (unread,))], plan(rule("record-unreadable")), MemoryLedger())
    assert incident.captures == {"topic": "orders", "partition": 0, "offset": 100, "size": 8}


def test_the_cluster_is_looked_at_once_for_all_languages() -> None:
    class CountingLedger(MemoryLedger):
        looks = 0

        def picture(self, scope: str, until: datetime) -> ClusterPicture | None:
            self.looks += 1
            return super().picture(scope, until)

    looks = []
    for languages in ((), ("ko",)):
        ledger, silent = CountingLedger(), alert("broker-silent", 10, broker="1")
        ledger.put_facts([replace(fact, scope=silent.key[0], at=NOON) for fact in (broker(1), topic("t"), partition("t", 0))])
        rules = replace(plan(SILENT, silences=["broker-silent"]), languages=languages)
        (incident,) = {each.id: each for each in group([Verdict(silent.key, (silent,))], rules, ledger)}.values()
        assert incident.blast is not None
        assert list(incident.translations) == list(languages)
        looks.append(ledger.looks)
    assert looks[0] == looks[1]
