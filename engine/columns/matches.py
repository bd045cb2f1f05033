"""matches: the matches of events whose class is decided, with each captured value cut out at its place in the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np

from engine.columns.classes import BAD_LEVELS, Codes
from engine.columns.deciding import ClassFields, ClassHit, EventClass
from engine.columns.events import Events
from engine.columns.lines import MISDATED, UNDATED, Flags, Integers
from engine.columns.stamps import to_datetime
from engine.correlate.bindings import SIGHTINGS
from engine.match.redact import Redactor, cut
from engine.model.matches import COMPONENT_LINE, Match, Value
from engine.model.records import Labels, LogEvent
from engine.parse.decoding import UNKNOWN_TIME, labels_of
from engine.parse.decoding import event_id as identity_of
from engine.parse.stamps import bounds_of

_NAMES = "/names"
_SECOND_US = 1_000_000
MOST_KINDS = 4096  # of lines in Sightings

EventMatches = tuple[LogEvent | None, list[Match]]  # of one event; the event itself if its level is bad and no rule matches it


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
    placing = _Placing(events, own, redact)
    borders = np.flatnonzero(np.diff(codes[own], prepend=-1)).tolist()
    for begin, end in zip(borders, [*borders[1:], len(own)], strict=True):
        event_class = decided[int(codes[own[begin]])]
        if event_class is not None:
            yield from _OfClass(placing, event_class, redact).matches(range(begin, end), sightings)


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


_AllLabels = tuple[Labels, Labels]  # of an event: raw, and without secrets


class _Placing:
    """The positions, times and labels of events with results, which are numbered in the order of `own`.

    Attributes:
        data: the texts of all rows of the block.
        begins: where the text of each event begins in `data`.
        sources: the source of each event.
        at_us: the time of each event, or MISDATED or UNDATED.
    """

    def __init__(self, events: Events, own: Integers, redact: Redactor) -> None:
        rows, lines, heads = events.rows, events.rows.lines, events.heads[own]
        self._rows, self._redact, self.data = rows, redact, rows.data
        line = rows.line[heads]
        chunk_of = np.searchsorted(lines.firsts, lines.placed[line], side="right") - 1
        self.begins: list[int] = rows.starts[heads].tolist()
        self._line_ends: list[int] = (rows.starts[heads + 1] - 1).tolist()
        self._chunks: list[int] = chunk_of.tolist()
        self._within: list[int] = (lines.placed[line] - lines.firsts[chunk_of]).tolist()
        self._counts: list[int] = (line - lines.numbers[chunk_of]).tolist()
        self._label_codes: list[int] = rows.label_codes[heads].tolist()
        self._source_codes: list[int] = rows.source[heads].tolist()
        self.sources = [rows.sources[code] for code in self._source_codes]
        self.at_us: list[int] = events.at_us[own].tolist()
        self._by_header: list[bool] = events.by_header[own].tolist()
        self._labels: dict[object, _AllLabels] = {}

    def labels(self, event: int, header: Mapping[str, Value]) -> _AllLabels:
        """Return the labels of an event; `header`: those that its header gives."""
        key = self._source_codes[event], self._label_codes[event], tuple(header.items())
        labels = self._labels.get(key)
        if labels is None:
            own = {name: str(value) for name, value in header.items()}
            raw = labels_of(self._rows.labels[key[1]], own, self.sources[event])
            labels = self._labels[key] = raw, self._redact.labels(raw)
        return labels

    def place(self, event: int, text: str, size: int, exact: bool) -> _Placed:
        """Return the position and time of an event.

        Args:
            text: its text, of `size` bytes.
            exact: whether the stamp of its header has fractions of seconds.
        """
        begin, line_end, at_us = self.begins[event], self._line_ends[event], self.at_us[event]
        first_line = text if line_end - begin == size else self.data[begin:line_end].decode()
        chunk = self._rows.lines.chunks[self._chunks[event]]
        offset, ingested_at = chunk.place(self._within[event])
        origin = chunk.origin(self._within[event])
        number = chunk.number + self._counts[event] if chunk.number else 0
        time = to_datetime(at_us) if at_us > UNDATED else None
        if not self._by_header[event]:
            exact = at_us % _SECOND_US != 0
        identity = identity_of(self.sources[event], time, first_line, None if exact and time is not None else origin or offset)
        at = time or bounds_of(self._rows.labels[self._label_codes[event]]).ingest_time(ingested_at) or UNKNOWN_TIME
        return _Placed(identity, self.sources[event], offset, number, time, at, origin, at_us == MISDATED)


class _OfClass:
    """The events of one class in a block."""

    def __init__(self, placing: _Placing, event_class: EventClass, redact: Redactor) -> None:
        self._placing, self._class, self._redact = placing, event_class, redact
        self._bad = event_class.level in BAD_LEVELS

    def matches(self, numbers: Sequence[int], sightings: Sightings) -> Iterator[EventMatches]:
        """Yield the matches of some events, by number. Events that only name their source are left out where they are
        redundant."""
        event_class = self._class
        if not self._bad and event_class.open is None and all(shape.rule_id.endswith(_NAMES) for shape in event_class.matches):
            numbers = self._needed(numbers, sightings)
        for number in numbers:
            yield self._of_event(number)

    def _of_event(self, number: int) -> EventMatches:
        event_class, placing = self._class, self._placing
        begin = placing.begins[number]
        octets = placing.data[begin : begin + event_class.size]
        text = octets.decode()
        hits: list[ClassHit] = [(shape.rule_id, shape.captures.of(octets), shape.items) for shape in event_class.matches]
        placed = placing.place(number, text, event_class.size, event_class.exact)
        labels, clean_labels = placing.labels(number, event_class.labels.of(octets))
        event = partial(self._event, placed, text, octets, labels)
        if event_class.open is not None:
            hits += event_class.open.hits(ClassFields(octets, event))
        unknown = self._bad and all(rule_id.startswith(COMPONENT_LINE) for rule_id, _, _ in hits)
        return event() if unknown else None, self._matches(hits, text, placed, clean_labels)

    def _event(self, placed: _Placed, text: str, octets: bytes, labels: Labels) -> LogEvent:
        fields = self._class.fields.of(octets)
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

    def _matches(self, hits: Sequence[ClassHit], text: str, placed: _Placed, labels: Labels) -> list[Match]:
        if not hits:
            return []
        redact = self._class.redact
        redacted = text if redact is None else redact(text)
        evidence, (event_id, source_id, _, number, time, at, origin, _) = cut(redacted), placed
        return [
            Match(
                rule_id,
                event_id,
                source_id,
                number,
                at,
                time is not None,
                self._redact.captures(captures, text, redacted),
                labels,
                evidence,
                origin,
                items,
            )
            for rule_id, captures, items in hits
        ]

    def _needed(self, numbers: Sequence[int], sightings: Sightings) -> Sequence[int]:
        """Return the events that name their source, without those that do it as SIGHTINGS others did before."""
        placing, shapes = self._placing, self._class.matches
        rules = tuple(shape.rule_id for shape in shapes)
        places = [place for shape in shapes for place in shape.captures.places]
        differing = {(n, place.name) for n, shape in enumerate(shapes) for place in shape.captures.places}
        same = tuple(
            (n, name, value)
            for n, shape in enumerate(shapes)
            for name, value in shape.captures.same.items()
            if (n, name) not in differing
        )
        needed = []
        for number in numbers:
            begin = placing.begins[number]
            values = tuple([placing.data[begin + place.start : begin + place.end] for place in places])
            if not sightings.is_redundant((placing.sources[number], rules, same, values), placing.at_us[number]):
                needed.append(number)
        return needed
