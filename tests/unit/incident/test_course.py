"""The course of an incident: what its timeline is drawn from."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from engine.codec import dumps, loads
from engine.incident import MemoryLedger, group
from engine.incident.course import MAX_COURSES
from engine.model.expressions import Literal
from engine.model.incidents import Alert, HeartbeatRun, Incident, Verdict
from engine.model.rules import ToldAs
from tests.unit.incident.scene import NOON, alert, explains, minute, plan, rule, text

SILENT = rule("broker-silent", "critical", explains=[explains("peer-complains")])
COMPLAINS = rule("peer-complains", "medium")
PLAN = plan(SILENT, COMPLAINS, silences=["broker-silent"])


def composed(*alerts: Alert) -> Incident:
    verdicts = [Verdict(each.key, (each,)) for each in alerts]
    (incident,) = {each.id: each for each in group(verdicts, PLAN, MemoryLedger())}.values()
    return incident


def test_every_alert_has_its_course_the_root_first() -> None:
    complaint = replace(alert("peer-complains", 1, 4, count=7), offsets_s=(0, 60, 180), sources=("a", "b", "c", "d"))
    incident = composed(alert("broker-silent", 0, 5, over=True), complaint)
    root, symptom = incident.course
    assert (root.role, root.rule, root.first, root.ended_at) == ("root", "broker-silent", minute(0), minute(5))
    assert (symptom.role, symptom.severity, symptom.first, symptom.last) == ("symptom", "high", minute(1), minute(4))
    assert (symptom.count, symptom.offsets_s, symptom.sources) == (7, (0, 60, 180), ("a", "b", "c"))
    assert symptom.ended_at is None, "the end of a symptom alone makes no revision"


def test_the_root_has_the_title_under_which_the_incident_is_told() -> None:
    told = ToldAs("peer-complains", Literal(True), text("it hangs up"))
    plan_ = plan(replace(SILENT, told_as=(told,)), COMPLAINS, silences=["broker-silent"])
    verdicts = [Verdict(each.key, (each,)) for each in (alert("broker-silent", 0, 5), alert("peer-complains", 1, 4))]
    (incident,) = {each.id: each for each in group(verdicts, plan_, MemoryLedger())}.values()
    assert [course.title for course in incident.course] == ["it hangs up", "peer-complains"]
    assert incident.title == "it hangs up"


def test_an_alert_without_times_has_no_course() -> None:
    assert composed(alert("broker-silent", 0, dated=False)).course == ()


def test_alerts_beyond_the_bound_are_counted_by_rule() -> None:
    many = [alert("peer-complains", 1, 2, count=2, number=str(n)) for n in range(MAX_COURSES + 20)]
    incident = composed(alert("broker-silent", 0, 5), *many)
    assert len(incident.course) == MAX_COURSES + 1
    rest = incident.course[-1]
    assert (rest.role, rest.rule, rest.alerts, rest.count) == ("symptom", "peer-complains", 21, 42)


def test_the_heartbeats_of_a_silence_are_kept_once_also_in_the_store() -> None:
    run = HeartbeatRun({"broker": "1"}, 600.0, NOON - timedelta(hours=1), NOON)
    incident = composed(replace(alert("broker-silent", 0, 5), heartbeats=(run, run)))
    assert incident.heartbeats == (run,)
    assert loads(dumps(incident), Incident) == incident


def test_an_incident_of_an_earlier_version_is_read_without_its_course() -> None:
    incident = composed(alert("broker-silent", 0, 5))
    fields = {"course", "heartbeats"}
    earlier = replace(incident, course=(), heartbeats=())
    assert loads(dumps({name: value for name, value in _plain(incident).items() if name not in fields}), Incident) == earlier


def _plain(incident: Incident) -> dict[str, object]:
    return loads(dumps(incident), dict)
