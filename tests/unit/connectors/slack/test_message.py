"""What an incident looks like in Slack: order, limits, and log text that stays text."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.slack import breaches, change, details, open_receiver, open_webhook_receiver, parent
from connectors.slack.limits import MOST_SHOWN, MOST_SHOWN_BLOCKS, cut, shown_characters
from connectors.slack.message import NEW_FIX, escaped, fix_mark, is_loud
from connectors.slack.receiver import API
from connectors.slack.summary import MOST_IN_COMMAND
from engine.deliver.audit_digests import audit_incident
from engine.errors import UsageError
from engine.model.incidents import QUIET, Evidence, RenderedStep, Symptom
from engine.model.links import Link
from engine.model.notifications import Notification, Reason
from engine.model.rules import SEVERITIES
from engine.risks.judging import judged
from tests.unit.cli.incidents import AT, TOO_LARGE, incident
from tests.unit.connectors.slack.reading import shown
from tests.unit.risks.clusters import cluster, topic

RAW = st.text(max_size=4000)


def test_the_order_is_what_a_reader_needs_first() -> None:
    message = parent(TOO_LARGE, LINKS[:1])
    assert shown(message.blocks) == [
        "🔴 A Connect task produced a record larger than max.request.size",
        "CRITICAL since 2023-02-03 02:05:02 UTC · last seen 2023-02-03 02:05:07 UTC\n"
        "connector=cdc-source task=0 topic=A.B.C worker=kafka-connect-2",
        "cdc-source tried to send a 1.07 MiB record; its producer allows 1 MiB.",
        "Fix  Let the producer send it (worker)producer.max.request.size=2097152\nCONNECT_PRODUCER_MAX_REQUEST_SIZE=2097152",
        "Pagehttps://tocsin.example/incidents/inc-1",
    ]
    assert shown(message.barred) == [
        "Proof[2023-02-03 02:05:02,285] ERROR [cdc-source|task-0] WorkerSourceTask{id=cdc-source-0} failed to send record to "
        "A.B.C:  (org.apache.kafka.connect.runtime.AbstractWorkerSourceTask:406)\n"
        "org.apache.kafka.common.errors.RecordTooLargeException: The message is 1125872 bytes when serialized",
        "Explains 1 line of 1 kind · inc-0123456789 · connect-record-too-large-client",
    ]
    assert message.payload()["attachments"] == [{"color": "#b3001b", "blocks": message.barred}]


LINKS = (Link("incident", "https://tocsin.example/incidents/inc-1"), Link("kibana", "https://k/" + "x" * 3000))


def test_a_button_opens_each_link_that_slack_accepts() -> None:
    short = Link("kibana", "https://k/1")
    for status in ("open", "resolved", "merged"):
        message = parent(incident(status=status, merged_into="inc-2"), (LINKS[0], short, LINKS[1]))
        (row,) = [block for block in (*message.blocks, *message.barred) if block["type"] == "actions"]
        assert [(b["text"]["text"], b["url"]) for b in row["elements"]] == [("Page", LINKS[0].url), ("Logs", short.url)]
    assert not any(block["type"] == "actions" for block in parent(TOO_LARGE, LINKS[1:]).blocks), "no button that does nothing"


def test_times_are_shown_in_the_zone_of_the_reader() -> None:
    elements = parent(TOO_LARGE).blocks[1]["elements"][0]["elements"]
    dates = [element for element in elements if element["type"] == "date"]
    assert [date["timestamp"] for date in dates] == [1675389902, 1675389907]
    assert "the lines bear no date" in shown(parent(incident(first_seen=None)).blocks)[1]


@pytest.mark.parametrize("severity", SEVERITIES)
def test_each_severity_has_its_colour(severity: str) -> None:
    message = parent(incident(severity=severity))
    assert shown(message.blocks)[0][0] in "🔴🟠🟡🔵⚪"
    others = {parent(incident(severity=other)).colour for other in SEVERITIES if other != severity}
    assert message.colour not in others


def test_an_acknowledged_incident_says_so_and_keeps_its_advice() -> None:
    message = parent(incident(status="acknowledged"))
    assert shown(message.blocks)[1].startswith("CRITICAL, acknowledged since ")
    assert any(text.startswith("Fix  ") for text in shown(message.blocks))
    assert message.text.startswith("Acknowledged: ")


@pytest.mark.parametrize(
    ("changes", "line", "is_green"),
    [
        (
            {"status": "resolved", "resolved_at": AT + timedelta(minutes=7, seconds=23), "why": "seen to recover"},
            "✅ Resolved after 7 min 23 s (seen to recover): ",
            True,
        ),
        ({"status": "resolved"}, "✅ Resolved: ", True),
        (
            {"status": "resolved", "resolved_at": AT + timedelta(hours=2), "why": QUIET},
            "⚪ Resolved after 2 h (quiet, not confirmed): ",
            False,
        ),
        ({"status": "retracted", "why": "the lines came late"}, "⚪ Retracted (the lines came late): ", False),
        ({"status": "merged", "merged_into": "inc-9"}, "", False),
    ],
)
def test_an_incident_that_is_over_is_one_line(changes: dict[str, Any], line: str, is_green: bool) -> None:
    message = parent(incident(**changes))
    (text,) = shown(message.blocks)
    assert text.startswith(f"{line}A Connect task produced")
    assert (message.colour == "#2eb886") is is_green
    assert len(message.barred) == 1
    if changes["status"] == "merged":
        assert text.endswith("part of another incident now: inc-9")


def test_a_digest_lists_its_first_incidents() -> None:
    symptoms = tuple(Symptom(f"rule-{n}", f"low: such as {n}", n + 1, {}) for n in range(9))
    digest = incident(rule="flood", fix=(), labels={}, evidence=(), symptoms=symptoms, cause="Many came at once.")
    lines = shown(parent(digest).blocks)[-1].split("\n")
    assert lines == [
        "Among them1 x low: such as 0",
        *(f"{n} x low: such as {n - 1}" for n in range(2, 6)),
        "and 4 more in the thread",
    ]
    thread = "".join(text for page in details(digest) for text in shown(page.blocks))
    assert all(f"low: such as {n}" in thread for n in range(5, 9))
    assert "low: such as 4" not in thread


def test_a_digest_of_risks_lists_them_and_leads_to_their_page() -> None:
    page = Link("audit", "https://tocsin.example/audit")
    message = parent(audit_incident(judged(cluster(topic("lone", (2,))))), [page])
    first, *_, risks, button = shown(message.blocks)
    assert first.endswith("1 risk in prod")
    assert risks == "Risks1 x high: The partition of topic lone has one replica, on broker 2"
    assert button == f"Page{page.url}"


def test_a_command_is_never_cut() -> None:
    for length in (MOST_IN_COMMAND, MOST_IN_COMMAND + 1):
        long = incident(fix=(RenderedStep("Do it", run="x" * length),))
        in_message = "x" * length in "".join(shown(parent(long).blocks))
        in_thread = "x" * length in "".join(text for page in details(long) for text in shown(page.blocks))
        assert (in_message, in_thread) == (length == MOST_IN_COMMAND, length != MOST_IN_COMMAND)
        assert "xxx" not in "".join(shown(parent(long).blocks)) or in_message


def test_stack_frames_are_left_to_the_thread() -> None:
    message = parent(TOO_LARGE)
    assert not any("WorkerSourceTask.java" in line for line in shown([*message.blocks, *message.barred]))
    assert any("WorkerSourceTask.java" in line for page in details(TOO_LARGE) for line in shown(page.blocks))


def test_log_text_cannot_format_link_or_ping() -> None:
    text = "<!channel> *bold* <https://evil.example|click>\u202e"
    message = parent(incident(title=text, cause=text, why=text, evidence=(Evidence("e", "a.log", 1, AT, text),)))
    blocks = [*message.blocks, *message.barred]
    assert {block["type"] for block in blocks} == {"header", "rich_text", "context"}
    assert not _markup(blocks), "no text in which Slack reads markup"
    assert "<" not in message.text
    assert "&lt;!channel&gt;" in message.text
    assert all("\u202e" not in line for line in shown(blocks))
    assert "<" not in message.plain()["text"]


def _markup(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get("type") == "mrkdwn" or any(map(_markup, value.values()))
    return any(map(_markup, value)) if isinstance(value, list) else False


def test_a_change_is_one_line() -> None:
    changed = change(Notification(TOO_LARGE, Reason.RESOLVED, "resolved <now>"))
    assert changed is not None
    assert (changed.text, shown(changed.blocks)) == ("resolved &lt;now&gt;", ["resolved <now>"])
    assert change(Notification(TOO_LARGE, Reason.UPDATED)) is None
    new_fix = change(Notification(TOO_LARGE, Reason.UPDATED), NEW_FIX)
    assert new_fix is not None
    assert shown(new_fix.blocks)[0].startswith("The fix is now  Let the producer send it (worker)producer.max.request.size=")
    assert change(Notification(incident(status="resolved"), Reason.UPDATED), NEW_FIX) is None


def test_a_fix_is_another_one_when_more_than_its_numbers_changed() -> None:
    def fix(run: str, **changes: Any) -> str:
        return fix_mark(incident(fix=(RenderedStep("Do it", run=run),), **changes))

    assert fix("set 1", cause="x") == fix("set 1", cause="y")
    assert fix("set 1") != fix("set 2")
    loud = [is_loud(Reason.UPDATED, fix("set 1"), other) for other in (fix("set 1"), fix("set 2"), fix("reset 1"), "")]
    assert loud == [False, False, True, False]
    assert fix("set 1", status="resolved") == ""
    assert is_loud(Reason.ESCALATED)


@given(
    title=RAW,
    cause=RAW,
    do=RAW,
    run=RAW,
    log=RAW,
    label=RAW,
    why=RAW,
    rule=st.sampled_from(["rule", "flood", "backfill"]),
    many=st.integers(0, 60),
    status=st.sampled_from(["open", "acknowledged", "resolved", "retracted", "merged"]),
)
def test_every_incident_fits_into_a_short_message(
    title: str, cause: str, do: str, run: str, log: str, label: str, why: str, rule: str, many: int, status: str
) -> None:
    step = RenderedStep(do, label, {label: run}, {}, {label: log}, run, changes_state=True)
    made = incident(
        title=title,
        cause=cause,
        why=why,
        rule=rule,
        status=status,
        merged_into="inc-2",
        labels={"topic": label},
        fix=(step,) * many,
        evidence=tuple(Evidence(f"e{n}", label, n, AT, log) for n in range(many)),
        symptoms=tuple(Symptom("rule", title, n, {"topic": label}) for n in range(many)),
        next_checks=(do,) * many,
    )
    message = parent(made, (LINKS[0], Link("kibana", "https://k/1")))
    assert breaches(**message.payload()) == []
    everything = [*message.blocks, *message.barred]
    assert len(everything) <= MOST_SHOWN_BLOCKS
    assert shown_characters(everything) <= MOST_SHOWN
    for other in (*details(made), change(Notification(made, Reason.UPDATED, cause), NEW_FIX)):
        if other is not None:
            assert breaches(**other.payload()) == []
            assert breaches(**other.plain()) == []


def test_what_is_over_a_limit_is_told() -> None:
    long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    head = {"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}
    none = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": ""}]}]}
    row = {"type": "actions", "elements": [{"type": "button", "text": {"text": "x" * 76}, "url": "y" * 3001, "action_id": "a"}]}
    day = {"type": "rich_text", "elements": [{"type": "date", "timestamp": "1", "format": "{date}", "fallback": "f"}]}
    assert breaches("t", [long, head, none], [{"blocks": [row, day, {"type": "context", "elements": []}]}]) == [
        "a section of 3001 characters, at most 3000",
        "a header of 151 characters, at most 150",
        "an empty text in a rich_text",
        "a button's text of 76 characters, at most 75",
        "a button's address of 3001 characters, at most 3000",
        "a date without a whole timestamp or a format",
        "0 elements in a block of type context, at least 1 and at most 10",
    ]
    assert breaches("", [none] * 45, [{"blocks": [none]}])[:2] == ["the message has no top-level text", "46 blocks, at most 45"]
    assert breaches("t", [long] * 5)[0] == "15005 characters, at most 12000"
    assert breaches("x" * 40_001, []) == ["a text of 40001 characters, at most 40000"]


def test_text_is_cut_with_an_ellipsis_and_escaped_once() -> None:
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
    assert escaped("a & <b>") == "a &amp; &lt;b&gt;"


@pytest.mark.parametrize("url", ["http://slack.example/api/", "ftp://x", "", "http://127.0.0.1.evil.example/"])
def test_a_token_goes_to_https_or_this_machine_only(url: str) -> None:
    with pytest.raises(UsageError):
        open_receiver("#x", "xoxb-1", url)
    with pytest.raises(UsageError):
        open_webhook_receiver(url)
    for fine in (API, "http://127.0.0.1:1/", "http://[::1]:1/", "http://localhost/"):
        open_receiver("#x", "xoxb-1", fine)
