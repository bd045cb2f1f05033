"""Every published excerpt is read as a person would: its events are listed for review in tests/golden/excerpts.txt.

An event's line says where it begins and how many lines it has, its time, level, container, message and chain of exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from engine.model.records import LogEvent
from tests.unit.parse.reading import events

EXCERPTS = sorted((Path(__file__).parents[2] / "excerpts").glob("*.log"))
TAKEN = datetime(2027, 1, 1, tzinfo=UTC)
CHARS = 100  # of a message


def listed(event: LogEvent) -> str:
    """Return an event in one line."""
    time = event.timestamp.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if event.timestamp else "-"
    container = event.labels.get("container", "")
    message = " ".join(event.message.split())
    shown = message if len(message) <= CHARS else message[:CHARS] + "..."
    chain = "".join(f"\n{'':10}{name}" for name in event.exception)
    lines = event.text.count("\n") + 1
    return (
        f"{event.number:>4} +{lines:<3} {time:24}{event.level or '-':6}{container + ': ' if container else ''}{shown}{chain}\n"
    )


def test_every_excerpt_is_read_as_listed(golden: Callable[[str, str], None]) -> None:
    assert EXCERPTS
    parts = []
    for path in EXCERPTS:
        found = events(path.read_bytes(), taken=TAKEN)
        parts.append(f"== {path.stem}\n{''.join(map(listed, found))}")
    golden("excerpts.txt", "\n".join(parts))


def test_no_line_of_an_excerpt_is_lost() -> None:
    for path in EXCERPTS:
        text = path.read_text(encoding="utf-8")
        numbers = [event.number for event in events(text)]
        assert numbers[0] == next(n for n, line in enumerate(text.split("\n"), 1) if line.strip())
        assert all(number < later for number, later in pairwise(numbers))
