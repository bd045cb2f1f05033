"""Nothing is concluded from an answer in part, each refusal is told for what it is; OpenSearch is asked at its addresses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.elasticsearch import cluster, open_source, paging
from connectors.elasticsearch.cluster import IndexGone, PitLost, SearchCluster
from connectors.elasticsearch.facts import IndexFacts
from connectors.elasticsearch.offsets import SequenceRange
from connectors.elasticsearch.sequence import ShardReader
from engine.errors import SourceAway, SourceDenied, SourceError
from tests.servers.batches import Reader
from tests.unit.connectors.answering import Answer, AnsweringServer, Asked, answering

HIT = {"_index": "logs-1", "_id": "a", "_seq_no": 0, "_source": {"message": "one"}, "sort": [0]}
PARTIAL = {
    "timed_out": False,
    "_shards": {"total": 2, "failed": 1, "failures": [{"reason": {"type": "task_cancelled_exception", "reason": "cancelled"}}]},
    "hits": {"hits": [HIT]},
}


def refused(kind: str, status: int) -> Answer:
    cause = {"type": kind, "reason": f"{kind} of a test"}
    return Answer({"error": {**cause, "root_cause": [cause]}, "status": status}, status)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "REST_S", 0.0)
    monkeypatch.setattr(paging, "RETRY_AFTER_S", 0.0)


def asked(server: AnsweringServer) -> SearchCluster:
    return SearchCluster.of({"urls": [server.url]})


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (Answer(PARTIAL), SourceAway, "has answered in part only: 1 shards have failed: cancelled"),
        (Answer({"timed_out": True, "hits": {"hits": [HIT]}}), SourceAway, "the search was ended by its time-out"),
        (refused("task_cancelled_exception", 400), SourceAway, "task_cancelled_exception of a test"),
        (refused("index_closed_exception", 400), SourceAway, "index_closed_exception of a test"),
        (refused("search_phase_execution_exception", 503), SourceAway, "search_phase_execution_exception of a test"),
        (refused("circuit_breaking_exception", 429), SourceAway, "is overloaded"),
        (refused("index_not_found_exception", 404), IndexGone, "index_not_found_exception of a test"),
        (refused("search_context_missing_exception", 404), PitLost, "search_context_missing_exception of a test"),
        (refused("security_exception", 403), SourceDenied, "does not allow it"),
        (refused("security_exception", 401), SourceDenied, "does not accept the credentials"),
        (refused("parsing_exception", 400), SourceError, "parsing_exception of a test"),
        (Answer("<html>nothing here</html>"), SourceError, "is not Elasticsearch"),
        (Answer([1, 2]), SourceError, "is not Elasticsearch"),
    ],
)
def test_an_answer_is_told_for_what_it_is(answer: Answer, error: type[Exception], why: str) -> None:
    with answering(lambda _: answer) as server, pytest.raises(error, match=why) as caught:
        asked(server).shard_page("logs-1", 0, {"size": 10})
    assert type(caught.value) is error


def test_a_page_that_a_reader_waits_for_may_be_late_sooner() -> None:
    go_on = threading.Event()

    def late(_: Asked) -> Answer:
        go_on.wait(20)
        return Answer({"hits": {"hits": [HIT]}})

    with answering(late) as server:
        with pytest.raises(SourceAway, match="does not answer in time"):
            asked(server).page({"size": 1}, "logs-1", 0.2)
        go_on.set()
        assert [hit.id for hit in asked(server).page({"size": 1}, "logs-1", 5.0).hits] == ["a"]


def test_a_page_that_was_answered_in_part_is_asked_for_again_and_not_used() -> None:
    answers = iter([Answer(PARTIAL), Answer(PARTIAL), Answer({"hits": {"hits": [HIT]}})])
    with answering(lambda _: next(answers)) as server:
        (page,) = ShardReader(asked(server), None).pages(SequenceRange("logs-1", "x", 0, -1, 0))
        assert [hit.id for hit in page] == ["a"]  # type: ignore[union-attr]
    with answering(lambda _: Answer(PARTIAL)) as server, pytest.raises(SourceAway):
        list(ShardReader(asked(server), None).pages(SequenceRange("logs-1", "x", 0, -1, 0)))
    assert len(server.asked) == paging.TRIES


def test_who_does_not_answer_is_not_asked_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "REST_S", 60.0)
    with answering(lambda _: Answer({})) as server:
        one = asked(server)
    for _ in range(2):
        with pytest.raises(SourceAway, match="cannot be reached"):
            one.server()
    assert server.asked == []


class OpenSearch:
    """Answers as OpenSearch 2.19 does, as far as a source asks; what is not known is refused."""

    def __init__(self) -> None:
        self.closed: list[Any] = []
        self.searched: list[Any] = []

    def __call__(self, request: Asked) -> Answer:
        path, _, _ = request.path.partition("?")
        if "vnd.elasticsearch" in request.headers.get("accept", "") + request.headers.get("content-type", ""):
            return refused("media_type_header_exception", 406)
        answers: dict[tuple[str, str], Callable[[Any], Any]] = {
            ("GET", "/"): lambda _: {"version": {"number": "2.19.1", "distribution": "opensearch"}},
            ("POST", "/logs-*/_search/point_in_time"): lambda _: {"pit_id": "pit-1", "creation_time": 1},
            ("POST", "/_search"): self.search,
            ("DELETE", "/_search/point_in_time"): self.close,
            ("POST", "/logs-*/_search"): lambda _: {"hits": {"total": {"value": 1}, "hits": [HIT_OF_TIME]}},
        }
        answer = answers.get((request.method, path))
        return refused("unknown", 400) if answer is None else Answer(answer(json.loads(request.body or b"null")))

    def search(self, body: Any) -> Any:
        self.searched.append(body)
        return {"pit_id": "pit-1", "hits": {"hits": [HIT_OF_TIME]}}

    def close(self, body: Any) -> Any:
        self.closed.append(body)
        return {"pits": []}


HIT_OF_TIME = {"_index": "logs-1", "_id": "a", "_source": {"message": "one"}, "sort": ["2026-01-01T00:00:00.000Z"]}


@pytest.fixture
def opensearch() -> Iterator[tuple[AnsweringServer, OpenSearch]]:
    model = OpenSearch()
    with answering(model) as server:
        yield server, model


def test_opensearch_has_points_in_time_at_another_address(opensearch: tuple[AnsweringServer, OpenSearch]) -> None:
    server, model = opensearch
    settings = {"connection": {"urls": [server.url]}, "indices": "logs-*", "read_by": "timestamp", "final": True}
    source = open_source(settings)
    start = {"by": "timestamp", "to": 0, "swept": 0, "floor": 0}
    end = source.latest(start)
    lines = [
        line.value for slice_ in source.partitions(start, end) for chunk in source.chunks(slice_) for line in chunk.lines()
    ]
    assert lines == [b'{"message": "one"}']
    (body,) = model.searched
    assert body["pit"] == {"id": "pit-1", "keep_alive": "2m"}
    assert body["sort"][1:] == [{"_id": "asc"}]
    assert model.closed == [{"pit_id": ["pit-1"]}]


def test_an_index_is_known_by_its_uuid_and_its_primaries_tell_the_checkpoints() -> None:
    copies = {
        "0": [
            {"routing": {"primary": False}, "seq_no": {"global_checkpoint": 3}},
            {"routing": {"primary": True}, "seq_no": {"global_checkpoint": 7}},
        ],
        "2": [{"routing": {"primary": True}}],
    }
    with answering(lambda _: Answer({"indices": {"logs-1": {"uuid": "u", "shards": copies}}})) as server:
        (one,) = asked(server).checkpoints("logs-*", lambda name, uuid: IndexFacts(name, uuid, shards=3))
    assert (one.name, one.uuid, one.at) == ("logs-1", "u", (7, None, None))
    assert server.asked[0].path.startswith("/logs-*/_stats/docs?level=shards&ignore_unavailable=true")


def test_a_source_passes_over_what_it_may_not_see_and_says_so() -> None:
    """A key without `monitor`: what there is cannot be read by numbers."""

    def answer(request: Asked) -> Answer:
        path = request.path.partition("?")[0]
        if path == "/":
            return Answer({"version": {"number": "8.19.4"}})
        if path.endswith("/_search"):
            return Answer({"hits": {"total": {"value": 0}, "hits": []}})
        return refused("security_exception", 403)

    with answering(answer) as server:
        found = open_source({"connection": {"urls": [server.url]}, "indices": "logs-*"}).look()
        assert found.choice.strategy == "timestamp"
        assert "the privilege `monitor` is missing" in found.choice.reason
        assert "WILL BE MISSED" in found.choice.sentence
        reader = Reader(open_source({"connection": {"urls": [server.url]}, "indices": "logs-*", "start": "latest"}))
        assert not reader.batch()


def test_a_key_that_is_refused_is_waited_for_and_read_anew(tmp_path: Path) -> None:
    """A key that is replaced while a run goes on: it is away until the new one is in its file."""
    key = tmp_path / "key"
    key.write_text("old")

    def answer(request: Asked) -> Answer:
        if request.headers.get("authorization") != "ApiKey new":
            return refused("security_exception", 401)
        return Answer({"indices": {}} if "_stats" in request.path else {})

    with answering(answer) as server:
        connection = {"urls": [server.url], "api_key": f"file:{key}"}
        source = open_source({"connection": connection, "indices": "logs-*"})
        start = {"by": "sequence", "indices": {"x": [[3]]}}
        with pytest.raises(SourceAway, match="does not accept the credentials"):
            source.latest(start)
        key.write_text("new")
        with pytest.raises(SourceAway, match="does not accept the credentials"):
            source.latest(start)
        with pytest.raises(SourceAway, match="matches no index"):
            source.latest(start)
        with pytest.raises(SourceDenied):
            key.write_text("worse")
            SearchCluster.of(connection)._connect()
            open_source({"connection": connection, "indices": "logs-*", "final": True}).latest(start)


def test_an_index_without_sequence_numbers_is_passed_over_and_named() -> None:
    def answer(request: Asked) -> Answer:
        if "_stats" in request.path:
            shards = {"0": [{"routing": {"primary": True}, "seq_no": {"global_checkpoint": 4}}]}
            return Answer({"indices": {"logs-1": {"uuid": "u1", "shards": shards}, "logs-2": {"uuid": "u2", "shards": shards}}})
        if "_settings" in request.path:
            plain, without = {"index.uuid": "u1"}, {"index.uuid": "u2", "index.disable_sequence_numbers": "true"}
            return Answer({"logs-1": {"settings": plain}, "logs-2": {"settings": without}})
        return Answer({"_shards": {}})

    with answering(answer) as server:
        source = open_source({"connection": {"urls": [server.url]}, "indices": "logs-*"})
        end = source.latest({"by": "sequence"})
        assert {name: position[0] for name, position in end["indices"].items()} == {"u1": [4]}
        ((name, error),) = source.unreadable().items()
    assert name == "logs-2"
    assert "read it by time with `read_by: ingested`" in str(error)
