"""Teams: cards that it shows, of any content and within its limit."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from connectors.teams import MOST_BYTES, message, open_receiver
from engine.errors import UsageError
from engine.model.links import Link
from engine.model.notifications import DeliveryState, Notification, Reason
from tests.standins.teams import TeamsStandIn, texts
from tests.unit.cli.incidents import TOO_LARGE, incident


def test_what_a_card_shows() -> None:
    links = (Link("incident", "https://tocsin.example/incidents/inc-1"),)
    with TeamsStandIn() as server:
        receiver = open_receiver(server.webhook_url)
        assert (
            receiver.deliver(Notification(TOO_LARGE, Reason.ESCALATED, "severity is critical now", links=links)).messages == 1
        )
        (card,) = server.cards
    shown = texts(card)
    assert shown[0] == "CRITICAL: A Connect task produced a record larger than max.request.size"
    assert shown[1:3] == ["Changed  ", "severity is critical now"]
    assert TOO_LARGE.cause in shown
    assert "producer.max.request.size=2097152" in shown
    assert card["body"][0]["inlines"][0]["color"] == "Attention"
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Incident page", "url": links[0].url}]


def test_one_that_is_over_is_short_and_green() -> None:
    value = message(Notification(incident(status="resolved"), Reason.RESOLVED, "resolved"))
    card = value["attachments"][0]["content"]
    assert card["body"][0]["inlines"][0]["color"] == "Good"
    assert [text for text in texts(card) if text.endswith("  ")] == ["Changed  ", "When  ", "Where  "]
    taken_back = message(Notification(incident(status="retracted"), Reason.UPDATED))["attachments"][0]["content"]
    assert taken_back["body"][0]["inlines"][0]["color"] == "Default", "green is for what was repaired"


@pytest.mark.parametrize("text", ["데이터" * 9_000, "\n".join(["x"] * 9_000), "**bold** [a](https://evil.example) {{DATE(x)}}"])
def test_any_content_fits_and_is_shown_as_it_is(text: str) -> None:
    event = replace(TOO_LARGE.evidence[0], text=text)
    changed = incident(title=text, cause=text, evidence=(event,), fix=(replace(TOO_LARGE.fix[0], do=text, run=text),) * 9)
    notification = Notification(changed, Reason.OPENED)
    assert len(json.dumps(message(notification), ensure_ascii=False).encode()) <= MOST_BYTES
    with TeamsStandIn() as server:
        assert open_receiver(server.webhook_url).deliver(notification).state is DeliveryState.DELIVERED
        shown = texts(server.cards[0])
    assert any("did not fit in here" in part for part in shown) == (len(text) > 100)
    assert '"TextBlock"' not in json.dumps(server.cards), "nothing that reads Markdown"


def test_a_disabled_workflow_is_tried_again_and_a_bad_card_is_not() -> None:
    with TeamsStandIn() as server:
        receiver = open_receiver(server.webhook_url)
        server.script("workflows", "status:404", "status:400")
        assert receiver.deliver(Notification(TOO_LARGE, Reason.OPENED)).state is DeliveryState.RETRY_LATER
        assert receiver.deliver(Notification(TOO_LARGE, Reason.OPENED)).state is DeliveryState.REJECTED
    with pytest.raises(UsageError):
        open_receiver("http://flow.example/invoke?sig=secret")
