"""One incident per trouble: which alert is the root, what it explains, and which incident lives on when that changes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.incident import MemoryLedger, group
from engine.incident.decide import minor
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.incidents import Alert, Evidence, Incident, Roster, Verdict
from engine.model.rules import Continues, Escalation, Plan, Rule, Step, ToldAs
from tests.unit.incident.scene import alert, explains, hole, minute, number, plan, rule, text

TOO_LARGE = rule(
    "too-large",
    "critical",
    explains=[explains("task-killed", connector="connector", task="task")],
    fix=[Step(text("grow"), "worker", {"producer.max.request.size": text(hole("size", charset="int"))})],
)
REFUSED = rule(
    "refused-by-broker",
    "critical",
    explains=[explains("task-killed", connector="connector", task="task")],
    continues=[Continues("too-large", {"connector": "connector", "task": "task"}, 72 * 3600)],
    fix=[Step(text("let the topic take it"), "topic")],
)
KILLED = rule("task-killed", "high")
SILENT = rule("broker-silent", "critical", explains=[explains("peer-complains", broker="node")])
COMPLAINS = rule("peer-complains", "medium")
LOOP = rule("rebalance-loop", explains=[explains("rebalanced", group="group")])
COMMIT = rule("commit-failed", "critical", explains=[explains("rebalanced rebalance-loop", before_m=35, source="source")])
REBALANCED = rule("rebalanced", "info")
LOST = rule("quorum-lost", "info", explains=[replace(explains("peer-complains", cluster="cluster"), at_least="critical")])
STOPPING = rule("stopping", "info", explains=[explains("peer-complains", broker="node")])
EVERYTHING = plan(TOO_LARGE, REFUSED, KILLED, SILENT, COMPLAINS, LOOP, COMMIT, REBALANCED, STOPPING, silences=["broker-silent"])


def told(*alerts: Alert, ledger: MemoryLedger | None = None, rules: Plan = EVERYTHING) -> list[Incident]:
    """Tell the ledger what the keys of `alerts` are now; return the incidents that are not merged or retracted."""
    ledger = ledger or MemoryLedger()
    list(group([Verdict(key, tuple(a for a in alerts if a.key == key)) for key in {a.key: 0 for a in alerts}], rules, ledger))
    return [i for i in ledger.incidents("prod") if i.status not in ("merged", "retracted")]


def test_a_cause_swallows_what_it_explains_and_counts_only_itself() -> None:
    [incident] = told(
        alert("too-large", 0, severity="critical", connector="cdc", task="0", captures={"size": number(1125872)}),
        alert("task-killed", 1, connector="cdc", task="0"),
    )
    assert (incident.rule, incident.severity, incident.count) == ("too-large", "critical", 1)
    assert [(s.rule, s.count) for s in incident.symptoms] == [("task-killed", 1)]
    assert incident.fix[0].set == {"producer.max.request.size": "1125872"}


def test_an_incident_is_as_severe_as_the_worst_that_it_has_led_to() -> None:
    def severity(of_symptom: str, status: str = "") -> str:
        cause = alert("too-large", 0, severity="medium", connector="cdc", task="0")
        [incident] = told(cause, alert("task-killed", 1, severity=of_symptom, status=status, connector="cdc", task="0"))
        return incident.severity

    assert [severity("critical"), severity("low"), severity("critical", "pending")] == ["critical", "medium", "medium"]


def test_another_connector_is_another_trouble() -> None:
    incidents = told(alert("too-large", 0, connector="cdc", task="0"), alert("task-killed", 1, connector="jdbc", task="0"))
    assert [i.rule for i in incidents] == ["too-large", "task-killed"]


def test_labels_of_whoever_printed_it_tie_alerts_too() -> None:
    rules = plan(rule("full", explains=[explains("stuck", host="host")]), rule("stuck"))
    full = alert("full", 0, labels={"host": "h1"})
    for labels, roots in (({"host": "h1"}, ["full"]), ({"host": "h2"}, ["full", "stuck"]), ({}, ["full", "stuck"])):
        assert [i.rule for i in told(full, alert("stuck", 1, labels=labels), rules=rules)] == roots
    assert len(told(alert("full", 0), alert("stuck", 1), rules=rules)) == 2


def test_what_starts_too_long_after_is_not_explained() -> None:
    ten = told(alert("too-large", 0, connector="a", task="0"), alert("task-killed", 10, connector="a", task="0"))
    eleven = told(alert("too-large", 0, connector="a", task="0"), alert("task-killed", 10.1, connector="a", task="0"))
    assert (len(ten), len(eleven)) == (1, 2)


def test_what_goes_on_for_longer_than_its_cause_allows_is_not_explained() -> None:
    short = rule("stopping", "info", explains=[replace(explains("peer-complains", cluster="cluster"), until_s=60)])
    for end, roots in ((1, []), (2, ["peer-complains"])):
        found = told(
            alert("stopping", 0, severity="info"), alert("peer-complains", 0, end, broker="2"), rules=plan(short, COMPLAINS)
        )
        assert [incident.rule for incident in found] == roots


def test_a_silence_that_nothing_ended_explains_complaints_hours_later() -> None:
    [incident] = told(alert("broker-silent", 0, broker="1"), alert("peer-complains", 200, captures={"node": "1"}, broker="2"))
    assert incident.rule == "broker-silent"


def test_an_event_that_two_rules_saw_counts_for_the_cause_only() -> None:
    [incident] = told(
        alert("too-large", 0, connector="cdc", task="0", events=["e1", "e2"]),
        alert("task-killed", 0, connector="cdc", task="0", events=["e2"]),
    )
    assert incident.symptoms == ()


def test_the_next_stage_fifteen_hours_later_reopens_the_incident_and_changes_its_fix() -> None:
    ledger = MemoryLedger()
    first = alert("too-large", 0, over=True, connector="cdc", task="0")
    [before] = told(first, ledger=ledger)
    [after] = told(first, alert("refused-by-broker", 15 * 60, connector="cdc", task="0"), ledger=ledger)
    assert before.status == "resolved"
    assert (after.id, after.status, after.rule, after.stage) == (before.id, "open", "too-large", "refused-by-broker")
    assert [step.do for step in after.fix] == ["let the topic take it"]
    assert after.cause == "cause of too-large Then: cause of refused-by-broker"


def test_a_stage_is_one_of_the_same_thing_up_to_the_limit_and_of_the_latest_before_it() -> None:
    def held(start: float, *before: float, connector: str = "a", dated: bool = True) -> list[str]:
        earlier = [alert("too-large", at, over=True, connector="a", task="0") for at in before]
        stage = alert("refused-by-broker", start, connector=connector, task="0", dated=dated)
        return [incident.stage for incident in told(*earlier, stage)]

    assert held(72 * 60, 0) == held(0, 0) == held(99999, 0, dated=False) == ["refused-by-broker"]
    assert held(15 * 60, 0, 180) == ["", "refused-by-broker"]
    assert held(15 * 60, 0, connector="b") == held(0, 1) == ["", ""]
    assert held(0) == [""]


def test_a_stage_after_the_limit_is_a_new_trouble() -> None:
    incidents = told(
        alert("too-large", 0, over=True, connector="a", task="0"),
        alert("refused-by-broker", 72 * 60 + 1, connector="a", task="0"),
    )
    assert len(incidents) == 2


def test_a_late_root_takes_over_the_oldest_incident_and_the_others_are_merged() -> None:
    ledger = MemoryLedger()
    complaints = [alert("peer-complains", n, captures={"node": "1"}, broker=str(n + 2)) for n in (0, 1)]
    one, two = told(*complaints, ledger=ledger)
    [left] = told(*complaints, alert("broker-silent", -1, broker="1"), ledger=ledger)
    assert (left.id, left.rule) == (one.id, "broker-silent")
    assert len(left.symptoms) == 2
    merged = next(i for i in ledger.incidents("prod") if i.id == two.id)
    assert (merged.status, merged.merged_into) == ("merged", one.id)


def test_what_opened_an_incident_that_is_about_later_alerts_by_now_comes_back_as_another() -> None:
    ledger, first, then, last = MemoryLedger(), *(alert("task-killed", at, over=True, connector="a") for at in (0, 50, 100))
    [opened] = told(first, then, last, ledger=ledger)
    [moved] = told(last, ledger=ledger)
    back, still = sorted(told(first, last, ledger=ledger), key=lambda incident: incident.first_seen or minute(0))
    assert (opened.id, still.id) == (moved.id, moved.id)
    assert (back.id != still.id, back.first_seen, still.first_seen) == (True, first.starts_at, last.starts_at)
    again = told(first, last, ledger=ledger)
    assert {incident.id: incident.revision for incident in again} == {back.id: back.revision, still.id: still.revision}


def test_a_cause_with_worse_symptoms_is_told_as_another_rule_and_keeps_its_fix() -> None:
    lost = ToldAs("partitions-lost", Binary(">=", NameExpression("lone"), Literal(0)), text("lost with ", hole("broker")))
    cause = rule("down", "high", explains=[explains("alone", broker="broker")], fix=[Step(text("start it"))])
    down = replace(cause, told_as=(lost,))
    rules = plan(down, rule("alone", "info"), rule("partitions-lost", "critical"))
    alone = alert("alone", 0, severity="info", captures={"lone": number(3)}, broker="1")
    ledger = MemoryLedger()
    [before] = told(alert("down", 0, broker="1"), ledger=ledger, rules=rules)
    assert (before.rule, before.title, before.severity) == ("down", "down", "high")
    [after] = told(alert("down", 0, broker="1"), alone, ledger=ledger, rules=rules)
    assert (after.id, after.rule, after.title, after.severity) == (before.id, "partitions-lost", "lost with 1", "critical")
    assert (after.cause, [step.do for step in after.fix]) == ("cause of down", ["start it"])


def test_an_informing_root_opens_nothing_and_silences_what_it_explains() -> None:
    assert told(alert("rebalanced", 0, severity="info", group="g")) == []
    complaint = alert("peer-complains", 1, captures={"node": "1"}, broker="2")
    assert told(alert("stopping", 0, severity="info", captures={"node": "1"}, broker="1"), complaint) == []


def test_a_cause_explains_only_when_it_is_as_severe_as_it_says() -> None:
    complaint = alert("peer-complains", 1, broker="2")
    for severity, roots in (("info", ["peer-complains"]), ("critical", ["quorum-lost"])):
        found = told(alert("quorum-lost", 0, severity=severity), complaint, rules=plan(LOST, COMPLAINS))
        assert [incident.rule for incident in found] == roots


def test_what_any_cause_explains_goes_with_that_cause_when_it_is_excused() -> None:
    won = rule("election-won", "info", explains=[explains("quorum-lost", cluster="cluster")])
    lost = rule("quorum-lost", "critical", explains=[explains("peer-complains", cluster="cluster")])
    alerts = [alert("election-won", 0, severity="info"), alert("quorum-lost", 0, severity="critical")]
    assert told(*alerts, alert("peer-complains", 0, broker="2"), rules=plan(won, lost, COMPLAINS)) == []


def test_what_only_a_severe_cause_explains_stays_when_that_cause_is_excused() -> None:
    won = rule("election-won", "info", explains=[explains("quorum-lost", cluster="cluster")])
    alerts = [alert("election-won", 0, severity="info"), alert("quorum-lost", 0, severity="critical")]
    found = told(*alerts, alert("peer-complains", 0, broker="2"), rules=plan(won, LOST, COMPLAINS))
    assert [incident.rule for incident in found] == ["peer-complains"]


def test_missing_names_are_taken_from_what_is_explained() -> None:
    [incident] = told(
        alert("commit-failed", 30, group="?export.txt", sources=["export.txt"]),
        alert("rebalanced", 0, severity="info", group="eastglow", count=3, sources=["export.txt"]),
    )
    assert (incident.rule, incident.labels["group"]) == ("commit-failed", "eastglow")
    assert [(s.rule, s.count) for s in incident.symptoms] == [("rebalanced", 3)]


@pytest.mark.parametrize("label", ["unit", "image", "compose_service", "namespace"])
def test_what_printed_a_line_is_not_what_the_line_is_about(label: str) -> None:
    exited = replace(rule("exited", title=text(hole(label))), captures={label: label})
    [incident] = told(alert("exited", 0, captures={label: "kafka"}, labels={label: "init"}), rules=plan(exited))
    assert (incident.title, incident.labels[label]) == ("kafka", "init")


def test_where_a_log_was_taken_is_not_the_host_that_it_is_about() -> None:
    refused = replace(rule("refused", title=text(hole("host"), " ", hole("pod"))), captures={"host": "host"})
    for captures, title in (({"host": "kafka-1"}, "kafka-1 p"), ({}, "<host> p")):
        [incident] = told(alert("refused", 0, captures=captures, labels={"host": "app-7", "pod": "p"}), rules=plan(refused))
        assert (incident.title, incident.labels["host"]) == (title, "app-7")
    [named] = told(alert("refused", 0, labels={"pod": "p"}, host="app-7"), rules=plan(refused))
    assert named.title == "app-7 p"


def test_chains_lead_to_the_top_root() -> None:
    [incident] = told(
        alert("commit-failed", 30, group="g", sources=["app.log"]),
        alert("rebalance-loop", 10, group="g", sources=["app.log"]),
        alert("rebalanced", 9.5, severity="info", group="g", sources=["broker.log"]),
    )
    assert incident.rule == "commit-failed"
    assert [s.rule for s in incident.symptoms] == ["rebalance-loop", "rebalanced"]  # causes first


def test_the_cause_with_more_equal_keys_wins_and_the_other_is_also_possible() -> None:
    near = rule("near", explains=[explains("hurt", a="a", b="b")])
    far = rule("far", explains=[explains("hurt", a="a")])
    incidents = told(
        alert("far", 0, a="1"), alert("near", 0.5, a="1", b="2"), alert("hurt", 1, a="1", b="2"),
        rules=plan(near, far, rule("hurt")),
    )  # fmt: skip
    [hurt] = [i for i in incidents if i.symptoms]
    assert (hurt.rule, hurt.also_possible) == ("near", ("far",))


def test_of_several_ways_to_explain_the_one_with_most_equal_keys_counts() -> None:
    near = rule("near", explains=[explains("hurt", a="a", b="b"), explains("hurt", a="a")])
    far = rule("far", explains=[explains("hurt", a="a")])
    incidents = told(
        alert("far", 0, a="1"), alert("near", 0.5, a="1", b="2"), alert("hurt", 1, a="1", b="2"),
        rules=plan(near, far, rule("hurt")),
    )  # fmt: skip
    assert [i.rule for i in incidents if i.symptoms] == ["near"]


def test_of_alerts_of_one_rule_each_explains_its_own() -> None:
    connectors = [alert("too-large", 0, connector=name, task="0") for name in "abc"]
    killed = [alert("task-killed", 1, connector=name, task="0") for name in "cab"]
    found = told(*connectors, *killed)
    assert [(i.rule, i.labels["connector"], len(i.symptoms)) for i in found] == [("too-large", name, 1) for name in "abc"]


def test_what_one_log_says_of_different_things_is_not_tied_by_the_log() -> None:
    both = [alert("commit-failed", 30, group=group, sources=["app.log"]) for group in "fg"]
    found = told(*both, alert("rebalance-loop", 10, group="h", sources=["app.log"]))
    assert [i.rule for i in found] == ["rebalance-loop", "commit-failed", "commit-failed"]
    found = told(*both, alert("rebalance-loop", 10, group="g", sources=["app.log"]))
    assert {i.labels["group"]: len(i.symptoms) for i in found} == {"f": 0, "g": 1}


def test_what_its_log_does_not_name_belongs_to_the_named_cause_in_that_log() -> None:
    vague = alert("rebalance-loop", 10, group="?app.log", sources=["app.log"])
    [incident] = told(alert("commit-failed", 30, group="g", sources=["app.log"]), vague)
    assert [s.rule for s in incident.symptoms] == ["rebalance-loop"]


def test_what_began_long_before_its_cause_is_not_explained() -> None:
    cause = alert("too-large", 10, connector="a", task="0")
    for start, many in ((9, 1), (8.9, 2)):
        assert len(told(cause, alert("task-killed", start, connector="a", task="0"))) == many


def test_of_what_bears_no_time_nothing_is_too_early_or_too_late() -> None:
    for dated in ((True, False), (False, True)):
        cause, killed = (replace(a, dated=d) for a, d in zip(HISTORY[:2], dated, strict=True))
        later = replace(killed, starts_at=minute(9000), last_seen=minute(9000))
        assert [i.rule for i in told(cause, later)] == ["too-large"]
        again = replace(cause, starts_at=minute(9000), last_seen=minute(9000), ends_at=None, dated=not cause.dated)
        assert len(told(cause, again)) == 1


def test_it_is_the_same_again_within_the_window_after_its_end_not_after_its_last_line() -> None:
    first = replace(alert("task-killed", 0, over=True, connector="a"), ends_at=minute(30))
    assert [len(told(first, alert("task-killed", start, connector="a"))) for start in (90, 90.1)] == [1, 2]


def test_a_telling_that_names_another_thing_is_another_incident_however_vague_it_is() -> None:
    full = alert("too-large", 0, 5, connector="cdc", task="0", sources=["app.log"])
    other, same = (alert("too-large", 3, connector=name, task="?app.log", sources=["app.log"]) for name in ("jdbc", "cdc"))
    assert (len(told(full, other)), len(told(full, same))) == (2, 1)


def test_what_is_part_of_the_trouble_is_not_also_possible() -> None:
    near = rule("near", explains=[explains("hurt", a="a", b="b"), explains("far", a="a")])
    rules = plan(near, rule("far", explains=[explains("hurt", a="a")]), rule("hurt"))
    alerts = [alert("near", 0, a="1", b="2"), alert("far", 0.5, a="1"), alert("hurt", 1, a="1", b="2")]
    assert [(i.rule, i.also_possible) for i in told(*alerts, rules=rules)] == [("near", ())]
    twice = [alert("far", 0, a="1"), alert("far", 0.5, a="1", b="3"), alert("hurt", 1, a="1", b="2")]
    assert [i.also_possible for i in told(*twice, rules=rules)] == [(), ()]


def test_the_root_of_what_came_again_is_what_explains_it_the_worst_then_the_earliest() -> None:
    rules = plan(rule("one", explains=[explains("hurt", a="a")]), rule("two", explains=[explains("hurt", a="a")]), rule("hurt"))
    hurt = [alert("hurt", start, over=True, a="1") for start in (1, 50)]
    two = alert("two", 49, a="1", severity="critical")
    assert [i.rule for i in told(*hurt, two, rules=rules)] == ["two"]
    for severity, root in (("high", "two"), ("critical", "one")):
        assert [i.rule for i in told(alert("one", 0, a="1", severity=severity), *hurt, two, rules=rules)] == [root]
    first, again = alert("hurt", 0, over=True, severity="medium", a="1"), alert("hurt", 30, severity="critical", a="1")
    assert [i.id for i in told(first, again, rules=rules)] == [i.id for i in told(first, rules=rules)]


def test_a_stage_may_have_a_stage_of_its_own() -> None:
    third = rule("third", continues=[Continues("refused-by-broker", {"connector": "connector"}, 3600)])
    names = {"connector": "a", "task": "0"}
    alerts = [alert("too-large", 0, **names), alert("refused-by-broker", 10, **names), alert("third", 20, connector="a")]
    found = told(*alerts, rules=plan(TOO_LARGE, REFUSED, KILLED, third))
    assert [(i.rule, i.stage, i.symptoms) for i in found] == [("too-large", "third", ())]


def test_the_same_again_within_the_window_reopens_and_after_it_is_new() -> None:
    first = alert("task-killed", 0, over=True, connector="a", task="0")
    again = alert("task-killed", 60, connector="a", task="0")
    later = alert("task-killed", 61, connector="a", task="0")
    [reopened] = told(first, again)
    assert (reopened.status, reopened.count) == ("open", 2)
    assert [i.status for i in told(first, later)] == ["resolved", "open"]


def test_a_vaguer_telling_of_the_same_trouble_is_not_another_incident() -> None:
    full = alert("too-large", 0, connector="cdc", task="0", captures={"size": number(1125872)})
    trace = alert("too-large", 9000, dated=False, connector="?t.txt", task="?t.txt", captures={"size": number(1125872)})
    other = alert("too-large", 9000, dated=False, connector="?t.txt", task="?t.txt", captures={"size": number(5)})
    assert [(i.labels["connector"], i.symptoms, i.count) for i in told(full, trace)] == [("cdc", (), 1)]
    assert len(told(full, other)) == 2


def test_an_exception_without_names_belongs_to_what_its_own_log_says_at_that_time() -> None:
    full = alert("too-large", 0, 5, connector="cdc", task="0", sources=["app.log"])
    bare = alert("too-large", 3, connector="?app.log", task="?app.log", sources=["app.log"])
    for start in (0, 5):
        assert len(told(full, alert("too-large", start, connector="?app.log", task="?app.log", sources=["app.log"]))) == 1
    more = alert("too-large", 3, connector="?app.log", task="?app.log", sources=["app.log"], captures={"offset": 7})
    assert len(told(replace(full, captures={"size": number(5)}), more)) == 1
    elsewhere = alert("too-large", 3, connector="?b.log", task="?b.log", sources=["b.log"])
    later = alert("too-large", 99, connector="?app.log", task="?app.log", sources=["app.log"])
    assert len(told(full, bare)) == 1
    assert len(told(full, elsewhere)) == 2
    assert len(told(full, later)) == 2


def test_an_alert_that_later_lines_contradict_is_retracted_with_its_incident() -> None:
    ledger = MemoryLedger()
    silent = alert("broker-silent", 0, broker="1")
    [opened] = told(silent, ledger=ledger)
    list(group([Verdict(silent.key, ())], EVERYTHING, ledger))
    [incident] = ledger.incidents("prod")
    assert (incident.id, incident.status) == (opened.id, "retracted")


def test_pending_is_not_open_and_explains_nothing_yet() -> None:
    pending = alert("broker-silent", 0, status="pending", broker="1")
    incidents = told(pending, alert("peer-complains", 1, captures={"node": "1"}, broker="2"))
    assert [(i.rule, i.pending) for i in incidents] == [("broker-silent", True), ("peer-complains", False)]


def test_nothing_new_makes_no_revision() -> None:
    ledger = MemoryLedger()
    killed = alert("task-killed", 0, connector="a", task="0")
    told(killed, ledger=ledger)
    assert list(group([Verdict(killed.key, (killed,))], EVERYTHING, ledger)) == []
    [opened] = ledger.incidents("prod")
    [grown] = told(replace(killed, count=2), ledger=ledger)
    assert (grown.id, grown.revision, grown.count) == (opened.id, 2, 2)


def test_an_incident_that_was_opened_for_one_of_several_stays_with_it_when_their_cause_is_gone() -> None:
    ledger = MemoryLedger()
    earlier, first = (alert("peer-complains", n, captures={"node": "1"}, broker=str(n + 2)) for n in (0, 1))
    silent = alert("broker-silent", -1, broker="1")
    [opened] = told(first, ledger=ledger)
    [joined] = told(earlier, first, silent, ledger=ledger)
    list(group([Verdict(silent.key, ())], EVERYTHING, ledger))
    left = {i.id: i.key for i in ledger.incidents("prod") if i.status == "open"}
    assert (joined.id, left[opened.id], len(left)) == (opened.id, first.key, 2)


def test_what_is_merged_waits_for_nothing_any_more() -> None:
    ledger = MemoryLedger()
    open_, waiting = (
        alert("peer-complains", n, status=s, captures={"node": "1"}, broker=str(n)) for n, s in ((2, ""), (3, "pending"))
    )
    one, two = told(open_, waiting, ledger=ledger)
    assert (one.pending, two.pending) == (False, True)
    told(open_, waiting, alert("broker-silent", 1, broker="1"), ledger=ledger)
    assert {i.id: (i.status, i.pending) for i in ledger.incidents("prod")}[two.id] == ("merged", False)


def test_the_same_opening_has_the_same_id_everywhere() -> None:
    [incident] = told(alert("task-killed", 0, connector="a", task="0"))
    assert incident.id == "inc-855cd78e3f"  # it stands in messages and links that were sent
    elsewhere = replace(
        alert("task-killed", 0, connector="a", task="0"), starts_at=minute(0).astimezone(timezone(timedelta(hours=9)))
    )
    assert [i.id for i in told(elsewhere)] == [incident.id]


def test_what_informs_until_it_escalates_is_minor() -> None:
    def found(severity: str, informing: Rule) -> list[str]:
        one = alert("rebalanced", 0, severity=severity)
        lines = {event: Evidence(event, "a.log", 1, minute(0), event) for event in one.evidence}
        incidents = minor({one.key: (one,)}, plan(informing), Roster("prod", {}), lambda ids: {i: lines[i] for i in ids})
        return [f"{i.rule} {i.id[:4]} {len(i.evidence)}" for i in incidents]

    worse = replace(REBALANCED, escalate=(Escalation("high", Binary(">=", NameExpression("count"), Literal(9))),))
    assert found("info", worse) == ["rebalanced inc- 1"]
    assert (found("high", worse), found("info", REBALANCED)) == ([], [])


def test_a_missing_time_is_no_time() -> None:
    [incident] = told(alert("task-killed", 0, dated=False, connector="a", task="0"))
    assert incident.first_seen is None
    assert incident.last_seen is None


def test_evidence_is_the_roots_then_one_of_each_symptom() -> None:
    ledger = MemoryLedger()
    cause = alert("too-large", 0, connector="a", task="0", events=["c1", "c2"])
    killed = alert("task-killed", 1, connector="a", task="0", events=["k1", "k2"])
    lines = [Evidence(name, "worker.log", n, minute(n), name) for n, name in enumerate(["c1", "c2", "k1", "k2"], 1)]
    list(group([*lines, Verdict(cause.key, (cause,)), Verdict(killed.key, (killed,))], EVERYTHING, ledger))
    assert [e.event_id for e in ledger.incidents("prod")[0].evidence] == ["c1", "c2", "k1"]


def test_an_event_that_goes_on_after_it_was_told_is_shown_whole() -> None:
    ledger, killed = MemoryLedger(), alert("task-killed", 0, connector="a")
    for whole in ("java.lang.Error", "java.lang.Error\n\tat App.main"):
        proof = [Evidence(event, "a.log", 1, minute(0), whole) for event in killed.evidence]
        list(group([*proof, Verdict(killed.key, (killed,))], EVERYTHING, ledger))
        [shown] = ledger.incidents("prod")
        assert {each.text for each in shown.evidence} == {whole}
    assert shown.revision == 2


def test_the_roster_and_the_configuration_fill_templates() -> None:
    fix = Step(text(hole("brokers")), run=(text("x"), text(hole("bootstrap", charset="hosts"))))
    configured = replace(plan(rule("r", fix=[fix])), context={"prod.bootstrap": "k1:9092,k2:9092", "other.bootstrap": "no"})
    ledger = MemoryLedger()
    one = alert("r", 0)
    list(group([Roster("prod", {"broker": ("1", "2", "3")}), Verdict(one.key, (one,))], configured, ledger))
    [incident] = ledger.incidents("prod")
    assert (incident.fix[0].do, incident.fix[0].run) == ("1,2,3", "x k1:9092,k2:9092")


HISTORY = [
    alert("too-large", 0, over=True, connector="a", task="0"),
    alert("task-killed", 1, connector="a", task="0"),
    alert("refused-by-broker", 400, connector="a", task="0"),
    alert("broker-silent", 20, broker="1"),
    alert("peer-complains", 21, captures={"node": "1"}, broker="2"),
    alert("peer-complains", 22, captures={"node": "1"}, broker="3"),
    alert("rebalanced", 50, severity="info", group="g", sources=["a"]),
    alert("commit-failed", 60, group="?a", sources=["a"]),
    alert("task-killed", 300, connector="b", task="1"),
]


def final(incidents: list[Incident]) -> list[object]:
    return sorted(
        (i.key, i.status, i.first_seen, i.last_seen, i.count, i.stage, sorted(s.rule for s in i.symptoms)) for i in incidents
    )


@given(st.randoms(use_true_random=False), st.integers(min_value=1, max_value=9))
def test_the_order_and_the_cut_of_the_findings_do_not_matter(chance: random.Random, size: int) -> None:
    shuffled = chance.sample(HISTORY, len(HISTORY))
    ledger = MemoryLedger()
    for at in range(0, len(shuffled), size):
        list(group([Verdict(a.key, (a,)) for a in shuffled[at : at + size]], EVERYTHING, ledger))
    left = [i for i in ledger.incidents("prod") if i.status not in ("merged", "retracted")]
    assert final(left) == final(told(*HISTORY))


class _Counting(MemoryLedger):
    """A ledger that counts the questions it is asked for evidence."""

    asked = 0

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        self.asked += 1
        return super().evidence(event_ids)


def test_old_incidents_add_no_questions_to_a_decision() -> None:
    ledger, rules = _Counting(), plan(KILLED)
    old = [alert("task-killed", 10_000 * n, over=True, connector=f"c{n}") for n in range(20)]
    told(*old, ledger=ledger, rules=rules)
    ledger.asked = 0
    told(alert("task-killed", 900_000, connector="new"), ledger=ledger, rules=rules)
    assert ledger.asked == 1
    assert len(ledger.incidents("prod")) == 21
