"""JSON that programs write is known by all but its digits: what is then said of it is what unwrapping it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from engine.model.records import RawLine, Record
from engine.parse import unwrap_line
from engine.skim.documents import LEARNT_AFTER, Documents
from tests.unit.skim.test_skim import compiled
from tests.wrapping import DOCUMENTS, documents

pytestmark = pytest.mark.slow

AT = datetime(2022, 10, 5, 10, tzinfo=UTC)
SEOUL = {"timezone": "Asia/Seoul"}


def known() -> Documents:
    sight = compiled().sight
    return Documents(sight.formats, sight.stamped, sight._is_wordy)


def told(lines: list[bytes], labels: dict[str, str] | None = None) -> list[Record]:
    """What is known of these lines, one after the other; each as it is unwrapped."""
    some, formats, found = known(), compiled().formats, []
    for number, line in enumerate(lines):
        raw = RawLine("a.log", number * 1000, line, number + 1, AT, labels or {})
        like, record = some.like(raw), unwrap_line(raw, formats)
        if like is not None:
            assert (like.at, like.starts, like.offset, like.number) == (record.at, True, record.offset, record.number)
            assert like.fields.get("level") == record.fields.get("level")
            found.append(like)
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
    assert [record.text for record in told(lines)] == [f"[GroupCoordinator {n}]: é {n}" for n in range(13, 20)]


@pytest.mark.parametrize(
    "document",
    [
        {"@timestamp": "", "level": "INFO", "message": "<13> a priority"},
        {"@timestamp": "", "level": "INFO", "message": "12:00:00 INFO a clock"},
        {"@timestamp": "", "level": "INFO", "message": "an escaped \n line"},
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
