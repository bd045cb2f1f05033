"""matches: the matches of events whose class is decided, with each captured value cut out at its place in the class."""

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
MOST_KINDS = 4096  # of lines in Sightings

EventMatches = tuple[LogEvent | None, list[Match]]  # of one event; the event itself if its level is in LEVELS


class Sightings:
    """The lines in which sources print their own component id. Correlation needs no more than SIGHTINGS equal ones."""

    def __init__(self) -> None:
        self._events: dict[object, set[object]] = {}

    def is_redundant(self, kind: object, event: object) -> bool:
        """Add a line; return whether SIGHTINGS other events of the same kind were added before.

        Args:
            kind: the source, rules and captures of the line.
            event: equal for the same event only.
        """
        events = self._events.get(kind)
        if events is None:
            if len(self._events) >= MOST_KINDS:
                self._events.clear()
            events = self._events[kind] = set()
        if len(events) >= SIGHTINGS:
            return True
        events.add(event)
        return False


def matches_of(
    events: Events,
    codes: Codes,
    selected: Flags,
    decided: Sequence[EventClass | None],
    redact: Redactor,
    sightings: Sightings,
) -> Iterator[EventMatches]:
    """Yield the matches of the `selected` events, class by class; leave out classes without a match or a bad level.

    Args:
        codes: the class of each event, as an index in `decided`.
    """
    has_results = np.array([event_class is not None for event_class in decided], np.bool_)
    own = np.flatnonzero(has_results[codes] & selected)
    own = own[np.argsort(codes[own], kind="stable")]
    if not len(own):
        return
    borders = np.flatnonzero(np.diff(codes[own], prepend=-1)).tolist()
    for begin, end in zip(borders, [*borders[1:], len(own)], strict=True):
        event_class = decided[int(codes[own[begin]])]
        if event_class is not None:
            yield from _OfClass(events, own[begin:end], event_class, redact).matches(sightings)


_ClassHit = tuple[str, Captures, tuple[str, ...]]  # rule id, captures, names of the requested items that hold


