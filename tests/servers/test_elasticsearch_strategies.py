"""ElasticsearchSource by time on a real node, and what becomes of a source that goes over from one strategy to another."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.elasticsearch import by_time, paging, timed
from connectors.elasticsearch import source as source_module
from connectors.elasticsearch.cluster import SearchCluster
from tests.servers.batches import Reader
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.indexing import Index, filebeat
from tests.servers.test_elasticsearch_source import numbered, texts


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "FIRST_PAGE", 7)
    monkeypatch.setattr(timed, "PAGE", 7)
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)


def test_without_sequence_numbers_documents_are_read_by_ingest_time(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    if elasticsearch.version.startswith("8."):
        pytest.skip("Elasticsearch 8 always has sequence numbers")
    index = Index(elasticsearch, shards=2, disable_sequence_numbers=True)
    index.say("one", "two", event={"ingested": "2026-01-01T00:00:01.000000001Z"})
    index.call("POST", "_refresh")
    choice = index.source().look().choice
    assert choice.sentence.startswith(f"read by event.ingested ({index.name} has sequence numbers disabled); documents that")
    reader = Reader(index.source()).drain()
    assert reader.at["by"] == "ingested"
    assert sorted(texts(reader)) == ["one", "two"]


def test_ten_thousand_documents_of_one_nanosecond_are_read_once(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "PAGE", 2000)
    index = Index(elasticsearch, shards=3)
    ingested = {"@timestamp": "2026-01-01T00:00:00Z", "event": {"ingested": "2026-01-01T00:00:00.123456789Z"}}
    mapping = {"mappings": {"properties": {"event": {"properties": {"ingested": {"type": "date_nanos"}}}}}}
    index.call("PUT", "", mapping)
    index.write({**ingested, "message": f"line {n}"} for n in range(10_001))
    index.call("POST", "_refresh")
    reader = Reader(index.source(read_by="ingested"), 500).drain()
    assert sorted(texts(reader)) == sorted(f"line {n}" for n in range(10_001))


def test_a_view_that_is_lost_between_two_pages_begins_anew(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch)
    index.write(map(filebeat, numbered(30)))
    index.call("POST", "_refresh")
    pages, whole = iter(range(3)), SearchCluster.page

    def page(self: SearchCluster, body: Any, *more: Any) -> Any:
        if "pit" in body and next(pages, None) == 2:
            elasticsearch.call("DELETE", "/_pit", {"id": body["pit"]["id"]})
        return whole(self, body, *more)

    monkeypatch.setattr(SearchCluster, "page", page)
    reader = Reader(index.source(read_by="timestamp")).drain()
    assert next(pages, None) is None
    assert sorted(set(texts(reader)), key=texts(reader).index) == [f"line {n}" for n in range(30)]


def test_documents_that_become_visible_late_are_found_when_it_is_looked_again(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch)
    clock = [1_767_225_700.0]  # 2026-01-01T00:01:40Z
    source = index.source(read_by="timestamp", overlap_s=60.0, start="2026-01-01T00:01:00Z")
    source._reading("timestamp")._clock = lambda: clock[0]  # type: ignore[union-attr]
    reader = Reader(source)
    for late, at in ((5, 80), (30, 95), (15, 130)):
        index.write(
            [
                {
                    "message": f"from {at - late} at {at}",
                    "@timestamp": f"2026-01-01T00:{(at - late) // 60:02}:{(at - late) % 60:02}Z",
                }
            ]
        )
        index.call("POST", "_refresh")
        clock[0] = 1_767_225_600.0 + at
        reader.drain()
    assert texts(reader) == ["from 75 at 80", "from 65 at 95", "from 115 at 130"]


@pytest.mark.parametrize("before", ["sequence", "timestamp", "ingested"])
@pytest.mark.parametrize("after", ["sequence", "timestamp", "ingested"])
def test_another_strategy_goes_on_with_what_was_not_read(
    elasticsearch: ElasticsearchNode, before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch, shards=2)
    texts_at = {n: f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z" for n in range(40)}
    documents = [
        {"message": f"line {n}", "@timestamp": at, "event": {"ingested": at.replace("Z", ".5Z")}} for n, at in texts_at.items()
    ]
    index.write(documents[:20])
    index.call("POST", "_refresh")
    reader = Reader(index.source(read_by=before, overlap_s=60.0), 12)
    assert reader.batch()
    index.write(documents[20:])
    index.call("POST", "_refresh")
    source_module._MEMORIES.clear()  # another run
    reader.source, reader.max_lines = index.source(read_by=after, overlap_s=60.0), None
    choice = reader.source.look(reader.at).choice  # type: ignore[attr-defined]
    assert any("it changes to" in warning for warning in choice.warnings) == (before != after)
    assert texts(reader.drain()) != [], "it has an end"
    assert set(texts(reader)) == {f"line {n}" for n in range(40)}
    assert reader.at["by"] == after
    assert before == after or reader.contiguous()
    source = index.source()
    assert source.latest(reader.at)["by"] == after, "what is not configured stays as it was"


def test_what_is_lost_is_said_before_another_strategy_goes_on(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch, stream=True)
    index.write(map(filebeat, numbered(30)))
    index.rollover()
    index.write(map(filebeat, numbered(10, 30)))
    index.call("POST", "_refresh")
    reader = Reader(index.source(), 10)
    assert reader.batch()
    index.call("DELETE", "", index=index.indices()[0])
    reader.source, reader.max_lines = index.source(read_by="timestamp"), None
    reader.drain()
    ((lost_from, lost_to),) = [(each.lost_from, each.lost_to) for each in reader.lost]
    assert (lost_from, lost_to) == (10, 30)
    assert set(texts(reader)) == {f"line {n}" for n in [*range(10), *range(30, 40)]}
    assert reader.at["by"] == "timestamp"


@pytest.mark.parametrize("first", ["2099-01-01T00:00:00Z", None])
def test_a_first_document_of_the_future_or_of_no_time_holds_nothing_up(
    elasticsearch: ElasticsearchNode, first: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch)
    index.write([{"message": "odd", **({"@timestamp": first} if first else {})}])
    index.call("POST", "_refresh")
    clock = [1_767_225_600.0]  # 2026-01-01T00:00:00Z
    source = index.source(read_by="timestamp")
    source._reading("timestamp")._clock = lambda: clock[0]  # type: ignore[union-attr]
    reader = Reader(source)
    index.write([{"message": "one", "@timestamp": "2026-01-01T00:00:30Z"}])
    index.call("POST", "_refresh")
    clock[0] += 60
    assert texts(reader.drain()) == ["one"]
