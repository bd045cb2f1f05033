"""Quarantine: whatever a stage raises on is kept aside, and everything else goes on. What is kept is a dead letter.

A line, an event, a match, the alerts of an entity: the smallest thing that can be told apart from the others. Only what hangs
on the input is caught. What is raised because the machine or another system fails (TocsinError, MemoryError) is not.
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

MOST = 100  # dead letters of one part of the input that are kept with their texts; of more only the numbers
TEXT_CHARS = 2000
ERROR_CHARS = 300
WITHHELD = "[withheld: what is secret in it cannot be told]"

OF_THE_HOST = (TocsinError, MemoryError, msgspec.DecodeError)  # the last one is of state that another version wrote

Matter = RawLine | Record | Block | LogEvent | Match | Alert | Verdict | str
Made = TypeVar("Made")


class Quarantine:
    """Collects dead letters, and how many events were misdated.

    Args:
        redact: takes what is secret out of a text; it may raise itself.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._letters: list[DeadLetter] = []
        self._more: dict[tuple[str, str], DeadLetter] = {}
        self._misdated: dict[str, int] = {}

    def put(self, stage: str, matter: Matter, error: Exception, rule_id: str = "") -> None:
        """Keep what `stage` raised `error` on."""
        letter = _letter(stage, matter, _said(error), rule_id)
        if len(self._letters) < MOST:
            self._letters.append(
                msgspec.structs.replace(letter, text=self._cleaned(letter.text), error=self._cleaned(letter.error))
            )
            return
        before = self._more.get((stage, letter.source_id))
        counted = letter.lines + (before.lines if before else 0), letter.events + (before.events if before else 0)
        first = before or msgspec.structs.replace(letter, text="", error=self._cleaned(letter.error))
        self._more[stage, letter.source_id] = msgspec.structs.replace(first, lines=counted[0], events=counted[1])

    def note(self, event: LogEvent) -> None:
        """Count an event if it is misdated."""
        if event.misdated:
            self._misdated[event.source_id] = self._misdated.get(event.source_id, 0) + 1

    def taken(self) -> list[DeadLetter | Misdated]:
        """Return what was collected since this was asked for last."""
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
    """Return what `call` returns for `args`; None when it raised and `matter` went into quarantine, for `rule_id` if only that
    rule is concerned. Without a quarantine it raises."""
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
    """Yield one letter for all of a source and stage: the first, with the numbers of all."""
    found: dict[tuple[str, str], DeadLetter] = {}
    for letter in letters:
        key = letter.source_id, letter.stage
        first = found.get(key)
        more = None if first is None else {"lines": first.lines + letter.lines, "events": first.events + letter.events}
        found[key] = letter if first is None or more is None else msgspec.structs.replace(first, **more)
    yield from found.values()


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:ERROR_CHARS]


def _letter(stage: str, matter: Matter, error: str, rule_id: str) -> DeadLetter:
    """Return what is known of `matter`: where it is from, when it was, how many lines and events it is."""
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
        lines = events = 0  # it is judged by the other rules
    return DeadLetter(stage, source_id, offset, number, lines, events, rule_id, error, text[: 4 * TEXT_CHARS], at)
