"""The terminal as a receiver: every incident it is told of is rendered and written, nothing is remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.model.incidents import Incident

__all__ = ["TerminalReceiver"]


@dataclass(frozen=True, slots=True)
class TerminalReceiver:
    """Shows incidents through `show(incident, reason)`, which the command line injects with its report."""

    show: Callable[[Incident, str], None]

    def deliver(self, incident: Incident, reason: str) -> None:
        """Show `incident`; a terminal cannot refuse."""
        self.show(incident, reason)
