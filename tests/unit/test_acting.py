"""What people do: what has an effect, how long it holds against the logs, and how an incident is shown."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.acting import IN_FLIGHT, as_shown, decide_act, handling_of, known_until, lapses, noted, silence_of
from engine.model.acts import Act, ActKind, ActOutcome, SilenceScope
from engine.model.incidents import AlertCourse, Incident
from tests.unit.cli.incidents import AT, incident

SEEN = AT + timedelta(seconds=5)  # the last event of the incident
THEN = SEEN + timedelta(minutes=20)  # when people act
OPEN = incident()
RESOLVED = incident(status="resolved", why="quiet, not confirmed", resolved_at=SEEN)


def act(kind: ActKind, of: Incident = OPEN, **changes: Any) -> Act:
    made = Act(f"key-{kind.value}", of.id, kind, "mina", "page", THEN)
    return noted(replace(made, **changes), of)


def after(of: Incident, *kinds: ActKind | Act) -> Incident:
    """Return an incident as shown after acts that were done when it was `of`."""
    return as_shown(of, handling_of(each if isinstance(each, Act) else act(each, of) for each in kinds))


def later(of: Incident, seconds: float, **changes: Any) -> Incident:
    """Return what the logs make of an incident with an event `seconds` after the last one."""
    return replace(of, last_seen=SEEN + timedelta(seconds=seconds), count=of.count + 1, **changes)


def firing(minutes: float) -> AlertCourse:
    at = SEEN + timedelta(minutes=minutes)
    return AlertCourse("root", OPEN.rule, OPEN.title, "critical", at, at, None, 1, {})


@pytest.mark.parametrize(
    ("of", "kind", "state", "owner"),
    [
        (OPEN, ActKind.ACKNOWLEDGE, "acknowledged", "mina"),
        (OPEN, ActKind.RESOLVE, "resolved", ""),
        (RESOLVED, ActKind.REOPEN, "open", ""),
    ],
)
def test_a_person_sets_the_state_and_has_what_is_acknowledged(of: Incident, kind: ActKind, state: str, owner: str) -> None:
    assert decide_act(act(kind, of), of).outcome is ActOutcome.DONE
    shown = after(of, act(kind, of, text="on it"))
    assert (shown.status, shown.owner, shown.why) == (state, owner, "by mina: on it")
    assert shown.resolved_at == (THEN if state == "resolved" else None)


def test_the_same_state_again_changes_nothing_and_names_the_first() -> None:
    for of, kind in ((OPEN, ActKind.ACKNOWLEDGE), (OPEN, ActKind.RESOLVE)):
        shown = after(of, kind)
        decision = decide_act(act(kind, shown, by="jun"), shown)
        assert decision.outcome is ActOutcome.UNCHANGED
        assert "by mina" in decision.sentence
    assert decide_act(act(ActKind.REOPEN), OPEN).outcome is ActOutcome.UNCHANGED


def test_newer_evidence_opens_what_a_person_resolved() -> None:
    handling = handling_of([act(ActKind.RESOLVE)])
    again = as_shown(later(OPEN, 20 * 60 + 1), handling)
    assert (again.status, again.owner, again.resolved_at) == ("open", "", None)
    assert as_shown(replace(OPEN, count=9, severity="low"), handling).status == "resolved", "older lines are no news"


def test_what_was_on_its_way_is_no_newer_evidence_for_two_minutes() -> None:
    assert known_until(SEEN, SEEN + timedelta(seconds=3)) == SEEN + timedelta(seconds=3)
    assert known_until(SEEN, THEN) == SEEN + IN_FLIGHT
    assert known_until(SEEN, SEEN - timedelta(hours=9)) == SEEN, "the clock of a source may be ahead"
    assert known_until(None, THEN) is None
    handling = handling_of([act(ActKind.RESOLVE, at=SEEN + timedelta(seconds=3))])
    assert as_shown(later(OPEN, 2), handling).status == "resolved"
    assert as_shown(later(OPEN, 4), handling).status == "open"


def test_without_times_one_more_line_opens_it() -> None:
    undated = incident(first_seen=None, last_seen=None)
    handling = handling_of([act(ActKind.RESOLVE, undated)])
    assert as_shown(undated, handling).status == "resolved"
    assert as_shown(replace(undated, count=2), handling).status == "open"
    assert as_shown(replace(undated, count=2), handling_of([act(ActKind.ACKNOWLEDGE, undated)])).status == "acknowledged"


def test_an_acknowledgement_lasts_while_it_goes_on_and_ends_when_it_begins_again() -> None:
    handling = handling_of([act(ActKind.ACKNOWLEDGE)])
    assert as_shown(later(OPEN, 3600, course=(firing(-1),)), handling).status == "acknowledged"
    ended = as_shown(replace(RESOLVED, course=(firing(-1),)), handling)
    assert (ended.status, ended.why) == ("resolved", RESOLVED.why)
    again = as_shown(later(OPEN, 7200, course=(firing(-1), firing(120))), handling)
    assert (again.status, again.owner) == ("open", "")
    assigned = handling_of([act(ActKind.ACKNOWLEDGE), act(ActKind.ASSIGN, assignee="jun")])
    assert as_shown(later(OPEN, 7200, course=(firing(-1), firing(120))), assigned).owner == "jun"


def test_reopening_what_is_not_over_leaves_its_end_to_the_logs() -> None:
    acknowledged = after(OPEN, ActKind.ACKNOWLEDGE)
    acts = [act(ActKind.ACKNOWLEDGE), act(ActKind.REOPEN)]
    assert decide_act(acts[1], acknowledged).outcome is ActOutcome.DONE
    assert (after(OPEN, *acts).status, after(OPEN, *acts).owner) == ("open", "")
    assert as_shown(RESOLVED, handling_of(acts)).status == "resolved"
    by_hand = handling_of([act(ActKind.REOPEN, RESOLVED)])
    assert as_shown(later(RESOLVED, 3600), by_hand).status == "resolved", "what is new since then is judged by the logs"


@pytest.mark.parametrize("status", ["merged", "retracted"])
def test_the_logs_alone_take_back_and_merge(status: str) -> None:
    shown = as_shown(replace(OPEN, status=status), handling_of([act(ActKind.ACKNOWLEDGE)]))
    assert shown.status == status


@pytest.mark.parametrize(
    ("of", "changes", "sentence"),
    [
        (OPEN, {"kind": ActKind.NOTE, "text": "  "}, "the note is empty"),
        (OPEN, {"kind": ActKind.NOTE, "text": "x" * 4001}, "more than 4,000 characters"),
        (OPEN, {"kind": ActKind.NOTE, "text": "x", "by": " "}, "not known"),
        (OPEN, {"kind": ActKind.ASSIGN, "assignee": "x" * 201}, "more than 200 characters"),
        (OPEN, {"kind": ActKind.SILENCE, "until": THEN}, "ends later than it begins"),
        (OPEN, {"kind": ActKind.SILENCE}, "ends later than it begins"),
        (RESOLVED, {"kind": ActKind.ACKNOWLEDGE}, r"resolved \(quiet, not confirmed\); reopen it first"),
        (incident(status="retracted"), {"kind": ActKind.RESOLVE}, "taken back"),
        (incident(pending=True), {"kind": ActKind.RESOLVE}, "not confirmed yet"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(of: Incident, changes: dict[str, Any], sentence: str) -> None:
    decision = decide_act(act(of=of, **changes), of)
    assert decision.outcome is ActOutcome.REFUSED
    assert re.search(sentence, decision.sentence)


def test_who_has_it_is_the_last_to_be_assigned_or_to_acknowledge() -> None:
    acts = [act(ActKind.ASSIGN, assignee="jun")]
    assert (after(OPEN, *acts).status, after(OPEN, *acts).owner) == ("open", "jun")
    assert decide_act(acts[0], after(OPEN, *acts)).outcome is ActOutcome.UNCHANGED
    acts.append(act(ActKind.ACKNOWLEDGE))
    assert after(OPEN, *acts).owner == "mina"
    acts.append(act(ActKind.ASSIGN, assignee=""))
    assert after(OPEN, *acts).owner == ""
    assert after(OPEN, *acts).edition == "2a3"


def test_each_act_makes_another_edition() -> None:
    assert (OPEN.edition, after(OPEN, act(ActKind.NOTE, text="x")).edition) == ("2", "2a1")


def test_whether_it_was_useful_is_what_was_judged_last() -> None:
    shown = after(OPEN, ActKind.USEFUL, act(ActKind.NOT_USEFUL, text="the same as yesterday"))
    assert shown.handling is not None and shown.handling.useful is False
    assert decide_act(act(ActKind.NOT_USEFUL), shown).outcome is ActOutcome.UNCHANGED
    assert decide_act(act(ActKind.USEFUL), shown).outcome is ActOutcome.DONE


@pytest.mark.parametrize(
    ("scope", "matchers"),
    [
        (SilenceScope.INCIDENT, ['incident="inc-0123456789"']),
        (SilenceScope.RULE, ['rule="connect-record-too-large-client"', 'cluster="default"']),
        (SilenceScope.ENTITY, ['connector="cdc-source"', 'task="0"', 'cluster="default"']),
    ],
)
def test_a_silence_matches_what_it_is_about(scope: SilenceScope, matchers: list[str]) -> None:
    silence = silence_of(act(ActKind.SILENCE, scope=scope, until=THEN + timedelta(hours=2)), OPEN)
    assert silence is not None and len(silence.id) == 8
    assert ([str(each) for each in silence.matchers], silence.by) == (matchers, "mina")


def test_a_silence_of_an_entity_never_mutes_a_whole_cluster() -> None:
    whole = incident(key=("default", "r", (("cluster", "default"),)))
    silence = act(ActKind.SILENCE, whole, scope=SilenceScope.ENTITY, until=THEN + timedelta(hours=2))
    assert decide_act(silence, whole).outcome is ActOutcome.REFUSED
    assert silence_of(silence, whole) is None


def test_a_state_that_newer_evidence_ended_is_found_where_that_came_and_once() -> None:
    grown, again = later(OPEN, 60), later(OPEN, 3600)
    resolved = act(ActKind.RESOLVE)
    assert lapses([resolved], [OPEN, grown]) == []
    assert lapses([resolved], [OPEN, grown, again, later(OPEN, 7200)]) == [(resolved, again)]
    sooner = act(ActKind.REOPEN, grown)
    assert lapses([resolved, sooner], [OPEN, grown, again]) == [], "a person had opened it before"
    later_on = act(ActKind.RESOLVE, again)
    assert lapses([resolved, later_on], [OPEN, grown, again]) == [(resolved, again)]
    assert lapses([], [OPEN, again]) == []
