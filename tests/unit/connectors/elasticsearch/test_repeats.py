"""A document that comes again is passed over as long as it says the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec import Raw

from connectors.elasticsearch.answers import DocumentHit
from connectors.elasticsearch.documents import DocumentReader, IndexedLine
from connectors.elasticsearch.repeats import Repeats

AT = {"@timestamp": "2026-01-01T00:00:00Z"}
READER = DocumentReader("logs-*", {})


def lines(*documents: Mapping[str, Any], seq_no: int = 0) -> Iterator[IndexedLine]:
    hits = [DocumentHit("logs-1", "a", seq_no + n, Raw(json.dumps(each).encode())) for n, each in enumerate(documents)]
    return READER.lines(hits)


def test_an_update_that_leaves_the_line_as_it_was_is_passed_over() -> None:
    repeats = Repeats()
    assert [line.seq_no for line in repeats.new(lines({**AT, "message": "one"}, {**AT, "message": "one", "tags": [1]}))] == [0]


@pytest.mark.parametrize("name", ["message", "log", "msg", "body", "event.original"])
def test_an_update_that_changes_the_line_is_read_wherever_the_document_has_it(name: str) -> None:
    repeats = Repeats()
    assert [line.seq_no for line in repeats.new(lines({**AT, name: "one"}, {**AT, name: "two"}))] == [0, 1]


def test_a_line_as_a_list_is_looked_into() -> None:
    assert len(list(Repeats().new(lines({"message": ["one"]}, {"message": ["two"]})))) == 2


def test_a_slice_that_is_read_again_is_the_same() -> None:
    repeats = Repeats()
    for _ in range(2):
        assert len(list(repeats.new(lines({**AT, "message": "one"}, seq_no=7)))) == 1


def test_what_is_remembered_is_bounded_and_the_oldest_is_forgotten() -> None:
    repeats = Repeats(most=4)
    hits = [DocumentHit("logs-1", str(n), n, Raw(b'{"message": "x"}')) for n in range(5)]
    assert len(list(repeats.new(READER.lines(hits), mark=1))) == 5
    assert [line.id for line in repeats.new(READER.lines(hits), mark=2)] == ["0", "1", "2"]
