"""What a bulk answer means: the worst of its documents counts."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.elasticsearch.incidents.outcomes import Superseded, receipt_of
from engine.model.notifications import DeliveryState


def item(status: int, *reasons: str) -> dict[str, Any]:
    error: dict[str, Any] | None = None
    for reason in reversed(reasons):
        error = {"type": "x", "reason": reason, **({"caused_by": error} if error else {})}
    return {"index": {"_index": "tocsin-incidents", "status": status, **({"error": error} if error else {})}}


@pytest.mark.parametrize(
    ("items", "state", "why"),
    [
        ([item(201), item(200)], DeliveryState.DELIVERED, ""),
        ([], DeliveryState.DELIVERED, ""),
        ([item(201), item(429, "queue is full")], DeliveryState.RETRY_LATER, "is overloaded (status 429): queue is full"),
        ([item(403, "index read-only")], DeliveryState.RETRY_LATER, "does not write to tocsin-incidents (status 403)"),
        ([item(503, "no shard")], DeliveryState.RETRY_LATER, "does not write to tocsin-incidents (status 503): no shard"),
        (
            [item(429, "full"), item(400, "failed to parse", "not a long")],
            DeliveryState.REJECTED,
            "failed to parse: not a long",
        ),
        ([item(400, "a\x1b[31m\nb")], DeliveryState.REJECTED, "a\\x1b[31m b"),
    ],
)
def test_the_worst_of_the_documents_counts(items: list[dict[str, Any]], state: DeliveryState, why: str) -> None:
    receipt = receipt_of({"items": items}, "es:9200")
    assert receipt.state is state
    assert why in receipt.why


def test_an_overload_says_how_long_to_wait() -> None:
    assert receipt_of({"items": [item(429, "full")]}, "es:9200").after_s == 15.0


def test_a_later_version_that_is_there_is_known_from_one_that_was_written() -> None:
    assert isinstance(receipt_of({"items": [item(200), item(409, "version conflict")]}, "es"), Superseded)


def test_what_is_no_bulk_answer_is_tried_again() -> None:
    assert receipt_of({"message": "log in"}, "es:9200").state is DeliveryState.RETRY_LATER
