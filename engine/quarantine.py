"""Quarantine: input that a stage fails on becomes a dead letter, and all other input is processed.

The unit is the smallest that can be separated: a line, an event, a match, the alerts of an entity. Only failures caused by the
input are caught. Failures of the machine or of another system (TocsinError, MemoryError) are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from engine.errors import TocsinError
from engine.model.incidents import Alert, Verdict
from engine.model.matches import Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Block, LogEvent, RawLine, Record

MOST = 100  # dead letters stored with their texts between two calls of `taken`; further ones are only counted
TEXT_CHARS = 2000
ERROR_CHARS = 300
WITHHELD = "[withheld: what is secret in it cannot be told]"

OF_THE_HOST = (TocsinError, MemoryError, msgspec.DecodeError)  # DecodeError: state that another version wrote

Matter = RawLine | Record | Block | LogEvent | Match | Alert | Verdict | str
Made = TypeVar("Made")


class Quarantine:
    """Collects dead letters, and counts misdated events by source.

    Args:
        redact: returns a text without its secrets; it may raise.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._letters: list[DeadLetter] = []
        self._more: dict[tuple[str, str], DeadLetter] = {}
        self._misdated: dict[str, int] = {}

    def put(self, stage: str, matter: Matter, error: Exception, rule_id: str = "") -> None:
        """Add a dead letter for `matter`, on which `stage` raised `error`."""
        letter = _letter(stage, matter, _error_text(error), rule_id)
        if len(self._letters) < MOST:
            self._letters.append(
                msgspec.structs.replace(letter, text=self._cleaned(letter.text), error=self._cleaned(letter.error))
            )
            return
        earlier = self._more.get((stage, letter.source_id))
        lines, events = letter.lines + (earlier.lines if earlier else 0), letter.events + (earlier.events if earlier else 0)
        first = earlier or msgspec.structs.replace(letter, text="", error=self._cleaned(letter.error))
        self._more[stage, letter.source_id] = msgspec.structs.replace(first, lines=lines, events=events)

    def note(self, event: LogEvent) -> None:
        """Count an event if it is misdated."""
        if event.misdated:
            self.misdated(event.source_id)

    def misdated(self, source_id: str) -> None:
        """Count a misdated event of a source."""
        self._misdated[source_id] = self._misdated.get(source_id, 0) + 1

    def taken(self) -> list[DeadLetter | Misdated]:
        """Return and remove everything collected since the last call: dead letters first, then misdated events by source."""
        misdated = (Misdated(source_id, events) for source_id, events in sorted(self._misdated.items()))
        taken: list[DeadLetter | Misdated] = [*self._letters, *self._more.values(), *misdated]
        self._letters, self._more, self._misdated = [], {}, {}
        return taken

    def _cleaned(self, text: str) -> str:
        try:
            return self._redact(text)[:TEXT_CHARS].encode("utf-8", "replace").decode()
        except Exception:
            return WITHHELD


def attempt(
    quarantine: Quarantine | None, stage: str, matter: Matter, call: Callable[..., Made], *args: object, rule_id: str = ""
) -> Made | None:
    """Return `call(*args)`. When it raises, put `matter` into quarantine and return None; `rule_id` names the rule if only
    that rule fails on it. Raises when there is no quarantine, or for a failure of OF_THE_HOST."""
    try:
        return call(*args)
    except OF_THE_HOST:
        raise
    except Exception as error:
        if quarantine is None:
            raise
        quarantine.put(stage, matter, error, rule_id)
        return None


def summed(letters: Sequence[DeadLetter]) -> Iterator[DeadLetter]:
    """Yield one letter for each source and stage: the first one, with the numbers of all added up."""
    sums: dict[tuple[str, str], DeadLetter] = {}
    for letter in letters:
        key = letter.source_id, letter.stage
        if (earlier := sums.get(key)) is None:
            sums[key] = letter
        else:
            lines, events = earlier.lines + letter.lines, earlier.events + letter.events
            sums[key] = msgspec.structs.replace(earlier, lines=lines, events=events)
    yield from sums.values()


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:ERROR_CHARS]


def _letter(stage: str, matter: Matter, error: str, rule_id: str) -> DeadLetter:
    """Return the dead letter of `matter`: its source and position, its time, and how many lines and events it is."""
    at: datetime | None = None
    lines = events = 0
    source_id, offset, number, text = "", 0, 0, ""
    if isinstance(matter, RawLine):
        text, lines = matter.value[: 4 * TEXT_CHARS].decode("utf-8", "replace"), 1
    elif isinstance(matter, Record):
        text, lines = matter.text, 1
    elif isinstance(matter, LogEvent):
        text, at, lines, events = matter.text, matter.at, matter.text.count("\n") + 1, 1
    elif isinstance(matter, Block):
        text, lines, events, matter = "\n".join(r.text for r in matter.records), len(matter.records), 1, matter.records[0]
    elif isinstance(matter, Match):
        text, at, source_id, number = matter.text, matter.at, matter.source_id, matter.number
        rule_id = rule_id or matter.rule_id
    elif isinstance(matter, Alert | Verdict):
        rule_id, text = matter.key[1], ", ".join(f"{name}={value}" for name, value in matter.key[2])
    else:
        text = matter
    if isinstance(matter, RawLine | Record | LogEvent):
        source_id, offset, number = matter.source_id, matter.offset, matter.number
    if rule_id:
        lines = events = 0  # the other rules still judge it
    return DeadLetter(stage, source_id, offset, number, lines, events, rule_id, error, text[: 4 * TEXT_CHARS], at)
