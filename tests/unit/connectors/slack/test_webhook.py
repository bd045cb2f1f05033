"""An incoming webhook cannot reply in a thread: its message holds the details too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from connectors.slack import breaches, open_webhook_receiver
from engine.model.incidents import RenderedStep
from engine.model.notifications import DeliveryState, Notification, Reason
from tests.standins.slack import SlackStandIn
from tests.unit.cli.incidents import TOO_LARGE, incident
from tests.unit.connectors.slack.reading import shown


@pytest.fixture
def server() -> Iterator[SlackStandIn]:
    with SlackStandIn() as running:
        yield running


def posted(server: SlackStandIn, notification: Notification) -> dict[str, Any]:
    receipt = open_webhook_receiver(server.webhook_url).deliver(notification)
    assert receipt.state is DeliveryState.DELIVERED
    return server.messages[-1]


def test_the_details_are_beside_the_bar_of_the_severity(server: SlackStandIn) -> None:
    message = posted(server, Notification(TOO_LARGE, Reason.OPENED))
    assert len(message["blocks"]) == 4
    (attachment,) = message["attachments"]
    texts = shown(attachment["blocks"])
    assert [text[:5] for text in texts[:3]] == ["Proof", "Expla", "Impac"]
    assert any(text.startswith("Fix 3") for text in texts)


def test_what_is_too_much_for_one_message_is_counted(server: SlackStandIn) -> None:
    steps = tuple(RenderedStep(f"Step {number}", run="x" * 2000) for number in range(9))
    message = posted(server, Notification(incident(fix=steps), Reason.OPENED))
    assert shown(message["attachments"][0]["blocks"])[-1].endswith(" more parts did not fit in here.")
    assert breaches(message["text"], message["blocks"], message["attachments"]) == []


def test_a_change_is_the_headline_and_a_line_and_the_end_is_one_line(server: SlackStandIn) -> None:
    worse = posted(server, Notification(TOO_LARGE, Reason.ESCALATED, "severity is critical now, was high"))
    assert [text[:26] for text in shown(worse["blocks"])] == [
        "🔴 A Connect task produced ",
        "severity is critical now, ",
        "Fix  Let the producer send",
    ]
    over = posted(server, Notification(incident(status="resolved", why="seen to recover"), Reason.RESOLVED, "resolved"))
    assert [text.split(":")[0] for text in shown(over["blocks"])] == ["✅ Resolved (seen to recover)"]


def test_where_slack_refuses_the_blocks_the_message_is_sent_as_text(server: SlackStandIn) -> None:
    server.script("services", "invalid_blocks")
    message = posted(server, Notification(TOO_LARGE, Reason.OPENED))
    assert message["blocks"] == message["attachments"] == []
    assert "The task is dead until someone restarts it" in message["text"]
