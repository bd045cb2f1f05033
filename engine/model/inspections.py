"""What was tried of a system without changing anything there, and how it went."""

from __future__ import annotations

from msgspec import Struct

from engine.model.diagnostics import Level


class Inspection(Struct, frozen=True):
    """One thing that was tried, as a sentence without a final period. `level` None: it works."""

    sentence: str
    level: Level | None = None


def fault(sentence: str) -> Inspection:
    """Return the inspection of something that does not work."""
    return Inspection(sentence, Level.ERROR)


def doubt(sentence: str) -> Inspection:
    """Return the inspection of something that works in part, or could not be tried."""
    return Inspection(sentence, Level.WARNING)
