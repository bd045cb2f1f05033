"""The terminal as a receiver: every notification is rendered and printed; nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from engine.model.notifications import DeliveryState, Notification, Receipt

__all__ = ["TerminalReceiver"]


class TerminalReceiver(Struct, frozen=True):
    """Prints notifications by `show`, which the command line injects."""

    show: Callable[[Notification], None]
    edits: ClassVar[bool] = False  # printed text cannot be edited
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = False  # a terminal shows every incident
    rate_limit_key: ClassVar[str] = ""  # a terminal needs no pacing

    def deliver(self, notification: Notification) -> Receipt:
        """Print `notification`. When the output fails, as on a full disk or a closed pipe, it is tried again later."""
        try:
            self.show(notification)
        except OSError as error:
            return Receipt(
                DeliveryState.RETRY_LATER, f"the terminal cannot be written to ({error.strerror or type(error).__name__})"
            )
        return Receipt(DeliveryState.DELIVERED)
