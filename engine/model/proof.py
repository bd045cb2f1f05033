"""What of the evidence of an incident is worth showing where room is short, and what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from engine.model.incidents import Evidence


class Neighbours(Struct, frozen=True):
    """The events before and after a line of evidence in its source, in their order, each as text without secrets: its first few
    lines. There are at most five on a side."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


NO_NEIGHBOURS = Neighbours()

_STACK_FRAME = re.compile(r"\s+at |\s*\.\.\. \d+ (more|common frames)")
_NUMBER = re.compile(r"\d+")


def is_stack_frame(line: str) -> bool:
    """Return whether a line is a frame of a Java stack trace, or the count of those left out."""
    return _STACK_FRAME.match(line) is not None


def distinct_events(events: Iterable[Evidence]) -> Iterator[tuple[Evidence, bool]]:
    """Yield each event, and whether no earlier one equals it except for numbers."""
    shapes: set[str] = set()
    for event in events:
        shape = _NUMBER.sub("0", event.text)
        yield event, shape not in shapes
        shapes.add(shape)
