"""The terminal as a receiver: every incident it is told of is rendered and written, nothing is remembered."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from engine.model.notifications import Notification, Receipt, State

__all__ = ["TerminalReceiver"]


class TerminalReceiver(Struct, frozen=True):
    """Shows incidents through `show(notification)`, which the command line injects with its report."""

    show: Callable[[Notification], None]

    @property
    def edits(self) -> bool:
        """False: what is printed stays."""
        return False

    @property
    def lane(self) -> str:
        """Empty: a terminal needs no pacing."""
        return ""

    def deliver(self, notification: Notification) -> Receipt:
        """Show it; a terminal cannot refuse."""
        self.show(notification)
        return Receipt(State.DELIVERED)
