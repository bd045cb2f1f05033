"""What a receiver answers is written down as one short line that hides nothing and gives nothing away."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.memory import MemoryReceiver
from engine.deliver import presentable
from engine.deliver.receipts import WHY_LENGTH, delivered, settled
from engine.model.notifications import Delivery, DeliveryState, Notification, Reason, Receipt
from tests.unit.cli.incidents import TOO_LARGE

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
PAGE = "<html>\r\n<head><title>403</title></head>\n" + "<p>proxy</p>\n" * 5000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("not now", "not now"),
        ("", ""),
        ("a\nb\r\n\tc", "a b c"),
        ("\x1b[31mred\x07 \u202e", "\\x1b[31mred\\x07 \\u202e"),
        ("password=hunter2, refused", "password=[redacted], refused"),
        ("no route to https://u:hunter2@proxy/", "no route to https://[redacted]@proxy/"),
    ],
)
def test_it_is_one_line_without_secrets_and_control_characters(text: str, shown: str) -> None:
    assert presentable(text) == shown


@pytest.mark.parametrize("text", [PAGE, "\x1b" * 10_000, "가" * 10**6])
def test_it_is_short_and_says_when_something_is_missing(text: str) -> None:
    assert len(presentable(text)) == WHY_LENGTH
    assert presentable(text).endswith("…")


def test_every_receipt_is_written_down_so() -> None:
    receiver = MemoryReceiver(answers=[Receipt(DeliveryState.REJECTED, PAGE)])
    receipt = delivered(receiver, Notification(TOO_LARGE, Reason.OPENED))
    entry = Delivery("ops", "inc-1", 1, Reason.OPENED, NOON, NOON)
    assert settled(entry, receipt, NOON).why.startswith("<html> <head><title>403</title></head> <p>proxy</p>")
    assert len(settled(entry, receipt, NOON).why) == WHY_LENGTH


BROKEN = [
    None,
    "delivered",
    RuntimeError("\x1b[2J" * 999),
    Receipt("gone"),  # type: ignore[arg-type]
    Receipt(DeliveryState.DELIVERED, marks={"ts": object()}),  # type: ignore[dict-item]
    Receipt(DeliveryState.DELIVERED, messages="two"),  # type: ignore[arg-type]
    Receipt(DeliveryState.RETRY_LATER, after_s="soon"),  # type: ignore[arg-type]
    Receipt(DeliveryState.SENDING),
    Receipt(DeliveryState.MUTED),
]


@pytest.mark.parametrize("answer", BROKEN)
def test_a_receiver_that_breaks_its_contract_is_an_unsure_failure(answer: Any) -> None:
    class Broken(MemoryReceiver):
        def deliver(self, notification: Notification) -> Receipt:
            if isinstance(answer, Exception):
                raise answer
            return answer

    receipt = delivered(Broken(), Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.unsure) == (DeliveryState.RETRY_LATER, True)
    assert 0 < len(receipt.why) <= WHY_LENGTH
    assert receipt.why.isprintable()
