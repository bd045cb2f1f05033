"""Find the lines around a line of evidence in the input that it was read from. Pure.

The store holds no other lines than evidence, so the input is read once more, by whoever has it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.match import Redactor, redactor_of
from engine.model.incidents import Evidence
from engine.model.proof import NO_NEIGHBOURS, Neighbours
from engine.model.records import LogEvent, Progress, RawLine, parent_id
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap
from engine.ports import Chunk
from engine.quarantine import Quarantine

EVENTS = 5  # on each side
LINES_BEFORE, LINES_AFTER = 60, 150  # that are read: events have several lines, and containers share a file
EVENT_LINES, LINE_CHARACTERS = 3, 1000  # that are shown of an event

NumbersBySource = Mapping[str, Sequence[int]]


def numbers_around(evidence: Iterable[Evidence]) -> NumbersBySource:
    """Return the numbers of the lines to read for `evidence`, ascending, by the source that physically holds them. Evidence
    whose lines have no number, or are documents, is left out."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for event in evidence:
        if event.number and not event.origin:
            first = max(1, event.number - LINES_BEFORE)
            numbers[parent_id(event.source_id)].update(range(first, event.number + LINES_AFTER + 1))
    return {source: sorted(of_source) for source, of_source in numbers.items()}


def lines_with(chunks: Iterable[Chunk | Progress], numbers: NumbersBySource) -> Iterator[RawLine]:
    """Yield the lines of `chunks` with these numbers, in their order."""
    for chunk in chunks:
        if not isinstance(chunk, Chunk) or not (wanted := numbers.get(chunk.source_id)):
            continue
        place = bisect_left(wanted, chunk.number)
        if place < len(wanted) and wanted[place] <= chunk.number + chunk.data.count(b"\n"):
            of_chunk = frozenset(wanted[place:])
            yield from (line for line in chunk.lines() if line.number in of_chunk)


def lines_of(chunks: Iterable[Chunk | Progress], source_id: str) -> Iterator[RawLine]:
    """Yield the lines of one source in `chunks`."""
    for chunk in chunks:
        if isinstance(chunk, Chunk) and chunk.source_id == source_id:
            yield from chunk.lines()


def neighbours_of(evidence: Iterable[Evidence], lines: Iterable[RawLine], plan: Plan) -> Mapping[str, Neighbours]:
    """Return the neighbours of `evidence` by event id.

    A line that `lines` does not hold where the evidence says is left out: its file was rotated, or rewritten. Where lines have
    no numbers, as in a topic, the event is found by its id.

    Args:
        lines: those that `numbers_around` asks for, or all from a time on, in order for each source.
    """
    lines_by_source: defaultdict[str, list[RawLine]] = defaultdict(list)
    for line in lines:
        lines_by_source[line.source_id].append(line)
    redactor = redactor_of(plan.redaction)
    neighbours = {}
    for event in evidence:
        near = [line for line in lines_by_source[parent_id(event.source_id)] if _is_near(line, event)]
        if (around := _around(event, _events(near, plan), redactor)) != NO_NEIGHBOURS:
            neighbours[event.event_id] = around
    return neighbours


def _is_near(line: RawLine, event: Evidence) -> bool:
    return not event.number or event.number - LINES_BEFORE <= line.number <= event.number + LINES_AFTER


def _events(lines: Sequence[RawLine], plan: Plan) -> list[LogEvent]:
    """Return the events of consecutive lines of a source, without the first one if its beginning may not be among them."""
    quarantine = Quarantine(redactor_of(plan.redaction))  # what a stage fails on is not shown
    records = unwrap(lines, plan.formats, quarantine)
    events = decode(assemble(records, plan.formats, quarantine), plan.formats, quarantine)
    every = [event for event in events if isinstance(event, LogEvent)]
    return every[1:] if lines and lines[0].number > 1 else every


def _around(evidence: Evidence, events: Sequence[LogEvent], redactor: Redactor) -> Neighbours:
    own = next((event for event in events if _is_of(event, evidence, redactor)), None)
    if own is None:
        return NO_NEIGHBOURS
    of_source = [event for event in events if event.source_id == own.source_id]
    place = of_source.index(own)
    before, after = of_source[max(0, place - EVENTS) : place], of_source[place + 1 : place + 1 + EVENTS]
    return Neighbours(*(tuple(_shortened(redactor(event.text)) for event in part) for part in (before, after)))


def _is_of(event: LogEvent, evidence: Evidence, redactor: Redactor) -> bool:
    if not evidence.number:
        return event.event_id == evidence.event_id
    first_line = evidence.text.partition("\n")[0]  # a long one is stored cut
    return event.number == evidence.number and redactor(event.text).partition("\n")[0].startswith(first_line)


def _shortened(text: str) -> str:
    first, rest = text.rstrip("\n").split("\n")[:EVENT_LINES], text.rstrip("\n").count("\n") + 1 - EVENT_LINES
    shown = [line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]} ..." for line in first]
    return "\n".join((*shown, *((f"... {rest} more {'line' if rest == 1 else 'lines'}",) if rest > 0 else ())))
