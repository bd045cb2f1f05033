"""What could not be taken: dead letters, and stamps that are no times."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class DeadLetter(Struct, frozen=True):
    """Something that `stage` (unwrap, skim, assemble, decode, match, observe, correlate, group, send) raised `error` on.

    It is of `lines` lines of `source_id`, the first at `offset` with the number `number` (0: unknown), and counts as so many
    `events`; a match is of a line that was read, so it has 0 of both, as have the alerts of an entity, which have no source.
    `rule_id`: the rule that could not be judged, "" when it is all of it. `text` is redacted and cut; "" where only numbers
    are kept. `at` is when it happened, as far as that is known.
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
        """What it is of: `2 lines of 'a.log'`."""
        if not self.source_id:
            return f"alerts of '{self.rule_id or self.text}'"
        if not self.lines:
            return f"what {self.rule_id} says of '{self.source_id}'"
        return f"{self.lines} line{'' if self.lines == 1 else 's'} of '{self.source_id}'"

    @property
    def sentence(self) -> str:
        """What is said of it."""
        place = f"line {self.number}" if self.number else f"offset {self.offset}"
        at = f" at {place}" if self.source_id else ""
        return f"{self.matter}{at} in quarantine ({self.stage}): {self.error}"


class Misdated(Struct, frozen=True):
    """So many `events` of a source had a stamp that is out of bounds and so none (engine/parse/stamps)."""

    source_id: str
    events: int

    @property
    def sentence(self) -> str:
        """What is said of it."""
        what = "1 stamp is" if self.events == 1 else f"{self.events} stamps are"
        return f"'{self.source_id}': {what} out of bounds and taken for none (before 1990, or later than the line was taken)"
