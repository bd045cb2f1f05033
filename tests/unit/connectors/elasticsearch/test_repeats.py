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


def read(repeats: Repeats, mark: int, *documents: Mapping[str, Any]) -> list[int]:
    """Return the numbers of those that are read in a slice."""
    with repeats.slice(mark):
        return [line.seq_no for line in repeats.new(lines(*documents, seq_no=mark))]


def test_an_update_that_leaves_the_line_as_it_was_is_passed_over() -> None:
    repeats = Repeats()
    assert read(repeats, 0, {**AT, "message": "one"}) == [0]
    assert read(repeats, 1, {**AT, "message": "one", "tags": [1]}) == []


@pytest.mark.parametrize("name", ["message", "log", "msg", "body", "event.original"])
@pytest.mark.parametrize("before_and_after", [("one", "two"), (["one"], ["two"])])
def test_an_update_that_changes_the_line_is_read_wherever_the_document_has_it(
    name: str, before_and_after: tuple[Any, Any]
) -> None:
    repeats, (before, after) = Repeats(), before_and_after
    assert read(repeats, 0, {**AT, name: before}) == [0]
    assert read(repeats, 1, {**AT, name: after}) == [1]


def test_a_slice_that_is_read_again_is_the_same() -> None:
    repeats = Repeats()
    for _ in range(2):
        assert read(repeats, 7, {**AT, "message": "one"}) == [7]


def test_what_was_read_in_vain_is_read_in_the_next_slice() -> None:
    """An update moves a document on, so a slice that is read again does not have it any more."""
    repeats = Repeats()
    assert read(repeats, 3, {**AT, "message": "one"}) == [3]
    assert read(repeats, 3) == []
    assert read(repeats, 4, {**AT, "message": "one"}) == [4]
    with pytest.raises(OSError, match="broken"), repeats.slice(5):
        assert len(list(repeats.new(lines({**AT, "message": "two"})))) == 1
        raise OSError("broken")
    assert read(repeats, 6, {**AT, "message": "two"}) == [6], "another process has read the slice"


def test_what_is_remembered_is_bounded_and_the_oldest_is_forgotten() -> None:
    repeats = Repeats(most=4)
    hits = [DocumentHit("logs-1", str(n), n, Raw(b'{"message": "x"}')) for n in range(5)]
    with repeats.slice(1):
        assert len(list(repeats.new(READER.lines(hits)))) == 5
    with repeats.slice(2):
        assert [line.id for line in repeats.new(READER.lines(hits))] == ["0", "1", "2"]
