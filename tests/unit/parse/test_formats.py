"""What each example of the shipped layouts is read as, listed for review: tests/golden/formats.txt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from engine.model.records import LogEvent
from tests.unit.parse.reading import documents, event

TAKEN = datetime(2027, 1, 1, tzinfo=UTC)


def described(event: LogEvent) -> str:
    """Return what was read of an event, one field a line."""
    labels = {name: value for name, value in event.labels.items() if name not in ("source", "cluster")}
    said = {
        "time": event.timestamp.isoformat(timespec="milliseconds") if event.timestamp else "",
        "level": event.level,
        "logger": event.logger,
        "thread": event.thread,
        "message": event.message,
        "labels": " ".join(f"{name}={value}" for name, value in sorted(labels.items())),
    }
    return "".join(f"    {name:8}{value}\n" for name, value in said.items() if value)


def test_every_example_is_read_as_listed(golden: Callable[[str, str], None]) -> None:
    parts = []
    for name, document in documents().items():
        parts.append(f"== {name}\n")
        parts += [f"{example}\n{described(event(example, taken=TAKEN))}" for example in document["examples"]]
    golden("formats.txt", "\n".join(parts))
