"""The terminal as a receiver: every notification is rendered and printed; nothing is stored."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from engine.model.notifications import DeliveryState, Notification, Receipt

__all__ = ["TerminalReceiver"]


class TerminalReceiver(Struct, frozen=True):
    """Prints notifications by `show`, which the command line injects."""

    show: Callable[[Notification], None]

    @property
    def edits(self) -> bool:
        """False: printed text cannot be edited."""
        return False

    @property
    def records(self) -> bool:
        """False: routes decide what it is notified of."""
        return False

    @property
    def gathers(self) -> bool:
        """False: a terminal shows every incident."""
        return False

    @property
    def rate_limit_key(self) -> str:
        """Empty: a terminal needs no pacing."""
        return ""

    def deliver(self, notification: Notification) -> Receipt:
        """Print `notification`. When the output fails, as on a full disk or a closed pipe, it is tried again later."""
        try:
            self.show(notification)
        except OSError as error:
            return Receipt(
                DeliveryState.RETRY_LATER, f"the terminal cannot be written to ({error.strerror or type(error).__name__})"
            )
        return Receipt(DeliveryState.DELIVERED)
