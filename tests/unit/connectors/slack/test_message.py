"""What an incident looks like in Slack: order, limits, and log text that stays text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from connectors.slack import breaches, open_receiver, open_webhook_receiver, parent, reply
from connectors.slack.limits import MOST_BLOCKS, MOST_CHARACTERS, SlackBlock, characters, cut, fitted
from connectors.slack.message import escaped
from connectors.slack.receiver import API
from engine.errors import UsageError
from engine.model.incidents import Evidence, Symptom
from engine.model.links import LineLinks, Link
from engine.model.notifications import Notification, Reason
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

RAW = st.text(max_size=4000)


def shown(blocks: list[SlackBlock]) -> list[str]:
    """Return the texts of each block, joined."""
    return ["".join(_texts(block)) for block in blocks]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [t for k, v in value.items() for t in ([v] if k in ("text", "url") and isinstance(v, str) else _texts(v))]
    return [t for item in value for t in _texts(item)] if isinstance(value, list) else []


def test_the_order_is_what_a_reader_needs_first() -> None:
    starts = [
        "CRITICAL: A Connect task",
        "Where  connector=cdc-source",
        "When",
        "Cause",
        "Impact",
        "Fix 1",
        "producer.max.request.size=2097152",
        "Fix 2",
        "kafka-configs.sh",
        "Fix 3",
        "plan.json:",
        "Verify",
        "curl",
        "Evidence  connect.log#kafka-connect-2:12",
        "[2023-02-03 02:05:02,285] ERROR",
        "Explains  1 x A Connect task was killed",
        "Or  broker-silent",
        "See https://kafka.apache.org",
        TOO_LARGE.id,
    ]
    lines = shown(parent(TOO_LARGE).blocks)
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts


LINKS = (Link("incident", "https://tocsin.example/incidents/inc-1"), Link("kibana", "https://k/" + "x" * 3000))


def test_links_lead_on_even_from_a_message_that_is_cut_and_from_a_part_of_another() -> None:
    huge = incident(fix=TOO_LARGE.fix * 2, evidence=tuple(replace(TOO_LARGE.evidence[0], text="y" * 2000) for _ in range(9)))
    step = replace(TOO_LARGE.fix[0], run="z" * 2400)
    for shown_incident in (TOO_LARGE, replace(huge, fix=(step,) * 6), incident(status="merged", merged_into="inc-2")):
        message = parent(shown_incident, LINKS)
        assert "Open https://tocsin.example/incidents/inc-1Incident page" in "".join(shown(message.blocks))
        assert breaches(message.text, message.blocks) == []


def test_a_line_of_evidence_leads_on_when_the_address_is_short() -> None:
    event_id = TOO_LARGE.evidence[0].event_id
    short, around = Link("line", "https://k/app/discover#/doc/v/i?id=1"), Link("around", "https://k/2")
    for link, is_shown in ((short, True), (Link("line", "https://k/" + "x" * 1000), False)):
        lines = {event_id: LineLinks((link, around)[:1] if not is_shown else (link, around), "q")}
        message = parent(TOO_LARGE, (), lines)
        assert (f"{link.url}In Kibana" in "".join(shown(message.blocks))) is is_shown
        assert breaches(message.text, message.blocks) == []
    thread = reply(Notification(TOO_LARGE, Reason.OPENED, lines={event_id: LineLinks((short,), "")}))
    assert thread is not None and f"{short.url}In Kibana" in "".join(shown(thread.blocks))


def test_stack_frames_are_left_to_the_thread() -> None:
    assert not any("WorkerSourceTask.java" in line for line in shown(parent(TOO_LARGE).blocks))
    thread = reply(Notification(TOO_LARGE, Reason.OPENED))
    assert thread is not None
    assert any("WorkerSourceTask.java" in line for line in shown(thread.blocks))


@pytest.mark.parametrize(
    ("status", "headline"),
    [("open", "CRITICAL: "), ("acknowledged", "Acknowledged: "), ("resolved", "Resolved: "), ("retracted", "Retracted: ")],
)
def test_the_headline_says_the_state(status: str, headline: str) -> None:
    assert shown(parent(incident(status=status)).blocks)[0].startswith(headline)


def test_a_merged_incident_is_one_line_that_names_the_other() -> None:
    (line,) = shown(parent(incident(status="merged", merged_into="inc-9")).blocks)
    assert line.endswith("part of another incident now, inc-9")


def test_log_text_cannot_format_link_or_ping() -> None:
    text = "<!channel> *bold* <https://evil.example|click>\u202e"
    message = parent(incident(title=text, cause=text, evidence=(Evidence("e", "a.log", 1, AT, text),)))
    kinds = {block["type"] for block in message.blocks}
    assert kinds == {"header", "rich_text"}, "no block in which Slack reads markup"
    assert "<" not in message.text
    assert "&lt;!channel&gt;" in message.text
    assert all("\u202e" not in line for line in shown(message.blocks))


def test_only_real_addresses_become_links() -> None:
    blocks = parent(incident(references=("javascript:alert(1)", "the manual", "https://ok.example"))).blocks
    links = [e["url"] for b in blocks if b["type"] == "rich_text" for e in b["elements"][0]["elements"] if e["type"] == "link"]
    assert links == ["https://ok.example"]


def test_a_reply_is_the_evidence_first_and_then_what_is_new() -> None:
    first = reply(Notification(TOO_LARGE, Reason.OPENED))
    assert first is not None
    assert "failed to send record" in "".join(shown(first.blocks))
    changed = reply(Notification(TOO_LARGE, Reason.RESOLVED, "resolved <now>"))
    assert changed is not None
    assert (changed.text, shown(changed.blocks)) == ("resolved &lt;now&gt;", ["resolved <now>"])
    assert reply(Notification(TOO_LARGE, Reason.UPDATED)) is None
    assert reply(Notification(incident(evidence=(), next_checks=()), Reason.OPENED)) is None


@given(title=RAW, cause=RAW, do=RAW, run=RAW, log=RAW, label=RAW, many=st.integers(0, 60))
def test_every_incident_fits_into_a_message(title: str, cause: str, do: str, run: str, log: str, label: str, many: int) -> None:
    step = replace(TOO_LARGE.fix[0], do=do, run=run, file={label: log})
    made = incident(
        title=title,
        cause=cause,
        labels={"topic": label},
        fix=(step,) * many,
        evidence=tuple(Evidence(f"e{n}", label, n, AT, log) for n in range(many)),
        symptoms=tuple(Symptom("rule", title, n, {"topic": label}) for n in range(many)),
        next_checks=(do,) * many,
    )
    for message in (parent(made), reply(Notification(made, Reason.OPENED)), reply(Notification(made, Reason.UPDATED, cause))):
        if message is not None:
            assert breaches(message.text, message.blocks) == []


def test_what_is_over_a_limit_is_told() -> None:
    long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    head = {"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}
    none = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": ""}]}]}
    assert breaches("t", [long, head, none]) == [
        "a section of 3001 characters, at most 3000",
        "a header of 151 characters, at most 150",
        "an empty text in a rich_text",
    ]
    assert breaches("", [none] * 46)[:2] == ["the message has no top-level text", "46 blocks, at most 45"]
    assert breaches("t", [long] * 5)[0] == "15005 characters, at most 12000"


def test_what_does_not_fit_is_replaced_by_a_remark() -> None:
    block = {"type": "section", "text": {"type": "plain_text", "text": "x" * 1000}}
    remark = {"type": "section", "text": {"type": "plain_text", "text": "more"}}
    assert fitted([block] * 12, [remark]) == [block] * 12
    kept = fitted([block] * 13, [remark])
    assert kept == [*[block] * 11, remark]
    assert characters(kept) <= MOST_CHARACTERS
    small = {"type": "divider"}
    assert len(fitted([small] * 46, [remark])) == MOST_BLOCKS


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
