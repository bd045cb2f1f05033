"""Skimming one source: of its lines, those that have to be read; of the others, when they were said.

An event may be left out when its header is certain (it is in the layout of its text, and every event of that begins so), its
lines hold no sign of anything looked for, and it is neither the first nor the last of its text. Its time counts all the same:
it lies between those of events that are read, or a span says so. Whatever is not certain is read, with the events around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from engine.correlate.bindings import SIGHTINGS
from engine.match import Matcher
from engine.match.checks import expression
from engine.match.gate import Kept, Screen
from engine.model.matches import SEEN_GAP_S, Seen
from engine.model.records import RawLine
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.headers import header_book
from engine.parse.open_block import BLOCK_BYTES, BLOCK_LINES
from engine.parse.times import zone_of
from engine.ports import Chunk
from engine.skim.layouts import Layout, example_of, layout_of, surely_continues
from engine.skim.lines import Bytes, Flags, Lines, Numbers, lines_of

ENOUGH_LINES = 64  # below this, arrays cost more than they save
# the parser changes a text that holds one of these, so that more may match in it than in the bytes; looked for as signs are
CHANGED = (r"[\x00\x0b\x0c\r\x1b]", r"\\n\\tat ", r"\\nCaused by: ", r"\\n    at ", r"\*\*[^\s*/]")
PROBED_LINES = 40  # at the beginning of a text, for one in a certain layout
REMEMBERED = 20_000  # lines whose verdict is kept
REMEMBERED_BYTES = 400  # of a line; longer ones are judged each time

_GAP_MS = SEEN_GAP_S * 1000


@dataclass
class Sight:
    """What is known before any line is seen: the screen of what is looked for, the formats, and what was learnt of them.

    The screen has to look for CHANGED too. One for a process: it only remembers.
    """

    screen: Screen
    formats: Sequence[Format]
    _layouts: dict[bytes, Layout | None] = field(default_factory=dict)  # by example
    _goes_on: dict[bytes, bool] = field(default_factory=dict)

    def layout(self, line: bytes) -> Layout | None:
        """Return the layout of `line`, None when it is not certain."""
        example = example_of(line)
        if example is None:
            return None
        if example not in self._layouts:
            self._layouts[example] = layout_of(example, self.formats)
        return self._layouts[example]

    def goes_on(self, line: bytes) -> bool:
        """Tell whether `line` is sure to be no more than the continuation of an event that began with a header."""
        known = self._goes_on.get(line)
        if known is None:
            known = _continues(line, self.formats)
            if len(line) <= REMEMBERED_BYTES and len(self._goes_on) < REMEMBERED:
                self._goes_on[line] = known
        return known


def sight_of(matcher: Matcher, formats: Sequence[Format], kept: Kept | None = None, also: Iterable[str] = ()) -> Sight:
    """Return how to skim for what `matcher` looks for, and for lines that bear one of the expressions `also`.

    Args:
        kept: where what takes long to compile may lie ready.
    """
    return Sight(matcher.screen((*CHANGED, *also), kept), formats)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The events of a text with certain headers.

    `heads` are the lines they begin at and `at_ms` their times as printed; `strange` tells which hold a line that may be
    something else than their continuation.
    """

    layout: Layout
    rows: Bytes
    heads: Numbers
    at_ms: Numbers
    strange: Flags


@dataclass(frozen=True, slots=True)
class _Worth:
    """What of a text has to be read: which blocks; and between which of them, by number, a span is to be told: first, last."""

    blocks: _Blocks
    kept: Flags
    spans: dict[int, Seen]


