"""matches: what the events of decided classes say, each value taken from where it stands in its class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from engine.columns.classes import Codes
from engine.columns.deciding import ClassValues, EventClass, Place
from engine.columns.events import Events
from engine.columns.lines import MISDATED, UNDATED, Flags, Integers
from engine.columns.stamps import to_datetime
from engine.correlate.bindings import SIGHTINGS
from engine.match.checks import Captures
from engine.match.fields import Fields
from engine.match.redact import Redactor, cut
from engine.match.values import typed
from engine.model.matches import Match, Value
from engine.model.records import Labels, LogEvent
from engine.parse.decoding import UNKNOWN_TIME, labels_of
from engine.parse.decoding import event_id as identity_of
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


def matches_of(
    events: Events, codes: Codes, taken: Flags, decided: Sequence[EventClass | None], redact: Redactor, named: Sightings
) -> Iterator[Said]:
    """Yield what those events say that are `taken`, class by class."""
    telling = np.array([each is not None for each in decided], np.bool_)
    some = np.flatnonzero(telling[codes] & taken)
    some = some[np.argsort(codes[some], kind="stable")]
    if not len(some):
        return
    borders = np.flatnonzero(np.diff(codes[some], prepend=-1)).tolist()
    for begin, end in zip(borders, [*borders[1:], len(some)], strict=True):
        made = decided[int(codes[some[begin]])]
        if made is not None:
            yield from _OfClass(events, some[begin:end], made, redact).said(named)


_ClassHit = tuple[str, Captures, tuple[str, ...]]  # rule id, captures, the items that held of those that are asked for


class _Placed(NamedTuple):
    """Where and when an event was: `at` is its time, or when it was taken."""

    event_id: str
    source_id: str
    offset: int
    number: int
    time: datetime | None
    at: datetime
    origin: str
    misdated: bool


class _OfClass:
    """The events of one class in a block."""

    def __init__(self, events: Events, some: Integers, made: EventClass, redact: Redactor) -> None:
        self._rows, self._made, self._redact = events.rows, made, redact
        self._octets = np.frombuffer(events.rows.data, np.uint8)
        self._heads, self._at_us, self._by_header = events.heads[some], events.at_us[some], events.by_header[some]
        self._whose: dict[tuple[int, int], tuple[str, Labels, Labels, Labels]] = {}

    def said(self, named: Sightings) -> Iterator[Said]:
        """Yield what they say; of those that only name their source as many as count."""
        made, bad = self._made, self._made.level in LEVELS
        if not bad and not made.open and all(each.rule_id.endswith(_NAMES) for each in made.matches):
            self._leave_out(named)
        if not len(self._heads):
            return
        begins = self._rows.starts[self._heads]
        captured = [self._values(each.captures, begins) for each in made.matches]
        fields = self._values(made.fields, begins) if made.open or bad else ()
        header = self._labels(begins)
        texts = [self._rows.data[at : at + made.size].decode() for at in begins.tolist()]
        for n, (event, labels) in enumerate(self._events(header)):
            text, own, clean = texts[n], *labels
            hits = [(each.rule_id, captures[n], each.items) for each, captures in zip(made.matches, captured, strict=True)]
            whole: LogEvent | None = None
            if fields:
                whole = self._event(event, text, fields[n], own)
                tested = Fields(whole)
                tried = ((each, each.check(tested)) for each in made.open)
                hits += [
                    (each.rule_id, own_captures, each.held(tested)) for each, own_captures in tried if own_captures is not None
                ]
            yield whole if bad else None, self._matches(hits, text, event, clean)

    def _event(self, placed: _Placed, text: str, said: Mapping[str, Value], labels: Labels) -> LogEvent:
        made = self._made
        return LogEvent(
            event_id=placed.event_id,
            source_id=placed.source_id,
            offset=placed.offset,
            number=placed.number,
            timestamp=placed.time,
            at=placed.at,
            text=text,
            message=str(said["message"]),
            level=made.level,
            logger=str(said["logger"]),
            thread=str(said["thread"]),
            exception=made.exception,
            labels=labels,
            misdated=placed.misdated,
            origin=placed.origin,
        )

    def _matches(self, hits: Sequence[_ClassHit], text: str, placed: _Placed, labels: Labels) -> list[Match]:
        if not hits:
            return []
        redact, secret = self._redact, self._made.secret
        redacted = redact(text) if secret else text
        evidence, (event_id, source_id, _, number, time, at, origin, _) = cut(redacted), placed
        return [
            Match(
                rule_id,
                event_id,
                source_id,
                number,
                at,
                time is not None,
                redact.captures(captures, text, redacted) if secret else captures,
                labels,
                evidence,
                origin,
                items,
            )
            for rule_id, captures, items in hits
        ]

    def _leave_out(self, named: Sightings) -> None:
        """Leave out the events that name their sources as others have before."""
        begins = self._rows.starts[self._heads]
        columns = [self._column(begins, place) for each in self._made.matches for place in each.captures.places]
        rules = tuple(each.rule_id for each in self._made.matches)
        moving = {(n, place.name) for n, each in enumerate(self._made.matches) for place in each.captures.places}
        same = tuple(
            (n, name, value)
            for n, each in enumerate(self._made.matches)
            for name, value in each.captures.same.items()
            if (n, name) not in moving
        )
        sources, times = self._rows.source[self._heads].tolist(), self._at_us.tolist()
        kinds = zip(sources, *columns, strict=True) if columns else ((source,) for source in sources)
        names = self._rows.sources
        kept = [n for n, (source, *own) in enumerate(kinds) if not named.enough((names[source], rules, same, *own), times[n])]
        self._heads, self._at_us, self._by_header = self._heads[kept], self._at_us[kept], self._by_header[kept]

    def _column(self, begins: Integers, place: Place) -> list[bytes]:
        """Return what stands at a place in each event."""
        size = place.end - place.start
        if size == 1:
            return [bytes((each,)) for each in self._octets[begins + place.start].tolist()]
        stretch = self._octets[(begins + place.start)[:, None] + np.arange(size)]
        column: list[bytes] = np.ascontiguousarray(stretch).view(f"S{size}").ravel().tolist()
        return column

    def _values(self, values: ClassValues, begins: Integers) -> Sequence[Mapping[str, Value]]:
        """Return the values of each event."""
        if not values.places:
            return [values.same] * len(begins)
        columns = []
        for place in values.places:
            column = self._column(begins, place)
            known = {text: typed(text.decode(), place.type) for text in set(column)}
            columns.append([known[text] for text in column])
        names = [place.name for place in values.places]
        return [{**values.same, **dict(zip(names, own, strict=True))} for own in zip(*columns, strict=True)]

    def _labels(self, begins: Integers) -> Sequence[Labels]:
        return [{name: str(value) for name, value in own.items()} for own in self._values(self._made.labels, begins)]

    def _events(self, header: Sequence[Labels]) -> Iterator[tuple[_Placed, tuple[Labels, Labels]]]:
        """Yield where and when each event was, and its labels, raw and without secrets."""
        rows, lines, made = self._rows, self._rows.lines, self._made
        line = rows.line[self._heads]
        chunk_of = np.searchsorted(lines.firsts, lines.placed[line], side="right") - 1
        within = (lines.placed[line] - lines.firsts[chunk_of]).tolist()
        count = (line - lines.numbers[chunk_of]).tolist()
        whose = zip(rows.source[self._heads].tolist(), rows.labelled[self._heads].tolist(), strict=True)
        times = zip(self._at_us.tolist(), self._by_header.tolist(), strict=True)
        columns = zip(self._heads.tolist(), times, chunk_of.tolist(), within, count, whose, header, strict=True)
        for head, (at_us, by_header), chunk_at, inside, lines_in, key, own in columns:
            if key not in self._whose or made.labels.places:
                given = rows.labels[key[1]]
                labels = labels_of(given, own, rows.sources[key[0]])
                self._whose[key] = rows.sources[key[0]], labels, self._redact.labels(labels), given
            source_id, labels, clean, given = self._whose[key]
            chunk = lines.chunks[chunk_at]
            offset, taken = chunk.place(inside)
            number = chunk.number + lines_in if chunk.number else 0
            time = to_datetime(at_us) if at_us > UNDATED else None
            exact = made.exact if by_header else at_us % _SECOND_US != 0
            first = rows.text(head)
            origin = chunk.origin(inside)
            identity = identity_of(source_id, time, first, None if exact and time is not None else origin or offset)
            at = time or bounds_of(given).ingest_time(taken) or UNKNOWN_TIME
            yield _Placed(identity, source_id, offset, number, time, at, origin, at_us == MISDATED), (labels, clean)
