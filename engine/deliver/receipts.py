"""Turn the receipt of an attempt into the entry's next state, and a receiver's answer into storable text. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import convert, to_builtins
from msgspec.structs import replace

from engine.deliver.planning import retried
from engine.match import redact
from engine.model.notifications import Delivery, DeliveryState, Notification, Receipt
from engine.model.visible import visible
from engine.ports import Receiver

WHY_LENGTH = 300
_OUTCOMES = (DeliveryState.DELIVERED, DeliveryState.RETRY_LATER, DeliveryState.REJECTED)
_READ_LENGTH = 4_096  # characters of an answer; an HTML page may be of any length


def presentable(text: str) -> str:
    """Return text from outside as one line without secrets, with control characters made visible, to be shown and stored.

    It has at most WHY_LENGTH characters; the last one is an ellipsis when it was cut.
    """
    line = visible(redact(" ".join(text[:_READ_LENGTH].split())))
    is_whole = len(line) <= WHY_LENGTH and len(text) <= _READ_LENGTH
    return line if is_whole else f"{line[: WHY_LENGTH - 1]}…"


def delivered(receiver: Receiver, notification: Notification, leads: Callable[[], bool] = lambda: True) -> Receipt:
    """Deliver `notification` and return the receipt. Never raises, so that a broken receiver does not block the others.

    Nothing is sent when this notifier no longer `leads`: the one that took over has sent it, or will.
    """
    if not leads():
        return Receipt(DeliveryState.RETRY_LATER, "another notifier may have taken over")
    try:
        receipt = convert(
            to_builtins(receiver.deliver(notification)), Receipt
        )  # raises when a field is not of its declared type
        if receipt.state not in _OUTCOMES:
            raise ValueError(f"a receipt cannot be {receipt.state.value}")
        return replace(receipt, why=presentable(receipt.why))
    except Exception as error:
        return Receipt(DeliveryState.RETRY_LATER, presentable(f"{type(error).__name__}: {error}"), unsure=True)


def settled(started: Delivery, receipt: Receipt, now: datetime) -> Delivery:
    """Return the entry after an attempt that ended with `receipt` at `now`."""
    marks = started.marks if receipt.marks is None else receipt.marks
    unsure_since = started.unsure_since or (started.attempt_at if receipt.unsure else None)
    entry = replace(started, state=receipt.state, why=receipt.why, marks=marks, unsure_since=unsure_since)
    if receipt.state is DeliveryState.RETRY_LATER:
        return replace(entry, due_at=retried(started, receipt.after_s, now))
    if receipt.state is DeliveryState.DELIVERED:
        return replace(entry, attempts=0, unsure_since=None, news="")
    return replace(entry, unsure_since=None)


def expired(started: Delivery, now: datetime) -> Delivery:
    """Return the entry after an attempt without an answer within its lease: unsure, as it may have been delivered."""
    return settled(
        started, Receipt(DeliveryState.RETRY_LATER, "no answer came within the time for an attempt", unsure=True), now
    )
