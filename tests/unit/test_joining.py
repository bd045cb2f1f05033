"""Records of a stream become chunks, one of each source."""

from collections.abc import Sequence

import pytest

from engine.joining import JOINED_BYTES, LineSource, RecordJoining
from engine.model.records import RawLine
from engine.ports import NO_INGEST_TIME, Chunk, RecordPositions, ingest_us

S = 1_000_000


def _lines(chunk: Chunk) -> list[tuple[int, bytes, float | None]]:
    return [(line.offset, line.value, _seconds(line)) for line in chunk.lines()]


def _seconds(line: RawLine) -> float | None:
    return None if line.ingested_at is None else line.ingested_at.timestamp()


def _spans(chunks: Sequence[Chunk]) -> list[tuple[str, int, int, bytes]]:
    return [(chunk.source_id, chunk.offset, chunk.next_offset, chunk.data) for chunk in chunks]


ONE, OTHER = LineSource("t/a", {}), LineSource("t/b", {})


def test_what_was_read_is_one_chunk_of_each_source() -> None:
    joining = RecordJoining("t-0", 0)
    chunks = [
        *joining.add(ONE, [b"x", b"y\nz"], [0, 10], [S, NO_INGEST_TIME]),
        *joining.add_each([OTHER, ONE, OTHER], [b"b", b"v\n", b"c"], [20, 30, 50], [2 * S, 3 * S, 2_001_000]),
        *joining.add(ONE, [b"w"], range(60, 61), [NO_INGEST_TIME]),
        *joining.reached(70),
        *joining.rest(),
        *joining.rest(),
    ]
    assert _spans(chunks) == [("t/a", 0, 0, b"x\ny\nz\nv\nw\n"), ("t/b", 0, 70, b"b\nc\n")]
    assert _lines(chunks[0]) == [(0, b"x", 1.0), (10, b"y", None), (12, b"z", None), (30, b"v", 3.0), (60, b"w", None)]
    assert _lines(chunks[1]) == [(20, b"b", 2.0), (50, b"c", 2.001)]


def test_lines_of_a_source_stay_in_order_when_its_labels_change() -> None:
    later = LineSource("t/a", {"x": "1"})
    joining = RecordJoining("t-0", 0)
    chunks = [
        *joining.add_each([ONE, OTHER, later, ONE], [b"a", b"b", b"c", b"d"], [0, 10, 20, 30], [NO_INGEST_TIME] * 4),
        *joining.reached(40),
        *joining.add_each([later, OTHER], [b"e", b"f"], [40, 50], [NO_INGEST_TIME] * 2),
        *joining.reached(60),
        *joining.rest(),
    ]
    assert _spans(chunks) == [
        ("t/a", 0, 0, b"a\n"),
        ("t/b", 0, 0, b"b\n"),
        ("t/a", 0, 0, b"c\n"),
        ("t/a", 0, 40, b"d\n"),
        ("t/a", 40, 40, b"e\n"),
        ("t/b", 40, 60, b"f\n"),
    ]
    assert [chunk.labels for chunk in chunks if chunk.source_id == "t/a"] == [{}, {"x": "1"}, {}, {"x": "1"}]


def test_where_nothing_is_a_chunk_of_nothing_reaches_on() -> None:
    joining = RecordJoining("t-0", 10)
    assert list(joining.rest()) == []
    assert _spans([*joining.reached(30), *joining.rest()]) == [("t-0", 10, 30, b"")]


@pytest.mark.parametrize("time_us", [-1, -(2**63), 1_700_000_000_000_000_000, 2**63 - 1, 2**70])
def test_a_record_whose_time_is_none_is_read_without(time_us: int) -> None:
    assert RecordPositions([0], [7], [ingest_us(time_us)]).place(1) == (8, None)


@pytest.mark.parametrize("sources", [[ONE], [ONE, OTHER]])
def test_what_is_held_does_not_grow_without_end(sources: list[LineSource]) -> None:
    joining = RecordJoining("t-0", 0)
    line = b"x" * (JOINED_BYTES // 3)
    chunks: list[Chunk] = []
    for at in range(0, 9, len(sources)):
        chunks += joining.add_each(
            sources, [line] * len(sources), range(at, at + len(sources)), [NO_INGEST_TIME] * len(sources)
        )
        chunks += joining.reached(at + len(sources))
    assert sum(len(chunk.data) for chunk in chunks) > 5 * len(line)
    assert max(len(chunk.data) for chunk in chunks) < 2 * JOINED_BYTES