class Skimmer:
    """Skims one source, piece after piece. `lines` counts the lines there were, `left_out` the events that were not read."""

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._said: dict[tuple[bytes, ...], set[bytes]] = {}
        self._known: set[bytes] = set()
        self.lines = self.left_out = 0

    def read(self, chunks: Sequence[Chunk]) -> Iterator[RawLine | Seen]:
        """Yield the lines of `chunks`, of the one source and in order, that have to be read.

        A span stands for events that are left out. It comes behind the line that ends the event before them, and joins on to
        that event: it is never the first that is heard of a source.
        """
        lines = lines_of(b"".join(_ended(chunk.data) for chunk in chunks))
        self.lines += len(lines)
        worth = self._worth(lines, chunks)
        if worth is None:
            yield from (raw for chunk in chunks for raw in chunk.lines())
            return
        self.left_out += int(np.count_nonzero(~worth.kept))
        place = _Places(chunks, lines)
        heads = worth.blocks.heads
        yield from map(place.raw, range(int(heads[0])))
        ends = np.append(heads[1:], len(lines))
        for block in np.flatnonzero(worth.kept).tolist():
            first, end = int(heads[block]), int(ends[block])
            yield place.raw(first)
            if (span := worth.spans.get(block)) is not None:
                yield span
            yield from map(place.raw, range(first + 1, end))

    def _worth(self, given: Lines, chunks: Sequence[Chunk]) -> _Worth | None:
        """Return what has to be read of some lines; None: all of them."""
        if len(given) < ENOUGH_LINES or not self._sight.screen.complete:
            return None
        lines = _searched(given)
        blocks = self._blocks(given, lines)
        if blocks is None or not _in_one_zone(blocks, chunks):
            return None
        kept = _ends(blocks)
        kept |= _too_long(blocks, lines)
        kept[self._bearing(lines, blocks)] = True
        doubted = blocks.strange | _doubtful(lines, blocks)
        kept |= doubted
        kept[1:] |= doubted[:-1]  # the event behind may be joined to what is strange, or be apart from it in time
        kept[:-1] |= doubted[1:]  # what is strange may go on with the event before
        return _Worth(blocks, kept, _spans(blocks, kept, chunks[0]))

    def _blocks(self, given: Lines, lines: Lines) -> _Blocks | None:
        layout = self._layout(lines)
        if layout is None:
            return None
        rows = lines.beginnings()
        fits = layout.fits(rows)
        heads = np.flatnonzero(fits)
        at_ms = layout.times(rows[heads]) if len(heads) else heads
        heads, at_ms = heads[at_ms >= 0], at_ms[at_ms >= 0]
        if len(heads) < 2:
            return None
        strange = np.zeros(len(heads), np.bool_)
        strange[self._strange(given, rows, heads)] = True
        return _Blocks(layout, rows[heads], heads, at_ms, strange)

    def _layout(self, lines: Lines) -> Layout | None:
        """Return the layout of the first line that has a certain one."""
        for number in range(min(PROBED_LINES, len(lines))):
            layout = self._sight.layout(lines.line(number))
            if layout is not None:
                return layout
        return None

    def _strange(self, given: Lines, rows: Bytes, heads: Numbers) -> list[int]:
        """Return the blocks in which a line may be anything but the continuation of an event."""
        others = ~surely_continues(rows)
        others[: heads[0]] = False
        others[heads] = False
        numbers = np.flatnonzero(others)
        owners = np.searchsorted(heads, numbers, side="right") - 1
        goes_on = map(self._sight.goes_on, given.some(numbers))
        return [owner for owner, well in zip(owners.tolist(), goes_on, strict=True) if not well]

    def _bearing(self, lines: Lines, blocks: _Blocks) -> list[int]:
        """Return the blocks that may bear something which is not known yet."""
        hits = self._sight.screen.hits(lines.text)
        if not hits.ends:
            return []
        owners = _owners(lines, blocks, hits.ends)
        new = np.array([said not in self._known for said in hits.said])
        new[1:] |= owners[1:] == owners[:-1]  # what is said together with something else may be taken for that
        new[:-1] |= owners[1:] == owners[:-1]
        some = np.flatnonzero(new & (owners >= 0))
        said = zip(owners[some].tolist(), [hits.said[at] for at in some.tolist()], strict=True)
        heads = blocks.heads
        return [
            owner
            for owner, group in groupby(said, _owner)
            if self._counts(tuple(each for _, each in group), lines.line(int(heads[owner])))
        ]

    def _counts(self, said: tuple[bytes, ...], head: bytes) -> bool:
        """Tell whether an event in which this was said counts: until SIGHTINGS events that differ in their `head` said so."""
        if not all(said):
            return True
        heads = self._said.setdefault(said, set())
        if len(heads) >= SIGHTINGS:
            return False
        heads.add(head)
        if len(said) == 1 and len(heads) >= SIGHTINGS:
            self._known.add(said[0])
        return True


class _Places:
    """Where the lines of a text come from: their chunk, offset and number."""

    def __init__(self, chunks: Sequence[Chunk], lines: Lines) -> None:
        self._chunks, self._lines = chunks, lines
        self._begins = np.cumsum([0, *(len(_ended(chunk.data)) for chunk in chunks)])
        self._firsts = np.searchsorted(lines.starts, self._begins)

    def raw(self, number: int) -> RawLine:
        start = int(self._lines.starts[number])
        at = 0 if len(self._chunks) == 1 else int(np.searchsorted(self._begins, start, side="right")) - 1
        chunk = self._chunks[at]
        place = chunk.number + number - int(self._firsts[at]) if chunk.number else 0
        offset, taken = chunk.place(start - int(self._begins[at]))
        return RawLine(chunk.source_id, offset, self._lines.line(number), place, taken, chunk.labels)


def _owner(owned: tuple[int, bytes]) -> int:
    return owned[0]


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") or not data else data + b"\n"


