"""Send the open incidents again to receivers that forget them otherwise. Not a notification: nothing of it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from engine.deliver.in_flight import InFlightSet, Refresh, receiver_key
from engine.deliver.planner import Planner
from engine.deliver.receipts import presentable
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.model.prose import localised
from engine.ports import ForgetfulReceiver, Receiver


class Refresher:
    """Refreshes receivers that forget, each by one attempt at a time and never beside a notification to it."""

    def __init__(self, in_flight: InFlightSet) -> None:
        self._in_flight = in_flight
        self._due: dict[str, datetime] = {}
        self._failing: set[str] = set()

    def step(self, planner: Planner, receivers: Mapping[str, Receiver], now: datetime) -> None:
        """Start every refresh of the forgetful ones among `receivers` that is due; the first of a receiver is due at once, as
        an earlier process may have ended long ago. Nothing is remembered of a receiver that is not among them."""
        self._due = {name: at for name, at in self._due.items() if name in receivers}
        self._failing &= receivers.keys()
        for name, receiver in receivers.items():
            key = receiver_key(name, receiver)
            if not isinstance(receiver, ForgetfulReceiver) or self._due.get(name, now) > now or self._in_flight.holds(key):
                continue
            self._due[name] = now + timedelta(seconds=receiver.refresh_s)
            links, words = planner.policy.links, planner.policy.words_of(name)
            notifications = [
                localised(Notification(incident, Reason.REPEATED, marks=log.marks, links=links.of(incident)), words)
                for incident, log in planner.reported(name)
            ]
            if notifications:
                self._in_flight.start(key, Refresh(name), partial(_refreshed, receiver, notifications))

    def finished(self, refresh: Refresh, receipt: Receipt) -> str:
        """Return a sentence on the first failure after a success; empty for any other outcome."""
        if receipt.state is DeliveryState.DELIVERED:
            self._failing.discard(refresh.receiver)
            return ""
        is_first = refresh.receiver not in self._failing
        self._failing.add(refresh.receiver)
        return f"{refresh.receiver} could not be sent the open incidents again: {receipt.why}" if is_first else ""

    def restart_waits(self) -> None:
        """Refresh at once, after the clock was corrected."""
        self._due.clear()


def _refreshed(receiver: ForgetfulReceiver, notifications: list[Notification]) -> Receipt:
    try:
        return receiver.refresh(notifications)
    except Exception as error:  # a broken receiver must not end the notifier
        return Receipt(DeliveryState.RETRY_LATER, presentable(f"{type(error).__name__}: {error}"))
