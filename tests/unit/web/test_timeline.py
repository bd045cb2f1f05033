"""The timeline: what the logs, the notifier and people did, in order of time."""

from __future__ import annotations

from datetime import timedelta

from engine.acting import noted
from engine.model.acts import Act, ActKind
from engine.model.notifications import Attempt, DeliveryState, Reason
from engine.picture.description import PERSON, STATE, TOLD
from engine.web.timeline import deeds, timeline
from tests.unit.cli.incidents import AT, incident

OPENED = incident(revision=1)
AGAIN = incident(revision=2, last_seen=AT + timedelta(hours=2), severity="high")


def act(kind: ActKind, minutes: int, text: str = "") -> Act:
    made = Act(f"{kind} {minutes}", OPENED.id, kind, "logs", "slack", AT + timedelta(minutes=minutes), text)
    return noted(made, OPENED)


def test_what_people_did_stands_where_it_was_done_also_for_somebody_with_the_name_of_a_part_of_tocsin() -> None:
    told = Attempt("ops", 1, Reason.OPENED, AT + timedelta(minutes=1), DeliveryState.DELIVERED)
    acts = [act(ActKind.ACKNOWLEDGE, 3), act(ActKind.NOTE, 5, "the disk"), act(ActKind.RESOLVE, 9, "cleaned")]
    changes = timeline([OPENED, AGAIN], [told], acts)
    assert [(change.by, change.via, change.sentence) for change in changes] == [
        ("logs", "", "opened with severity critical"),
        ("notifier", "", "ops was told: opened"),
        ("logs", "slack", "acknowledged"),
        ("logs", "slack", "note: the disk"),
        ("logs", "slack", "resolved: cleaned"),
        ("logs", "", "severity high, critical before"),
        ("logs", "", "open again: it has gone on since logs resolved it"),
    ]
    assert [deed.kind for deed in deeds(changes)] == [TOLD, PERSON, PERSON, PERSON, STATE, STATE]
    assert deeds(changes)[1].sentence == "logs: acknowledged"


def test_acts_without_times_in_the_logs_come_last() -> None:
    undated = incident(first_seen=None, last_seen=None, opened_at=None)
    changes = timeline([undated], acts=[act(ActKind.ACKNOWLEDGE, 3)])
    assert [change.sentence for change in changes] == ["opened with severity critical", "acknowledged"]