def _searched(lines: Lines) -> Lines:
    """Return the same lines as they are searched: a sign's byte is a text's character, and a line's end is one byte."""
    text = lines.text
    plain = text if text.isascii() else text.decode("utf-8", "replace").encode("ascii", "replace")
    if b"\r" in plain:
        plain = plain.replace(b"\r\n", b"\n")
    return lines if plain is text else lines_of(plain)


def _continues(line: bytes, formats: Sequence[Format]) -> bool:
    record = unwrap_line(RawLine("", 0, line, 0), formats)
    plain = record.source_id == "" and not record.starts and not record.partial and record.text.encode() == line
    return plain and header_book(formats).find(record.text) is None


def _in_one_zone(blocks: _Blocks, chunks: Sequence[Chunk]) -> bool:
    """Tell whether times as printed are as far apart as they are: no clock was put forward or back between them."""
    zones = {chunk.labels.get("timezone", "") for chunk in chunks}
    if blocks.layout.zoned or zones <= {"", "UTC"}:
        return True
    if len(zones) > 1:
        return False
    zone = zone_of(next(iter(zones)))
    at = [blocks.layout.time(blocks.rows[int(each)], zone) for each in (blocks.at_ms.argmin(), blocks.at_ms.argmax())]
    offsets = {None if each is None else each.astimezone(zone).utcoffset() for each in at}
    return len(offsets) == 1 and None not in offsets and int(np.ptp(blocks.at_ms)) < _DAYS_WITHOUT_TWO_CHANGES_MS


_DAYS_WITHOUT_TWO_CHANGES_MS = 7 * 86_400_000  # a zone that goes there and back again within a week is none


def _owners(lines: Lines, blocks: _Blocks, ends: Sequence[int]) -> Numbers:
    """Return the block in which each of some matches ends; -1: before the first."""
    return np.searchsorted(lines.starts[blocks.heads], np.array(ends, np.int64) - 1, side="right") - 1


def _doubtful(lines: Lines, blocks: _Blocks) -> Flags:
    """Return which blocks bear what makes their layout doubtful."""
    doubted = np.zeros(len(blocks.heads), np.bool_)
    if blocks.layout.doubt:
        owners = _owners(lines, blocks, [hit.end() for hit in expression(blocks.layout.doubt).finditer(lines.text)])
        doubted[owners[owners >= 0]] = True
    return doubted


def _ends(blocks: _Blocks) -> Flags:
    """Return which blocks are the first or the last of their text, or of a run without a pause."""
    pauses = np.abs(np.diff(blocks.at_ms)) >= _GAP_MS
    kept = np.zeros(len(blocks.heads), np.bool_)
    kept[1:] |= pauses
    kept[:-1] |= pauses
    kept[0] = kept[-1] = True  # the last one may go on in the text behind
    return kept


def _too_long(blocks: _Blocks, lines: Lines) -> Flags:
    """Return which blocks the parser may cut in two."""
    ends = np.append(blocks.heads[1:], len(lines))
    bytes_ = np.diff(np.append(lines.starts[blocks.heads], len(lines.text)))
    return (ends - blocks.heads > BLOCK_LINES) | (bytes_ > BLOCK_BYTES // 4)  # a byte that is no UTF-8 becomes three


def _spans(blocks: _Blocks, kept: Flags, chunk: Chunk) -> dict[int, Seen]:
    """Return the spans of what is left out, each by the number of the block that is read next.

    What lies between two events that are read, in order and without a pause, adds nothing to their times; of the last event
    nobody knows whether it ends here, so whether it will be heard of now.
    """
    read = np.flatnonzero(kept)
    before, after = read[:-1], read[1:]
    apart = after - before > 1
    before, after = before[apart], after[apart]
    if not len(before):
        return {}
    borders = np.stack((before + 1, after), axis=1).ravel()
    at_ms = blocks.at_ms
    first, last = np.minimum.reduceat(at_ms, borders)[::2], np.maximum.reduceat(at_ms, borders)[::2]
    between = (after < read[-1]) & (at_ms[before] <= first) & (last <= at_ms[after]) & (at_ms[after] - at_ms[before] < _GAP_MS)
    zone = zone_of(chunk.labels.get("timezone", ""))
    spans: dict[int, Seen] = {}
    for at in np.flatnonzero(~between).tolist():
        run = slice(int(before[at]) + 1, int(after[at]))
        ends = [blocks.layout.time(blocks.rows[run][int(each)], zone) for each in (at_ms[run].argmin(), at_ms[run].argmax())]
        if ends[0] is not None and ends[1] is not None:
            spans[int(after[at])] = Seen(chunk.source_id, ends[0], ends[1], chunk.labels)
    return spans
