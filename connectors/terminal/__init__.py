"""The terminal as a receiver: every incident it is told of is rendered and written, nothing is remembered."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from engine.model.notifications import DeliveryState, Notification, Receipt

__all__ = ["TerminalReceiver"]


class TerminalReceiver(Struct, frozen=True):
    """Shows incidents through `show(notification)`, which the command line injects with its report."""

    show: Callable[[Notification], None]

    @property
    def edits(self) -> bool:
        """False: what is printed stays."""
        return False

    @property
    def rate_limit_key(self) -> str:
        """Empty: a terminal needs no pacing."""
        return ""

    def deliver(self, notification: Notification) -> Receipt:
        """Show it. Where nothing can be written, as to a full disk or a closed pipe, it is tried again later."""
        try:
            self.show(notification)
        except OSError as error:
            return Receipt(
                DeliveryState.RETRY_LATER, f"the terminal cannot be written to ({error.strerror or type(error).__name__})"
            )
        return Receipt(DeliveryState.DELIVERED)
