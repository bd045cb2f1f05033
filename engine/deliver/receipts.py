"""What becomes of an entry by the receipt of an attempt, and how a receiver's answer is written down. Pure."""

from __future__ import annotations

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
_READ_LENGTH = 4_096  # of an answer, for a page of HTML may be as long as it likes


def presentable(text: str) -> str:
    """Return text from outside as it is shown and stored: one line without secrets, control characters made visible, at most
    WHY_LENGTH characters, the last one an ellipsis when something is missing."""
    line = visible(redact(" ".join(text[:_READ_LENGTH].split())))
    is_whole = len(line) <= WHY_LENGTH and len(text) <= _READ_LENGTH
    return line if is_whole else f"{line[: WHY_LENGTH - 1]}…"


def delivered(receiver: Receiver, what: Notification) -> Receipt:
    """Return the receipt of `receiver` for `what`. Never raises: one that breaks its contract must not keep others from being
    told."""
    try:
        receipt = convert(to_builtins(receiver.deliver(what)), Receipt)  # all of it is what it is declared to be, or it raises
        if receipt.state not in _OUTCOMES:
            raise ValueError(f"a receipt cannot be {receipt.state.value}")
        return replace(receipt, why=presentable(receipt.why))
    except Exception as error:
        return Receipt(DeliveryState.RETRY_LATER, presentable(f"{type(error).__name__}: {error}"), unsure=True)


def settled(started: Delivery, receipt: Receipt, now: datetime) -> Delivery:
    """Return the entry after an attempt that ended with `receipt` at `now`."""
    marks = started.marks if receipt.marks is None else receipt.marks
    unsure_since = started.unsure_since or (started.attempt_at if receipt.unsure else None)
    ended = replace(started, state=receipt.state, why=receipt.why, marks=marks, unsure_since=unsure_since)
    if receipt.state is DeliveryState.RETRY_LATER:
        return replace(ended, due_at=retried(started, receipt.after_s, now))
    if receipt.state is DeliveryState.DELIVERED:
        return replace(ended, attempts=0, unsure_since=None, news="")
    return replace(ended, unsure_since=None)


def expired(started: Delivery, now: datetime) -> Delivery:
    """Return the entry after an attempt that nobody has heard of for longer than its lease: it may be out there."""
    return settled(
        started, Receipt(DeliveryState.RETRY_LATER, "no answer came within the time for an attempt", unsure=True), now
    )
