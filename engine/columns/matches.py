"""matches: what the events of decided classes say, each value taken from where it stands in its class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from engine.columns.classes import Codes
from engine.columns.deciding import EventClass
from engine.columns.events import UNDATED, Events
from engine.columns.lines import Flags
from engine.columns.stamps import to_datetime
from engine.correlate.bindings import SIGHTINGS
from engine.match.fields import Fields
from engine.match.redact import Redactor, cut
from engine.model.matches import Match
from engine.model.records import Labels, LogEvent
from engine.parse.decoding import UNKNOWN_TIME, event_id, labels_of
from engine.parse.stamps import bounds_of

LEVELS = ("FATAL", "ERROR")
_NAMES = "/names"
_SECOND_US = 1_000_000
MOST_NAMED = 4096

Said = tuple[LogEvent | None, list[Match]]  # the event where it is of a bad level


class Sightings:
    """The lines in which sources name themselves: a naming line tells nothing but a member, and SIGHTINGS of a kind do."""

    def __init__(self) -> None:
        self._seen: dict[object, set[object]] = {}

    def enough(self, kind: object, event: object) -> bool:
        """Take a naming line, by what it says and which event it is; return whether it adds nothing to those before."""
        seen = self._seen.get(kind)
        if seen is None:
            if len(self._seen) >= MOST_NAMED:
                self._seen.clear()
            seen = self._seen[kind] = set()
        if len(seen) >= SIGHTINGS:
            return True
        seen.add(event)
        return False


class _Of(Struct, frozen=True):
    """The events of one class in a block."""

    made: EventClass
    events: list[int]
    only_named: bool


def matches_of(
    events: Events, codes: Codes, taken: Flags, decided: Sequence[EventClass | None], redact: Redactor, named: Sightings
) -> Iterator[Said]:
    """Yield what those events say that are `taken`, class by class."""
    telling = np.array([each is not None for each in decided], np.bool_)
    some = np.flatnonzero(telling[codes] & taken)
    some = some[np.argsort(codes[some], kind="stable")]
    if not len(some):
        return
    places = _Places(events, some)
    borders = np.flatnonzero(np.diff(codes[some], prepend=-1)).tolist()
    for begin, end in zip(borders, [*borders[1:], len(some)], strict=True):
        made = decided[int(codes[some[begin]])]
        assert made is not None
        only_named = not made.open and all(each.rule_id.endswith(_NAMES) for each in made.matches)
        yield from _of_class(
            made, places, range(begin, end), redact, named if only_named and made.level not in LEVELS else None
        )


class _Places:
    """Where some events stand."""

    def __init__(self, events: Events, some: Codes) -> None:
        rows, lines = events.rows, events.rows.lines
        heads = events.heads[some]
        line = rows.line[heads]
        self.rows, self.begins = rows, rows.starts[heads].tolist()
        chunks = np.searchsorted(lines.firsts, lines.placed[line], side="right") - 1
        self.chunks = chunks.tolist()
        self.at = (lines.placed[line] - lines.firsts[chunks]).tolist()
        self.lines = (line - lines.numbers[chunks]).tolist()
        self.source, self.labelled = rows.source[heads].tolist(), rows.labelled[heads].tolist()
        self.at_us = events.at_us[some].tolist()


def _of_class(made: EventClass, places: _Places, some: range, redact: Redactor, named: Sightings | None) -> Iterator[Said]:
    rows, data, chunks = places.rows, places.rows.data, places.rows.lines.chunks
    known: dict[tuple[int, int], tuple[str, Labels, Labels]] = {}
    constant = not made.labels.places
    bad = made.level in LEVELS
    for n in some:
        begin, at_us = places.begins[n], places.at_us[n]
        text = data[begin : begin + made.size]
        whose = places.source[n], places.labelled[n]
        if named is not None and named.enough((whose[0], *_captured(made, text)), (at_us, text)):
            yield None, []
            continue
        if whose not in known or not constant:
            labels = labels_of(rows.labels[whose[1]], made.labels.of(text), rows.sources[whose[0]])  # type: ignore[arg-type]
            known[whose] = rows.sources[whose[0]], labels, redact.labels(labels)
        source_id, labels, clean_labels = known[whose]
        chunk = chunks[places.chunks[n]]
        offset = chunk.offset + places.at[n] if not chunk.records else chunk.place(places.at[n])[0]
        number = chunk.number + places.lines[n] if chunk.number else 0
        time = to_datetime(at_us) if at_us > UNDATED else None
        first = data[begin : begin + made.line].decode()
        exact = made.exact if made.dated else at_us % _SECOND_US != 0
        identity = event_id(source_id, time, first, None if exact and time is not None else offset)
        at = time or bounds_of(rows.labels[whose[1]]).taken(chunk.place(places.at[n])[1]) or UNKNOWN_TIME
        said = text.decode()
        hits = [(each.rule_id, each.captures.of(text)) for each in made.matches]
        event: LogEvent | None = None
        if made.open or bad:
            event = LogEvent(
                identity, source_id, offset, number, time, at, said,
                level=made.level, exception=made.exception, labels=labels, **made.fields.of(text),
            )  # fmt: skip
            tested = Fields(event)
            hits += [(each.rule_id, found) for each in made.open if (found := each.check(tested)) is not None]
        if not hits:
            yield event if bad else None, []
            continue
        redacted = redact(said) if made.secret else said
        evidence = cut(redacted)
        dated = time is not None
        matches = [
            Match(
                rule_id,
                identity,
                source_id,
                number,
                at,
                dated,
                redact.captures(captures, said, redacted),
                clean_labels,
                evidence,
            )
            for rule_id, captures in hits
        ]
        yield event if bad else None, matches


def _captured(made: EventClass, text: bytes) -> tuple[object, ...]:
    return tuple((each.rule_id, *each.captures.of(text).items()) for each in made.matches)
