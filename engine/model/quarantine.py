"""Input that could not be processed: dead letters, and stamps out of bounds."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class DeadLetter(Struct, frozen=True):
    """Input on which `stage` (unwrap, assemble, decode, match, observe, correlate, group, send) raised `error`.

    It has `lines` lines of `source_id`, the first at `offset` with the line number `number` (0: unknown), and `events` events.
    Both are 0 for a match, whose line was processed, and for the alerts of an entity, which have no source. `rule_id` is the
    rule that failed, "" when the input was lost for all rules. `text` is redacted and cut; "" when only numbers are stored.
    `at` is the event time; None when it is unknown.
    """

    stage: str
    source_id: str
    offset: int
    number: int
    lines: int
    events: int
    rule_id: str
    error: str
    text: str
    at: datetime | None = None

    @property
    def matter(self) -> str:
        """The failed input in words: `2 lines of 'a.log'`."""
        if not self.source_id:
            return f"alerts of '{self.rule_id or self.text}'"
        if not self.lines:
            return f"what {self.rule_id} says of '{self.source_id}'"
        return f"{self.lines} line{'' if self.lines == 1 else 's'} of '{self.source_id}'"

    @property
    def sentence(self) -> str:
        """A sentence for the operator."""
        place = f"line {self.number}" if self.number else f"offset {self.offset}"
        at = f" at {place}" if self.source_id else ""
        return f"{self.matter}{at} in quarantine ({self.stage}): {self.error}"


class Misdated(Struct, frozen=True):
    """How many `events` of a source have no time because their stamp is out of bounds (engine/parse/stamps)."""

    source_id: str
    events: int

    @property
    def sentence(self) -> str:
        """A sentence for the operator."""
        stamps = "1 stamp is" if self.events == 1 else f"{self.events} stamps are"
        return f"'{self.source_id}': {stamps} out of bounds and taken for none (before 1990, or later than the line was taken)"
