"""Outlines: the passages of an incident, safe to show anywhere, and cut to a budget without cutting a command."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from engine.model.incidents import Symptom
from engine.model.notifications import Notification, Reason
from engine.model.outlines import MOST_EVENT, Passage, fitting, headline, outline, plain
from tests.unit.cli.incidents import AT, TOO_LARGE, incident


def test_passages_come_in_the_order_of_need() -> None:
    passages = outline(Notification(TOO_LARGE, Reason.ESCALATED, "severity is critical now"))
    assert [passage.name for passage in passages] == [
        *("Changed", "When", "Where", "Cause", "Impact", "Fix 1", "Fix 2", "Fix 3"),
        *("Verify", "Proof", "Explains", "Or", "Check", "See"),
    ]
    assert plain(passages[1:4]) == (
        "When: since 2023-02-03 02:05:02 UTC, last seen 2023-02-03 02:05:07 UTC\n\n"
        "Where: connector=cdc-source task=0 topic=A.B.C worker=kafka-connect-2\n\n"
        "Cause: cdc-source tried to send a 1.07 MiB record; its producer allows 1 MiB."
    )
    assert plain(passages[5:6]).endswith("\n  producer.max.request.size=2097152\n  CONNECT_PRODUCER_MAX_REQUEST_SIZE=2097152")


def test_when_it_was_and_how_long() -> None:
    over = incident(status="resolved", resolved_at=AT + timedelta(minutes=25), count=41, why="seen to start again")
    (when,) = [passage.text for passage in outline(Notification(over, Reason.RESOLVED)) if passage.name == "When"]
    assert when == "since 2023-02-03 02:05:02 UTC, until 2023-02-03 02:30:02 UTC (25 min), 41 times, seen to start again"
    assert headline(over) == "Resolved: A Connect task produced a record larger than max.request.size"


def test_what_is_long_is_cut_where_nothing_is_run_and_counted() -> None:
    event = replace(TOO_LARGE.evidence[0], text="x" * 9_000)
    others = tuple(replace(event, event_id=f"e{n}", text="abcdefghi"[n]) for n in range(9))
    command = "kafka-topics.sh " + "x" * 9_000
    symptoms = tuple(Symptom(f"rule-{n}", "", 1, {}) for n in range(45))
    changed = incident(evidence=(event, *others), fix=(replace(TOO_LARGE.fix[0], run=command),), symptoms=symptoms)
    passages = {passage.name: passage for passage in outline(Notification(changed, Reason.OPENED))}
    assert passages["Fix 1"].code.endswith(command)
    assert passages["Proof"].text == "and 5 more lines on the incident's page"
    first_proof = next(passage for passage in outline(Notification(changed, Reason.OPENED)) if passage.name == "Proof")
    assert len(first_proof.code) == MOST_EVENT
    assert passages["Explains"].code.endswith("and 5 more")


def test_a_budget_leaves_whole_passages_out() -> None:
    passages = [Passage("A", "12"), Passage("B", "3456"), Passage("C", "", "78")]
    assert fitting(passages, 11) == tuple(passages)
    assert fitting(passages, 10) == (*passages[:2], Passage("More", "1 part did not fit in here", heading="More"))
    assert fitting(passages, 0) == (Passage("More", "3 parts did not fit in here", heading="More"),)


def test_what_cannot_be_seen_is_visible_and_lines_end_only_in_code() -> None:
    hostile = "a\x1b[31m\u202e\nb"
    changed = incident(title=hostile, cause=hostile, verify=hostile, labels={"topic": hostile}, why=hostile)
    passages = outline(Notification(changed, Reason.UPDATED, hostile))
    assert all(passage.text.isprintable() and passage.name.isprintable() for passage in passages)
    assert all(passage.code.replace("\n", "").isprintable() for passage in passages)
    assert headline(changed).isprintable()
