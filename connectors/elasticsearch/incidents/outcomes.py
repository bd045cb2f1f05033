"""The receipt for the answer to a bulk request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.elasticsearch.connection import MOST_QUOTED, ApiError
from engine.model.notifications import DeliveryState, Receipt
from engine.model.visible import visible

DELIVERED = Receipt(DeliveryState.DELIVERED)
_OVERLOADED_S = 15.0  # until the next attempt at an overloaded cluster


class Superseded(Receipt, frozen=True):
    """The receipt for a document of which the index has a later version."""


def receipt_of(answer: Mapping[str, Any], place: str) -> Receipt:
    """Return the receipt for the answer to a bulk request: that of its worst document.

    The worst is a document that the index does not accept, which is rejected; then other failures, which are retried: an
    overload, a full disk, a missing privilege; then a document of which the index has a later version (Superseded).
    """
    if not isinstance(answer.get("items"), list):
        return Receipt(DeliveryState.RETRY_LATER, f"what answers at {place} is not Elasticsearch: no bulk answer; check url")
    receipts = [_of_item(next(iter(item.values())), place) for item in answer["items"]]
    return max(receipts, key=_gravity, default=DELIVERED)


def refused(answer: Any) -> ApiError:
    """Return the error for an answer whose status the client was told to ignore."""
    return ApiError(message="refused", meta=answer.meta, body=answer.body)


def _gravity(receipt: Receipt) -> int:
    if receipt.state is DeliveryState.REJECTED:
        return 3
    if receipt.state is DeliveryState.RETRY_LATER:
        return 2
    return 1 if isinstance(receipt, Superseded) else 0


def _of_item(item: Mapping[str, Any], place: str) -> Receipt:
    status = int(item.get("status", 0))
    if 200 <= status < 300:
        return DELIVERED
    index, why = visible(str(item.get("_index", ""))), _why(item.get("error"))
    if status == 409:
        return Superseded(DeliveryState.DELIVERED, why)
    if status == 429:
        sentence = f"Elasticsearch at {place} is overloaded (status 429): {why}"
        return Receipt(DeliveryState.RETRY_LATER, sentence, after_s=_OVERLOADED_S)
    if status in (400, 413):
        help = "its fields have other mappings there; name another index, or remove that one so that it is created again"
        return Receipt(DeliveryState.REJECTED, f"the index {index} cannot take the document: {why}; {help}")
    return Receipt(DeliveryState.RETRY_LATER, f"Elasticsearch at {place} does not write to {index} (status {status}): {why}")


def _why(error: Any) -> str:
    """Return the reason of an error with that of its cause, on one line that is safe to show."""
    reasons = []
    while isinstance(error, Mapping):
        reasons.append(str(error.get("reason") or error.get("type") or ""))
        error = error.get("caused_by")
    words = " ".join(": ".join(reason for reason in reasons if reason).split())
    return visible(words if len(words) <= MOST_QUOTED else f"{words[: MOST_QUOTED - 1]}…")
