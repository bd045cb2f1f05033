"""JSON that programs write is known by all but its digits: what is then said of it is what unwrapping it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from engine.match.digits import ALIKE
from engine.parse import unwrap_line
from engine.ports import Chunk
from engine.skim.documents import LEARNT_AFTER, Kinds
from engine.skim.lines import searched
from engine.skim.plain import Text
from tests.unit.skim.test_skim import compiled
from tests.wrapping import DOCUMENTS, documents

pytestmark = pytest.mark.slow

AT = datetime(2022, 10, 5, 10, tzinfo=UTC)
TAKEN = datetime(2025, 1, 1, tzinfo=UTC)
SEOUL = {"timezone": "Asia/Seoul"}


def told(lines: list[bytes], labels: dict[str, str] | None = None) -> list[bytes]:
    """What is searched of those of these lines that are known, one after the other; each stamped as it is unwrapped."""
    sight, formats, found = compiled().sight, compiled().formats, []
    kinds = Kinds(sight.formats, sight.stamped, sight._is_wordy)
    text = Text([Chunk("a.log", 0, b"\n".join(lines), 1, TAKEN, labels or {})])
    for number in range(len(lines)):
        documents = kinds.among(text.lines, range(number, number + 1), text.raw, text.zone)
        if documents.kinds[0] is not None:
            record = unwrap_line(text.raw(number), formats)
            assert record.starts
            assert record.at == datetime.fromtimestamp(int(documents.at_us[0]) / 1_000_000, UTC)
            assert documents.searched[0].translate(ALIKE) == searched(record).translate(ALIKE)
            assert not documents.kinds[0].parts or documents.searched[0] == searched(record)
            found.append(documents.searched[0])
    return found


def stamped(number: int) -> str:
    return (AT + timedelta(seconds=number * 1.037)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("layout", ["ecs", "logstash", "spring", "quarkus", "python"])
def test_documents_alike_are_told_by_their_stamps(layout: str) -> None:
    texts = [f"[2022-10-05 10:{n}:00,123] INFO Rolled new log segment at offset {n} (kafka.log.Log)" for n in range(10, 40)]
    lines = [row.encode() for row in documents(texts, DOCUMENTS[layout], Random(1), 0.0)]
    assert len(told(lines)) == len(told(lines, SEOUL)) == 30 - LEARNT_AFTER


def test_words_that_count_are_those_of_the_line() -> None:
    rows = [{"@timestamp": stamped(n), "level": "INFO", "message": f"[GroupCoordinator {n}]: é {n}"} for n in range(10, 20)]
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    assert told(lines) == [f"INFO\n[GroupCoordinator {n}]: ? {n}\n".encode() for n in range(13, 20)]


TRACE = "java.io.IOException: Connection reset by peer\n\tat a.B.c(B.java:{0})\n\tat a.B.d(B.java:45)"


@pytest.mark.parametrize(
    "message", ["Unexpected error {0}\n" + TRACE, "[GroupCoordinator {0}]: é\n" + TRACE, "[GroupCoordinator {0}]: a"]
)
@pytest.mark.parametrize("trace", ["", TRACE])
def test_a_stack_trace_is_part_of_what_is_alike(message: str, trace: str) -> None:
    rows = [
        {"@timestamp": stamped(n), "log.level": "INFO", "message": message.format(n)}
        | ({"error.stack_trace": trace.format(n)} if trace else {})
        for n in range(10, 20)
    ]
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    assert len(told(lines)) == 10 - LEARNT_AFTER


@pytest.mark.parametrize(
    "document",
    [
        {"@timestamp": "", "level": "INFO", "message": "<13> a priority"},
        {"@timestamp": "", "level": "INFO", "message": "12:00:00 INFO a clock"},
        {"@timestamp": "", "level": "INFO", "message": 'an escaped "quote"'},
        {"@timestamp": "", "level": "INFO", "message": "an escaped \x01 character"},
        {"@timestamp": "", "message": "what a shipper passes on"},
        {"timestamp": 1664964000123, "level": "INFO", "message": "seconds since 1970"},
        {"level": "INFO", "message": "no stamp"},
    ],
    ids=lambda document: str(document["message"]),
)
def test_what_may_hang_on_digits_is_unwrapped(document: dict[str, object]) -> None:
    rows = [document | ({"@timestamp": stamped(n)} if "@timestamp" in document else {}) for n in range(20)]
    assert not told([json.dumps(row).encode() for row in rows])


def test_a_level_that_is_a_number_counts() -> None:
    rows = [{"@timestamp": stamped(n), "level": 10 + 10 * (n % 3), "msg": "a"} for n in range(30)]
    assert len(told([json.dumps(row).encode() for row in rows])) == 30 - 3 * LEARNT_AFTER


def test_a_stamp_that_is_no_time_is_unwrapped() -> None:
    rows = [{"@timestamp": stamped(n), "level": "INFO", "message": "a"} for n in range(10)]
    rows.append({"@timestamp": "2022-13-45T99:00:00.000Z", "level": "INFO", "message": "a"})
    assert len(told([json.dumps(row).encode() for row in rows])) == 10 - LEARNT_AFTER


@pytest.mark.parametrize(
    "stamp",
    [
        "2022-10-05T23:59:59Z",
        "2022-10-05T10:00:00.1Z",
        "2022-10-05 10:00:00,123",
        "2022-10-05T10:00:00.123456+09:00",
        "2022-10-05T10:00:00.123456789-0330",
        "2024-02-29T10:00:00.5",
    ],
)
@pytest.mark.parametrize("zone", ["", "UTC", "Asia/Seoul", "Europe/Berlin"])
def test_a_stamp_is_the_time_that_the_parser_reads(stamp: str, zone: str) -> None:
    rows = [json.dumps({"@timestamp": stamp, "level": "INFO", "message": "a"}).encode()] * 6
    assert len(told(rows, {"timezone": zone} if zone else {})) == 6 - LEARNT_AFTER


def test_lines_of_several_zones_are_each_unwrapped_if_their_stamps_name_none() -> None:
    zones = [{"timezone": "Asia/Seoul"}, {"timezone": "Europe/Berlin"}]
    for stamp, known in (("2022-10-05T10:00:00.123", 0), ("2022-10-05T10:00:00.123Z", 8)):
        row = json.dumps({"@timestamp": stamp, "level": "INFO", "message": "a"}).encode() + b"\n"
        kinds, sight = compiled().sight.kinds, compiled().sight
        for _ in range(LEARNT_AFTER):
            alone = Text([Chunk("a.log", 0, row, 1, AT)])
            sight.kinds.among(alone.lines, range(1), alone.raw, alone.zone)
        text = Text([Chunk("a.log", at * 4 * len(row), row * 4, 1 + at * 4, AT, labels) for at, labels in enumerate(zones)])
        documents = kinds.among(text.lines, range(8), text.raw, text.zone)
        assert sum(kind is not None for kind in documents.kinds) == known
