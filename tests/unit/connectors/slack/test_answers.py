"""What answers mean for a delivery, beyond what the stand-in for Slack answers."""

from __future__ import annotations

import json

import pytest

from connectors.slack.answers import from_hook
from engine.exchange import HttpAnswer
from engine.model.notifications import DeliveryState


@pytest.mark.parametrize(
    ("error", "state"),
    [("ratelimited", DeliveryState.RETRY_LATER), ("no_service", DeliveryState.REJECTED), ("<?>", DeliveryState.RETRY_LATER)],
)
def test_a_webhook_that_refuses_as_the_api_does_has_told_nobody(error: str, state: DeliveryState) -> None:
    body = json.dumps({"ok": False, "error": error}).encode()
    receipt = from_hook(HttpAnswer(200, {"content-type": "application/json"}, body))
    assert receipt.state is state
    assert receipt.why


@pytest.mark.parametrize("body", [b"ok", b'{"ok": true}', b"", b"[]"])
def test_a_webhook_that_refuses_nothing_has_told(body: bytes) -> None:
    assert from_hook(HttpAnswer(200, {}, body)).state is DeliveryState.DELIVERED