class _Placed(NamedTuple):
    """The position and time of an event. `time` is None without a stamp; `at` is then the ingest time."""

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

    def __init__(self, events: Events, own: Integers, event_class: EventClass, redact: Redactor) -> None:
        self._rows, self._class, self._redact = events.rows, event_class, redact
        self._octets = np.frombuffer(events.rows.data, np.uint8)
        self._heads, self._at_us, self._by_header = events.heads[own], events.at_us[own], events.by_header[own]
        self._origins: dict[tuple[int, int], tuple[str, Labels, Labels, Labels]] = {}

    def matches(self, sightings: Sightings) -> Iterator[EventMatches]:
        """Yield the matches of each event. Events that only name their source are left out where they are redundant."""
        event_class, bad = self._class, self._class.level in LEVELS
        if not bad and not event_class.open and all(shape.rule_id.endswith(_NAMES) for shape in event_class.matches):
            self._leave_out_redundant(sightings)
        if not len(self._heads):
            return
        begins = self._rows.starts[self._heads]
        captured = [self._values(shape.captures, begins) for shape in event_class.matches]
        fields = self._values(event_class.fields, begins) if event_class.open or bad else ()
        header = self._labels(begins)
        texts = [self._rows.data[at : at + event_class.size].decode() for at in begins.tolist()]
        for n, (placed, labels) in enumerate(self._events(header)):
            text, raw_labels, clean_labels = texts[n], *labels
            hits = [
                (shape.rule_id, captures[n], shape.items) for shape, captures in zip(event_class.matches, captured, strict=True)
            ]
            event: LogEvent | None = None
            if fields:
                event = self._event(placed, text, fields[n], raw_labels)
                hits += _open_hits(event_class, Fields(event))
            yield event if bad else None, self._matches(hits, text, placed, clean_labels)

    def _event(self, placed: _Placed, text: str, fields: Mapping[str, Value], labels: Labels) -> LogEvent:
        return LogEvent(
            event_id=placed.event_id,
            source_id=placed.source_id,
            offset=placed.offset,
            number=placed.number,
            timestamp=placed.time,
            at=placed.at,
            text=text,
            message=str(fields["message"]),
            level=self._class.level,
            logger=str(fields["logger"]),
            thread=str(fields["thread"]),
            exception=self._class.exception,
            labels=labels,
            misdated=placed.misdated,
            origin=placed.origin,
        )

    def _matches(self, hits: Sequence[_ClassHit], text: str, placed: _Placed, labels: Labels) -> list[Match]:
        if not hits:
            return []
        redact, secret = self._redact, self._class.secret
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

    def _leave_out_redundant(self, sightings: Sightings) -> None:
        """Leave out events that name their source as SIGHTINGS others did before."""
        begins, shapes = self._rows.starts[self._heads], self._class.matches
        columns = [self._column(begins, place) for shape in shapes for place in shape.captures.places]
        rules = tuple(shape.rule_id for shape in shapes)
        differing = {(n, place.name) for n, shape in enumerate(shapes) for place in shape.captures.places}
        same = tuple(
            (n, name, value)
            for n, shape in enumerate(shapes)
            for name, value in shape.captures.same.items()
            if (n, name) not in differing
        )
        sources, times = self._rows.source[self._heads].tolist(), self._at_us.tolist()
        kinds = zip(sources, *columns, strict=True) if columns else ((source,) for source in sources)
        names = self._rows.sources
        needed = [
            n
            for n, (source, *values) in enumerate(kinds)
            if not sightings.is_redundant((names[source], rules, same, *values), times[n])
        ]
        self._heads, self._at_us, self._by_header = self._heads[needed], self._at_us[needed], self._by_header[needed]

    def _column(self, begins: Integers, place: Place) -> list[bytes]:
        """Return the bytes at a place of each event's text."""
        size = place.end - place.start
        if size == 1:
            return [bytes((octet,)) for octet in self._octets[begins + place.start].tolist()]
        octets = self._octets[(begins + place.start)[:, None] + np.arange(size)]
        column: list[bytes] = np.ascontiguousarray(octets).view(f"S{size}").ravel().tolist()
        return column

    def _values(self, values: ClassValues, begins: Integers) -> Sequence[Mapping[str, Value]]:
        """Return the values of each event."""
        if not values.places:
            return [values.same] * len(begins)
        columns = []
        for place in values.places:
            column = self._column(begins, place)
            value_of = {text: typed(text.decode(), place.type) for text in set(column)}
            columns.append([value_of[text] for text in column])
        names = [place.name for place in values.places]
        return [{**values.same, **dict(zip(names, row, strict=True))} for row in zip(*columns, strict=True)]

    def _labels(self, begins: Integers) -> Sequence[Labels]:
        """Return the labels that the header of each event gives."""
        return [{name: str(value) for name, value in row.items()} for row in self._values(self._class.labels, begins)]

    def _events(self, header: Sequence[Labels]) -> Iterator[tuple[_Placed, tuple[Labels, Labels]]]:
        """Yield the position and time of each event, and its labels twice: raw, and without secrets.

        Args:
            header: the labels that the header of each event gives.
        """
        rows, lines, event_class = self._rows, self._rows.lines, self._class
        line = rows.line[self._heads]
        chunk_of = np.searchsorted(lines.firsts, lines.placed[line], side="right") - 1
        within = (lines.placed[line] - lines.firsts[chunk_of]).tolist()
        count = (line - lines.numbers[chunk_of]).tolist()
        origins = zip(rows.source[self._heads].tolist(), rows.label_codes[self._heads].tolist(), strict=True)
        times = zip(self._at_us.tolist(), self._by_header.tolist(), strict=True)
        columns = zip(self._heads.tolist(), times, chunk_of.tolist(), within, count, origins, header, strict=True)
        for head, (at_us, by_header), chunk_at, inside, lines_in, key, header_labels in columns:
            if key not in self._origins or event_class.labels.places:
                given = rows.labels[key[1]]
                labels = labels_of(given, header_labels, rows.sources[key[0]])
                self._origins[key] = rows.sources[key[0]], labels, self._redact.labels(labels), given
            source_id, labels, clean, given = self._origins[key]
            chunk = lines.chunks[chunk_at]
            offset, ingested_at = chunk.place(inside)
            number = chunk.number + lines_in if chunk.number else 0
            time = to_datetime(at_us) if at_us > UNDATED else None
            exact = event_class.exact if by_header else at_us % _SECOND_US != 0
            first = rows.text(head)
            origin = chunk.origin(inside)
            identity = identity_of(source_id, time, first, None if exact and time is not None else origin or offset)
            at = time or bounds_of(given).ingest_time(ingested_at) or UNKNOWN_TIME
            yield _Placed(identity, source_id, offset, number, time, at, origin, at_us == MISDATED), (labels, clean)


def _open_hits(event_class: EventClass, fields: Fields) -> Iterator[_ClassHit]:
    """Yield the open rules of a class that match an event of it."""
    for rule in event_class.open:
        captures = rule.check(fields)
        if captures is not None:
            yield rule.rule_id, captures, rule.held_items(fields)
