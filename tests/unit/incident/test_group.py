"""An incident whose rule is gone ends, once, and says why; it is not called wrong, for nobody can tell."""

from __future__ import annotations

from msgspec.structs import replace

from engine.incident import NOT_JUDGED, MemoryLedger, group, regroup
from engine.model.incidents import Incident, Verdict
from engine.model.rules import Plan
from tests.unit.incident.scene import alert, explains, minute, plan, rule

GREETED, PARTED = rule("greeted"), rule("parted")
BOTH = replace(plan(GREETED, PARTED), hash="both")
PARTED_ONLY = replace(plan(PARTED), hash="parted only")
RENAMED = replace(plan(PARTED, replace(rule("welcomed"), replaces=("greeted",))), hash="renamed")


def opened(rules: Plan = BOTH, *, over: bool = False, status: str = "") -> tuple[MemoryLedger, Incident]:
    ledger, holds = MemoryLedger(), alert("greeted", 0, 5, over=over, status=status)
    (incident,) = group([Verdict(holds.key, (holds,))], rules, ledger)
    return ledger, incident


def test_an_open_incident_of_a_rule_that_is_gone_is_resolved_once_though_nothing_else_is_said() -> None:
    ledger, incident = opened()
    (ended,) = regroup(PARTED_ONLY, ledger)
    assert (ended.id, ended.revision, ended.status) == (incident.id, 2, "resolved")
    assert (ended.why, ended.resolved_at) == (f"its rule `greeted` was removed: {NOT_JUDGED}", minute(5))
    assert list(regroup(PARTED_ONLY, ledger)) == []


def test_it_is_the_same_when_the_rules_are_found_gone_as_something_else_is_said() -> None:
    ledger, incident = opened()
    parted = alert("parted", 9)
    ended, other = sorted(group([Verdict(parted.key, (parted,))], PARTED_ONLY, ledger), key=lambda each: each.id != incident.id)
    assert (ended.id, ended.status, ended.why) == (incident.id, "resolved", f"its rule `greeted` was removed: {NOT_JUDGED}")
    assert (other.rule, other.status) == ("parted", "open")


def test_a_rule_that_is_called_otherwise_is_named() -> None:
    ledger, _ = opened()
    (ended,) = regroup(RENAMED, ledger)
    assert ended.why == f"its rule `greeted` is `welcomed` now: {NOT_JUDGED}"


def test_what_was_over_stays_as_it_was() -> None:
    ledger, _ = opened(over=True)
    assert list(regroup(PARTED_ONLY, ledger)) == []


def test_what_nobody_was_told_of_yet_is_taken_back() -> None:
    ledger, _ = opened(status="pending")
    (ended,) = regroup(PARTED_ONLY, ledger)
    assert (ended.status, ended.pending) == ("retracted", False)


def test_a_rule_that_comes_back_opens_its_incident_again() -> None:
    ledger, incident = opened()
    list(regroup(PARTED_ONLY, ledger))
    (again,) = regroup(BOTH, ledger)
    assert (again.id, again.status, again.revision) == (incident.id, "open", 3)


def test_what_a_removed_cause_had_explained_lives_on_in_its_incident() -> None:
    cause = rule("full", explains=[explains("stuck", host="host")])
    full, stuck = alert("full", 0, labels={"host": "h1"}), alert("stuck", 1, labels={"host": "h1"})
    ledger = MemoryLedger()
    both = replace(plan(cause, rule("stuck")), hash="with cause")
    *_, incident = group([Verdict(full.key, (full,)), Verdict(stuck.key, (stuck,))], both, ledger)
    assert incident.rule == "full"
    (now,) = regroup(replace(plan(rule("stuck")), hash="without"), ledger)
    assert (now.id, now.rule, now.status) == (incident.id, "stuck", "open")
