"""What answers mean for a delivery, beyond what the stand-in for Slack answers."""

from __future__ import annotations

import json

import pytest

from connectors.slack.answers import from_hook
from engine.exchange import Answer
from engine.model.notifications import State


@pytest.mark.parametrize(
    ("error", "state"), [("ratelimited", State.RETRY_LATER), ("no_service", State.REJECTED), ("<?>", State.RETRY_LATER)]
)
def test_a_webhook_that_refuses_as_the_api_does_has_told_nobody(error: str, state: State) -> None:
    body = json.dumps({"ok": False, "error": error}).encode()
    receipt = from_hook(Answer(200, {"content-type": "application/json"}, body))
    assert receipt.state is state
    assert receipt.why


@pytest.mark.parametrize("body", [b"ok", b'{"ok": true}', b"", b"[]"])
def test_a_webhook_that_refuses_nothing_has_told(body: bytes) -> None:
    assert from_hook(Answer(200, {}, body)).state is State.DELIVERED
