"""The receivers that need no server: the terminal shows, the memory remembers."""

from __future__ import annotations

from connectors.memory import MemoryReceiver
from connectors.terminal import TerminalReceiver
from engine.model.incidents import Incident

INCIDENT = Incident(
    "inc-1", ("default", "a", ()), 1, "a", "A", "high", "open", "any", {}, None, None, None, count=1, cause="", impact=""
)


def test_the_terminal_shows_what_it_is_told() -> None:
    shown: list[tuple[str, str]] = []
    TerminalReceiver(lambda incident, reason: shown.append((incident.id, reason))).deliver(INCIDENT, "opened")
    assert shown == [("inc-1", "opened")]


def test_the_memory_remembers_what_it_was_told() -> None:
    receiver = MemoryReceiver()
    receiver.deliver(INCIDENT, "opened")
    receiver.deliver(INCIDENT, "resolved")
    assert receiver.told == [(INCIDENT, "opened"), (INCIDENT, "resolved")]
