"""ElasticsearchSource on a real node: every document once, in order, whatever happens to indices; what is lost is said."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.elasticsearch import by_time, cluster, paging, sequence, timed
from connectors.elasticsearch import source as source_module
from connectors.elasticsearch.cluster import SearchCluster
from connectors.elasticsearch.connection import ElasticsearchConnection
from connectors.elasticsearch.incidents.receiver import open_receiver
from engine.cli.evidence_reading import InputReader
from engine.config import load
from engine.errors import SourceAway, SourceMissing
from engine.model.incidents import Evidence
from engine.model.notifications import DeliveryState, IncidentChange, Notification, Reason
from engine.model.proof import Neighbours
from engine.parse.decoding import event_id
from tests.servers.batches import Reader
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.indexing import SHAPES, Index, Line, filebeat
from tests.unit.cli.incidents import incident


def texts(reader: Reader) -> list[str]:
    """The messages of what was read, in the order it came."""
    return [json.loads(line.value)["message"] for line in reader.raw()]


def numbered(count: int, start: int = 0) -> list[Line]:
    return [Line("h", "a.log", f"line {n}", n * 10, n) for n in range(start, start + count)]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "FIRST_PAGE", 7)
    monkeypatch.setattr(paging, "PAGE_BYTES", 7 * 400)
    monkeypatch.setattr(timed, "PAGE", 7)


@pytest.mark.parametrize("shards", [1, 3])
def test_all_documents_are_read_once_and_those_of_a_file_in_order(elasticsearch: ElasticsearchNode, shards: int) -> None:
    index = Index(elasticsearch, shards=shards, stream=True)
    index.write(map(filebeat, numbered(200)))
    index.rollover()
    index.write(map(filebeat, numbered(100, 200)))
    for size in (1000, 37, None):
        source_module._MEMORIES.clear()
        reader = Reader(index.source(), size).drain()
        assert sorted(texts(reader)) == sorted(f"line {n}" for n in range(300))
        assert texts(reader) == [f"line {n}" for n in range(300)]
        assert reader.contiguous()
        assert {line.source_id for line in reader.raw()} == {f"{index.name}*/h:a.log"}
        assert all(progress.caught_up for progress in reader.source.progress(reader.at))


def test_a_line_names_the_index_and_the_document_that_it_is_in(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch, stream=True)
    index.write(map(filebeat, numbered(3)), ids=["a/b", "ü", "c"])
    reader = Reader(index.source()).drain()
    (backing,) = index.indices()
    assert [line.origin for line in reader.raw()] == [f"elasticsearch:{backing}/{id_}" for id_ in ("a%2Fb", "%C3%BC", "c")]


def test_what_is_indexed_later_is_read_later_and_nothing_twice(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch, shards=2, refresh_interval="-1")
    reader = Reader(index.source(start="latest"))
    for round_ in range(5):
        index.say(*(f"{round_}:{n}" for n in range(30)))
        reader.drain()
    assert sorted(texts(reader)) == sorted(f"{r}:{n}" for r in range(5) for n in range(30))
    assert not reader.batch()
    assert reader.contiguous()


def test_two_writers_and_one_of_them_slow_lose_nothing(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch, shards=2, stream=True, refresh_interval="30s")
    index.say("first")
    reader = Reader(index.source(start="latest"))
    writers = [threading.Thread(target=_write, args=(index, name)) for name in ("a", "b", "c")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        reader.batch()
    for writer in writers:
        writer.join()
    reader.drain()
    assert sorted(texts(reader)) == sorted(f"{name}:{n}" for name in ("a", "b", "c") for n in range(600))
    assert reader.contiguous()


def _write(index: Index, name: str) -> None:
    for at in range(0, 600, 60):
        index.say(*(f"{name}:{n}" for n in range(at, at + 60)), file=f"{name}.log")
        if at == 300 and name == "a":
            index.rollover()


def test_an_index_that_is_deleted_before_it_was_read_is_a_gap_and_reading_goes_on(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch, stream=True)
    index.write(map(filebeat, numbered(50)))
    index.rollover()
    index.write(map(filebeat, numbered(20, 50)))
    reader = Reader(index.source(), 30)
    assert reader.batch()
    first, _ = index.indices()
    index.call("DELETE", "", index=first)
    reader.drain()
    assert not reader.contiguous(), "nothing is joined across the gap"
    assert texts(reader) == [f"line {n}" for n in [*range(30), *range(50, 70)]]
    ((source_id, lost_from, lost_to),) = [(each.source_id, each.lost_from, each.lost_to) for each in reader.lost]
    assert (source_id, lost_from, lost_to) == (f"{first}[0]", 30, 50)
    assert "deleted before" in reader.lost[0].why


def test_an_index_that_is_deleted_while_a_batch_is_read_is_a_gap(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch, stream=True)
    index.write(map(filebeat, numbered(50)))
    index.rollover()
    index.write(map(filebeat, numbered(20, 50)))
    first, _ = index.indices()
    _after_pages(monkeypatch, 3, lambda: index.call("DELETE", "", index=first))
    reader = Reader(index.source()).drain()
    assert {f"line {n}" for n in range(50, 70)} < set(texts(reader))
    (loss,) = reader.lost
    assert (loss.source_id, loss.lost_to) == (f"{first}[0]", 50)
    assert len(texts(reader)) == loss.lost_from + 20
    index.write(map(filebeat, numbered(1, 99)))
    assert texts(reader.drain())[-1] == "line 99"


def test_an_index_that_is_made_anew_while_a_batch_is_read_is_another_one(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(elasticsearch)
    index.say(*(f"old {n}" for n in range(20)))

    def anew() -> None:
        index.call("DELETE", "")
        index.say(*(f"new {n}" for n in range(30)))

    _after_pages(monkeypatch, 1, anew)
    reader = Reader(index.source()).drain()
    assert [loss.source_id for loss in reader.lost] == [f"{index.name}[0]"]
    assert "created again" in reader.lost[0].why
    assert [text for text in dict.fromkeys(texts(reader)) if text.startswith("new")] == [f"new {n}" for n in range(30)]


@pytest.mark.parametrize("node", ["elasticsearch", "old_elasticsearch"])
def test_a_snapshot_that_is_restored_over_an_index_is_read_anew(node: str, request: pytest.FixtureRequest) -> None:
    index = Index(request.getfixturevalue(node), shards=2)
    index.say(*(f"old {n}" for n in range(20)))
    index.snapshot()
    index.say(*(f"gone {n}" for n in range(20)))
    reader = Reader(index.source()).drain()
    index.say(*(f"unread {n}" for n in range(10)))
    reader.max_lines = 4
    assert reader.batch(), "so that it is known that there is more"
    uuid = index.call("GET", "_settings")[index.name]["settings"]["index"]["uuid"]
    index.restore()
    assert index.call("GET", "_settings")[index.name]["settings"]["index"]["uuid"] == uuid
    index.say(*(f"new {n}" for n in range(25)))
    reader.max_lines = None
    reader.drain()
    assert {f"new {n}" for n in range(25)} <= set(texts(reader)), "their numbers were read before, of other documents"
    assert {loss.source_id for loss in reader.lost} <= {f"{index.name}[0]", f"{index.name}[1]"}
    assert all("rewound" in loss.why for loss in reader.lost)
    unread = [text for text in texts(reader) if text.startswith("unread")]
    lost = sum(loss.lost_to - loss.lost_from for loss in reader.lost)
    assert lost <= 10 - len(unread), "what was read is not lost"
    source_module._MEMORIES.clear()
    assert sorted(texts(Reader(index.source()).drain())) == sorted(
        [f"old {n}" for n in range(20)] + [f"new {n}" for n in range(25)]
    )


def _after_pages(monkeypatch: pytest.MonkeyPatch, count: int, act: Any) -> None:
    """Let something happen once so many pages were read."""
    pages, whole = iter(range(count)), SearchCluster.shard_page

    def page(self: SearchCluster, *arguments: Any) -> Any:
        if next(pages, None) is None:
            monkeypatch.setattr(SearchCluster, "shard_page", whole)
            act()
        return whole(self, *arguments)

    monkeypatch.setattr(SearchCluster, "shard_page", page)


def test_an_update_is_read_again_only_when_the_line_has_changed(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    index.write([{"message": f"line {n}", "@timestamp": "2026-01-01T00:00:00Z"} for n in range(3)], ids=["0", "1", "2"])
    reader = Reader(index.source()).drain()
    index.call("POST", "_update/1", {"doc": {"labels": {"seen": "yes"}}})
    index.call("POST", "_update/2", {"doc": {"message": "line 2, corrected"}})
    index.call("DELETE", "_doc/0")
    reader.drain()
    assert texts(reader) == ["line 0", "line 1", "line 2", "line 2, corrected"]
    assert reader.contiguous()


def test_a_batch_that_is_read_again_is_the_same(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch, shards=2)
    index.say(*(f"line {n}" for n in range(40)))
    for by in ("sequence", "timestamp"):
        source = index.source(read_by=by)
        start = source.initial()
        end = source.latest(start)
        read = [
            [(each.offset, each.data) for slice_ in source.partitions(start, end) for each in source.chunks(slice_)]
            for _ in "ab"
        ]
        assert read[0] == read[1]
        assert sum(data.count(b"\n") for _, data in read[0]) == 40


def test_a_closed_index_keeps_its_place_and_is_read_on_when_it_is_opened(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    index.say("one", "two")
    reader = Reader(index.source()).drain()
    index.say("three")
    index.call("POST", "_close")
    assert not reader.batch()
    found = index.source().look()
    assert found.choice.warnings == (f"{index.name} is closed and not read",)
    index.call("POST", "_open?wait_for_active_shards=1")
    reader.drain()
    assert texts(reader) == ["one", "two", "three"]
    assert reader.lost == []


def test_an_index_that_no_node_has_now_is_not_lost_and_what_others_have_is_read(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    index.write([{"message": "one"}], index=f"{index.name}-1")
    index.write([{"message": "two"}], index=f"{index.name}-2")
    reader = Reader(index.source()).drain()
    index.call("POST", "_close", index=f"{index.name}-1")
    index.call("PUT", "_settings", {"index.routing.allocation.require._name": "nobody"}, index=f"{index.name}-1")
    index.call("POST", "_open?wait_for_active_shards=0", index=f"{index.name}-1")
    index.write([{"message": "three"}], index=f"{index.name}-2")
    reader.drain()
    assert texts(reader) == ["one", "two", "three"]
    index.call("PUT", "_settings", {"index.routing.allocation.require._name": None}, index=f"{index.name}-1")
    elasticsearch.call("GET", f"/_cluster/health/{index.name}-1?wait_for_status=green&timeout=30s")
    index.write([{"message": "four"}], index=f"{index.name}-1")
    reader.drain()
    assert texts(reader) == ["one", "two", "three", "four"]
    assert reader.lost == []


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("latest", 30), ("2022-10-05T12:00:00.001Z", 10)])
@pytest.mark.parametrize("by", ["sequence", "timestamp"])
def test_a_first_run_starts_where_it_is_told_to(
    elasticsearch: ElasticsearchNode, by: str, start: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)
    index = Index(elasticsearch, shards=2)
    index.write(map(filebeat, numbered(30)))
    index.call("POST", "_refresh")
    reader = Reader(index.source(start=start, read_by=by))
    reader.drain()
    assert sorted(texts(reader), key=lambda text: int(text.split()[1])) == [f"line {n}" for n in range(first, 30)]


def test_a_query_selects_and_its_holes_are_not_waited_for(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch, shards=2)
    index.say(*(f"{'kafka' if n % 10 == 0 else 'other'} {n}" for n in range(100)))
    for by in ("sequence", "timestamp"):
        reader = Reader(index.source(query={"match_phrase": {"message": "kafka"}}, read_by=by), 13).drain()
        assert sorted(texts(reader)) == sorted(f"kafka {n}" for n in range(0, 100, 10))
        assert reader.contiguous()


def test_what_selects_nothing_is_said_before_the_run(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    nothing = {"term": {"event.dataset": "nothing"}}
    assert index.source(query=nothing).look().choice.warnings == (
        "there is no index yet; check `indices`, and the privilege `view_index_metadata`",
    )
    index.say("one", "two")
    index.call("POST", "_refresh")
    assert index.source(query=nothing).look().choice.warnings == ("the query selects none of the 2 documents; check `query`",)
    assert index.source().look().choice.warnings == ()


def test_an_alias_leads_to_its_indices(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    index.write([{"message": "one"}], index=f"{index.name}-1")
    index.write([{"message": "two"}], index=f"{index.name}-2")
    elasticsearch.call("POST", "/_aliases", {"actions": [{"add": {"index": f"{index.name}-*", "alias": f"all-{index.name}"}}]})
    source = index.source(indices=f"all-{index.name}", labels={"place": "{index}"})
    lines = Reader(source).drain().raw()
    assert sorted((json.loads(line.value)["message"], line.labels["place"]) for line in lines) == [
        ("one", f"{index.name}-1"),
        ("two", f"{index.name}-2"),
    ]


def test_labels_are_made_of_fields(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    index.say("one", kubernetes={"namespace": "shop"}, **{"orchestrator.cluster.name": "eu"})
    labels = {
        "cluster": "prod",
        "namespace": "{field:kubernetes.namespace}",
        "where": "{field:orchestrator.cluster.name}-{host}",
    }
    (line,) = Reader(index.source(labels={**labels, "none": "{field:nowhere}"})).drain().raw()
    assert line.labels == {"host": "h", "cluster": "prod", "namespace": "shop", "where": "eu-h"}


def test_logsdb_is_read_as_any_other(elasticsearch: ElasticsearchNode) -> None:
    if not elasticsearch.home.has_zstd:
        pytest.skip("this machine has no zstd, which an index in the mode logsdb needs")
    index = Index(elasticsearch, shards=2, stream=True, mode="logsdb")
    index.write({**filebeat(line), "host.name": line.host} for line in numbered(60))
    reader = Reader(index.source()).drain()
    assert sorted(texts(reader)) == sorted(f"line {n}" for n in range(60))


def test_without_the_privilege_to_refresh_it_lags_and_misses_nothing(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any) -> None:
        raise sequence.SourceDenied("may not")

    monkeypatch.setattr(SearchCluster, "refresh", denied)
    index = Index(elasticsearch, refresh_interval="1s")
    index.say("one")
    source = index.source()
    found = source.look()
    assert found.choice.strategy == "sequence"
    assert found.choice.warnings == (
        "the privilege `maintenance` is missing: lines are read 3 s late, once they are visible by themselves",
    )
    now, waited = [100.0], list[float]()
    watch = source._reading("sequence")._watch  # type: ignore[union-attr]
    watch._clock, watch._sleep = lambda: now[0], waited.append
    reader = Reader(source)
    assert waited == [3.0], "so that it is known what was there before the start"
    elasticsearch.call("POST", f"/{index.name}/_refresh")  # as time does
    assert texts(reader.drain()) == ["one"]
    index.say("two")
    for now[0] in (101.0, 102.0, 103.5):
        assert not reader.batch(), "what a checkpoint of just now counts may not be visible"
    elasticsearch.call("POST", f"/{index.name}/_refresh")
    now[0] = 104.5
    assert texts(reader.drain()) == ["one", "two"]


def test_incidents_that_lie_beside_the_logs_are_passed_over_and_that_is_said(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)
    index = Index(elasticsearch)
    index.say("one", event={"dataset": "kafka.log"})
    archive, changes = f"{index.name}-tocsin-incidents", f"{index.name}-tocsin-changes"
    receiver = open_receiver(ElasticsearchConnection((elasticsearch.url,)), archive, changes)
    told = incident(id="inc-1")
    notification = Notification(told, Reason.OPENED, changes=(IncidentChange(told, Reason.OPENED),))
    assert receiver.deliver(notification).state is DeliveryState.DELIVERED
    for name in (index.name, archive, changes):
        index.call("POST", "_refresh", index=name)
    assert index.source().look().choice.warnings == ("2 incidents that a tocsin wrote are skipped: they are not logs",)
    assert index.source().look(written=(archive, "elsewhere")).choice.warnings == (
        f"the incidents that tocsin writes to {archive} are skipped: they are not logs",
    )
    for by in ("sequence", "timestamp"):
        reader = Reader(index.source(read_by=by)).drain()
        assert texts(reader) == ["one"]
        assert reader.contiguous()


def test_a_pattern_that_leads_nowhere_is_waited_for_or_missing(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    with pytest.raises(SourceMissing, match=r"matches no index; check `indices`"):
        index.source(final=True).initial()
    source = index.source(start="latest")
    start = source.initial()
    with pytest.raises(SourceAway, match="matches no index"):
        source.latest(start)
    index.say("one")
    reader = Reader(source)
    reader.at = start
    assert texts(reader.drain()) == ["one"], "an index that appears later is read from its beginning"


def test_a_node_that_does_not_answer_is_away_and_asked_again(
    elasticsearch: ElasticsearchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "REST_S", 0.0)
    source = Index(elasticsearch).source(connection={"urls": ["http://127.0.0.1:9"]})
    with pytest.raises(SourceAway, match=r"Elasticsearch at 127\.0\.0\.1:9 cannot be reached \(ConnectionRefusedError\)"):
        source.initial()


def test_the_offset_of_many_indices_stays_small(elasticsearch: ElasticsearchNode) -> None:
    index = Index(elasticsearch)
    for n in range(3):
        index.write([{"message": "one"}], index=f"{index.name}-kafka-default-2026.11.26-0000{n:02}")
    reader = Reader(index.source()).drain()
    index.write([{"message": "two"}], index=f"{index.name}-kafka-default-2026.11.26-000000")
    reader.drain()
    assert len(json.dumps(reader.at)) < 3 * 40 + 200


@pytest.mark.parametrize("by", ["sequence", "timestamp"])
def test_the_major_version_before_is_read_alike(
    old_elasticsearch: ElasticsearchNode, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)
    index = Index(old_elasticsearch, shards=2, stream=True)
    index.write(map(filebeat, numbered(50)))
    index.rollover()
    index.write(map(filebeat, numbered(50, 50)))
    index.call("POST", "_refresh")
    found = index.source().look()
    assert (found.choice.strategy, str(found.cluster.server)) == ("sequence", f"Elasticsearch {old_elasticsearch.version}")
    reader = Reader(index.source(read_by=by), 30).drain()
    assert sorted(texts(reader)) == sorted(f"line {n}" for n in range(100))
    assert reader.contiguous()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("node", ["elasticsearch", "old_elasticsearch"])
def test_what_stands_around_a_line_is_read_again_until_its_document_is_deleted(
    node: str, shape: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    shards = 1 if shape == "Fluent Bit" else 2  # it does not write where in its file a line stands
    index = Index(request.getfixturevalue(node), shards=shards, stream=True)
    now = datetime.now(UTC).replace(microsecond=0)
    lines = [Line("h", "a.log", f"[{now:%Y-%m-%d %H:%M:%S},{n:03}] INFO line {n} (x)", n * 99, n, now) for n in range(60)]
    index.write(_documents(shape, lines[:30], "other"))
    index.write(_documents(shape, lines[:30]))
    index.rollover()
    index.write(_documents(shape, lines[30:]))
    index.call("POST", "_refresh")
    raw = Reader(index.source()).drain().raw()
    (own,) = [line for line in raw if line.source_id.endswith("/h:a.log") and b"line 31 " in line.value]
    when, text = now + timedelta(milliseconds=31), lines[31].text
    evidence = Evidence(event_id(own.source_id, when, text, None), own.source_id, 0, when, text, own.origin)
    config = tmp_path / "tocsin.yml"
    query = {"exists": {"field": "@timestamp"}}
    source = {"type": "elasticsearch", "url": index.node.url, "indices": [f"{index.name}*"], "query": query}
    config.write_text(json.dumps({"sources": [source], "store": f"sqlite:///{tmp_path}/tocsin.db"}))
    reader = InputReader(load(config))
    assert reader.may_read(evidence)
    before, after = ([each.text for each in part] for part in (lines[26:31], lines[32:37]))
    assert reader.neighbours(evidence) == Neighbours(tuple(before), tuple(after))
    index.call("DELETE", f"_doc/{own.origin.rpartition('/')[2]}?refresh=true", index=index.indices()[-1])
    with pytest.raises(SourceMissing, match="The document of the line is not in"):
        InputReader(load(config)).neighbours(evidence)


def _documents(shape: str, lines: list[Line], host: str = "h") -> list[Mapping[str, Any]]:
    return [SHAPES[shape](Line(host, line.file, line.text, line.offset, line.number, line.written)) for line in lines]
