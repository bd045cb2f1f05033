"""A stream cut into slices anywhere, assembled slice by slice and joined at the borders, is the stream assembled whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.model.records import Block, Record
from engine.parse import Assembler, decode_block, join, settle
from engine.parse.open_block import BLOCK_LINES
from tests.unit.parse.reading import FORMATS

pytestmark = pytest.mark.slow

LINES = (
    "[2023-02-03 02:05:02,285] ERROR failed (a.B)",
    "\tat a.B.c(B.java:1)",
    "Caused by: java.io.IOException: x",
    "org.apache.kafka.common.errors.TimeoutException: Expiring",
    "",
    "some text",
    "Traceback (most recent call last):",
    "org.apache.kafka.streams.errors.StreamsException: Error encountered sending record to topic t for task 0_0 due to:",
    '  File "a.py", line 1, in b',
    "{",
    '{"name": "x",',
    '"y": "a',
    "}",
    '","worker_id":"w"}',
    "x" * 100_000,
)
SOURCES = ("f", "f#a")
history = st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from(LINES), st.booleans()), max_size=40)
cuts = st.lists(st.integers(0, 40), max_size=6)


def records(drawn: Sequence[tuple[str, str, bool]]) -> list[Record]:
    return [Record(source, n, text, n + 1, starts=starts and text[:1] == "{") for n, (source, text, starts) in enumerate(drawn)]


def whole(stream: Sequence[Record]) -> list[Block]:
    assembler = Assembler(FORMATS)
    return [block for record in stream for block in assembler.push(record)] + assembler.flush()


class Joiner:
    """What the keyed state does: holds the open end of each source, and settles it with the head of the next slice."""

    def __init__(self) -> None:
        self.tails: dict[str, Block] = {}
        self.done: list[Block] = []

    def add(self, stream: Sequence[Record], mid_stream: bool) -> None:
        assembler = Assembler(FORMATS, mid_stream=mid_stream)
        closed = [block for record in stream for block in assembler.push(record)]
        tails = assembler.open_blocks()
        for source in {record.source_id for record in stream}:
            own = [block for block in closed if block.records[0].source_id == source]
            self._source(source, own, tails.get(source))

    def _source(self, source: str, closed: list[Block], tail: Block | None) -> None:
        head = next((block for block in (*closed, *([tail] if tail else [])) if block.unsettled), None)
        before = self.tails.pop(source, None)
        if head is not None:
            settled, before = settle(join(before, head) if before else head, FORMATS)
            self.done += settled
        moved_on = bool([block for block in closed if block is not head]) or tail is not head
        if before is not None and moved_on:
            self.done.append(before)
        elif before is not None:
            self.tails[source] = before
        self.done += [block for block in closed if block is not head]
        if tail is not None and tail is not head:
            self.tails[source] = tail


def sliced(stream: Sequence[Record], borders: Sequence[int]) -> list[Block]:
    joiner = Joiner()
    places = [0, *sorted(min(border, len(stream)) for border in borders), len(stream)]
    for start, end in pairwise(places):
        joiner.add(stream[start:end], mid_stream=start > 0)
    return joiner.done + list(joiner.tails.values())


def keyed(blocks: Sequence[Block]) -> list[tuple[str, int, int, bool, bool]]:
    found = [(b.records[0].source_id, b.records[0].offset, len(b.records), b.headed, b.cut) for b in blocks]
    return sorted(found)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(history, cuts)
@example([("f", LINES[0], False), ("f", "", False), ("f", "some text", False)], [1, 2])
@example([("f", "{", False), ("f", "", False), ("f", "}", False), ("f", "some text", False)], [1, 2, 3])
def test_slices_joined_are_the_whole(drawn: list[tuple[str, str, bool]], borders: list[int]) -> None:
    stream = records(drawn)
    assert keyed(sliced(stream, borders)) == keyed(whole(stream))


@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(st.integers(1, 3 * BLOCK_LINES), st.sampled_from(["\tat a.B", "some text"]), st.booleans())
def test_also_beyond_the_bounds_of_a_block(border: int, line: str, headed: bool) -> None:
    stream = [Record("f", n, LINES[0] if headed and n == 0 else line) for n in range(3 * BLOCK_LINES + 7)]
    stream += [Record("f", len(stream), "some text"), Record("f", len(stream) + 1, LINES[0])]
    assert keyed(sliced(stream, [border])) == keyed(whole(stream))


@given(history, st.integers(0, 40))
def test_a_snapshot_may_be_taken_anywhere(drawn: list[tuple[str, str, bool]], border: int) -> None:
    stream = records(drawn)
    before, after = Assembler(FORMATS), Assembler(FORMATS)
    found = [block for record in stream[:border] for block in before.push(record)]
    after.restore(before.snapshot())
    found += [block for record in stream[border:] for block in after.push(record)]
    assert keyed(found + after.flush()) == keyed(whole(stream))


@given(history)
def test_an_unsettled_block_decodes_to_the_events_of_its_parts(drawn: list[tuple[str, str, bool]]) -> None:
    stream = [record for record in records(drawn) if record.source_id == "f"]
    if stream:
        together = decode_block(Block(tuple(stream), headed=False, unsettled=True), FORMATS)
        assert together == [event for block in whole(stream) for event in decode_block(block, FORMATS)]
