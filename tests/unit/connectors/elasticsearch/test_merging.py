"""Pages of several shards are merged by time, and nothing is left out or waits for ever."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.elasticsearch import merging
from connectors.elasticsearch.documents import NO_TIME, IndexedLine
from connectors.elasticsearch.merging import merged
from engine.joining import LineSource

SOURCE = LineSource("a", {})
times = st.lists(st.lists(st.lists(st.integers(0, 30) | st.just(NO_TIME), max_size=6), max_size=4), min_size=1, max_size=4)


def line(number: int, at: float) -> IndexedLine:
    return IndexedLine(SOURCE, b"\n", "i", str(number), number, "", at)


def pages(shard: int, of: list[list[float]]) -> Iterator[list[IndexedLine]]:
    number = shard * 1000
    for page in of:
        yield [line(number := number + 1, at) for at in page]


@given(times)
def test_every_line_comes_once(shards: list[list[list[float]]]) -> None:
    found = [each.seq_no for page in merged([pages(n, of) for n, of in enumerate(shards)]) for each in page]
    assert sorted(found) == sorted(each.seq_no for n, of in enumerate(shards) for page in pages(n, of) for each in page)


@given(st.lists(st.lists(st.integers(0, 50), max_size=20).map(sorted), min_size=2, max_size=4), st.integers(1, 7))
def test_lines_that_each_shard_has_in_order_are_in_order(shards: list[list[int]], size: int) -> None:
    cut = [[of[at : at + size] for at in range(0, len(of), size)] for of in shards]
    found = [each.at for page in merged([pages(n, of) for n, of in enumerate(cut)]) for each in page]
    assert found == sorted(found)


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "PENDING_BYTES", 10 * len(line(0, 0.0).data))
    early = ([line(n, 0.0)] for n in range(100))
    late = ([line(n + 100, 9.0 + n)] for n in range(30))
    sizes = [len(page) for page in merged([early, late])]
    assert sum(sizes) == 130
    assert max(sizes) <= 31


def test_one_shard_stays_as_it_is() -> None:
    assert [[each.at for each in page] for page in merged([pages(0, [[3, 1], [], [2]])])] == [[3, 1], [], [2]]
