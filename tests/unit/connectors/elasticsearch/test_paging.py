"""Pages are as large as a server can give, whatever the size of documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import Raw

from connectors.elasticsearch import paging
from connectors.elasticsearch.answers import DocumentHit, SearchPage, _Hits
from connectors.elasticsearch.paging import FIRST_PAGE, GROWTH, PAGE_BYTES, TRIES, Paging
from engine.errors import SourceAway

Question = Callable[[int], SearchPage]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "RETRY_AFTER_S", 0.0)


def documents(size: int, each: int) -> SearchPage:
    return SearchPage(_Hits([DocumentHit("logs-1", "a", source=Raw(b"x" * each))] * size))


def server(memory: int, each: int, asked: list[int]) -> Question:
    """Documents of `each` bytes without end, of a server that gives no page of more than `memory` bytes."""

    def answer(size: int) -> SearchPage:
        asked.append(size)
        if size * each > memory:
            raise SourceAway("es:9200", "is overloaded (status 429): Data too large")
        return documents(size, each)

    return answer


@pytest.mark.parametrize("most", [10_000, 2_000])
def test_documents_that_are_too_large_for_a_page_are_read_in_smaller_ones(most: int) -> None:
    reader, asked = Paging(most), list[int]()
    for _ in range(3):
        page, is_last = reader.next(server(3_000_000, 1_000_000, asked))
        assert page.hits
        assert not is_last
    assert asked == [200, 20, 2, 4, 1, 2]


def test_large_documents_behind_small_ones_are_read_too() -> None:
    reader, asked = Paging(), list[int]()
    for _ in range(4):
        reader.next(server(50_000_000, 300, asked))
    assert asked == [FIRST_PAGE, FIRST_PAGE * GROWTH, 10_000, 10_000]
    assert reader.next(server(50_000_000, 1_000_000, asked))[0].hits
    assert asked[4:] == [10_000, 1_000, 100, 10]


def test_a_page_holds_about_as_many_bytes_whatever_documents_are() -> None:
    reader, asked = Paging(), list[int]()
    for _ in range(3):
        reader.next(server(1 << 40, PAGE_BYTES // 50, asked))
    assert asked == [FIRST_PAGE, 50, 50]


def test_what_is_refused_again_and_again_is_away() -> None:
    asked = list[int]()
    with pytest.raises(SourceAway, match="is overloaded"):
        Paging().next(server(0, 1, asked))
    assert asked == [200, 20, 2, 1]
    assert len(asked) == TRIES


def test_fewer_documents_than_were_asked_for_are_the_last() -> None:
    reader = Paging(5)
    assert reader.next(lambda size: documents(size, 1))[1] is False
    assert reader.next(lambda size: documents(size - 1, 1))[1] is True
    assert reader.next(lambda _: documents(0, 1))[1] is True
