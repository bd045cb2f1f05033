"""Incidents in a real Elasticsearch: one document each, the newest wins, nothing holds up and nothing is written twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

import pytest
from msgspec.structs import replace

from connectors.elasticsearch.connection import ElasticsearchConnection, open_client
from connectors.elasticsearch.incidents.receiver import ElasticsearchReceiver
from engine.model.incidents import Incident
from engine.model.links import Link
from engine.model.notifications import DeliveryState, IncidentChange, Notification, Reason, Receipt
from tests.servers.elasticsearch import ElasticsearchNode
from tests.unit.cli.incidents import incident

NOW = datetime(2023, 2, 3, 4, 0, tzinfo=UTC)
PAGE = Link("incident", "https://tocsin.example/incidents/inc-1")


class Archive:
    """A receiver over indices of its own, and what is in them."""

    def __init__(self, node: ElasticsearchNode, name: str, retention_s: float = 0.0) -> None:
        self.node, self.index, self.changes_index = node, f"{name}-incidents", f"{name}-changes"
        self.now, self.retention_s = NOW, retention_s
        self.client = open_client(ElasticsearchConnection((node.url,)))
        self.restart()

    def restart(self) -> None:
        self.receiver = ElasticsearchReceiver(
            self.client, "es", self.index, self.changes_index, self.retention_s, lambda: self.now
        )

    def tell(self, told: Incident, *changes: IncidentChange) -> Receipt:
        self.now += timedelta(seconds=1)
        return self.receiver.deliver(Notification(told, Reason.UPDATED, links=(PAGE,), changes=changes))

    def documents(self, index: str = "") -> dict[str, dict[str, object]]:
        self.client.indices.refresh(index=index or self.index)
        hits = self.client.search(index=index or self.index, size=1000)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


@pytest.fixture
def archive(elasticsearch: ElasticsearchNode, request: pytest.FixtureRequest) -> Iterator[Archive]:
    made = Archive(elasticsearch, request.node.name.replace("_", "-").lower()[:80])
    yield made
    made.client.close()


def test_an_incident_is_one_document_that_the_newest_revision_replaces(archive: Archive) -> None:
    first, second = incident(id="inc-1"), incident(id="inc-1", revision=3, status="resolved", resolved_at=NOW)
    for told in (first, second, second):
        assert archive.tell(told) == Receipt(DeliveryState.DELIVERED)
    ((id_, document),) = archive.documents().items()
    assert id_ == "inc-1" and document["tocsin"]["incident"]["status"] == "resolved"  # type: ignore[index]
    assert document["event"]["duration"] == 6_897_715_000_000  # type: ignore[index]


def test_an_attempt_that_comes_late_replaces_nothing(archive: Archive) -> None:
    archive.tell(incident(id="inc-1", revision=2))
    archive.now -= timedelta(minutes=1)
    late = ElasticsearchReceiver(archive.client, "es", archive.index, now=iter([archive.now, NOW + timedelta(1)]).__next__)
    told = Notification(incident(id="inc-1", revision=1, status="retracted"), Reason.UPDATED)
    assert late.deliver(told) == Receipt(DeliveryState.DELIVERED)
    assert archive.documents()["inc-1"]["event"]["sequence"] == 2  # type: ignore[index]


def test_a_clock_that_was_ahead_holds_up_no_later_revision(archive: Archive) -> None:
    archive.now += timedelta(days=400)
    archive.tell(incident(id="inc-1", revision=2))
    archive.now -= timedelta(days=400)
    for revision in (3, 4):
        assert archive.tell(incident(id="inc-1", revision=revision)).state is DeliveryState.DELIVERED
        assert archive.documents()["inc-1"]["event"]["sequence"] == revision  # type: ignore[index]


def test_changes_have_a_document_each_however_often_they_are_told(archive: Archive) -> None:
    one, two = incident(id="inc-1", revision=1), incident(id="inc-1", revision=5, severity="low")
    changes = (IncidentChange(one, Reason.OPENED), IncidentChange(two, Reason.UPDATED, "severity is low now, was critical"))
    archive.tell(two, *changes)
    archive.restart()
    archive.tell(two, *changes)
    documents = archive.documents(archive.changes_index)
    assert {id_: document["event"]["action"] for id_, document in documents.items()} == {  # type: ignore[index]
        "inc-1-1": "opened",
        "inc-1-5": "updated",
    }


def test_fields_are_mapped_as_the_template_says_for_an_index_that_was_removed_meanwhile_too(archive: Archive) -> None:
    archive.tell(incident(id="inc-1"))
    archive.client.indices.delete(index=archive.index)
    archive.tell(incident(id="inc-2", labels={"cluster": "prod", "a.b": "c", "number": "12"}))
    (mapped,) = archive.client.indices.get_mapping(index=archive.index).body.values()
    properties = mapped["mappings"]["properties"]
    assert properties["event"]["properties"]["start"] == {"type": "date"}
    assert {name: each["type"] for name, each in properties["labels"]["properties"].items()} == {
        "cluster": "keyword",
        "a_b": "keyword",
        "number": "keyword",
    }
    assert "captures" not in properties and archive.node.call("GET", f"/{archive.index}/_count")["count"] in (0, 1)


def test_a_mapping_that_cannot_take_it_is_refused_and_the_next_is_written(archive: Archive) -> None:
    archive.node.call(
        "PUT", f"/{archive.index}", {"mappings": {"properties": {"labels": {"properties": {"broker": {"type": "long"}}}}}}
    )
    receipt = archive.tell(incident(id="inc-1", labels={"broker": "kafka-0.kafka"}))
    assert receipt.state is DeliveryState.REJECTED
    assert f"the index {archive.index} cannot take the document" in receipt.why
    assert "labels.broker" in receipt.why and "name another index" in receipt.why
    assert archive.tell(incident(id="inc-2", labels={"broker": "1"})).state is DeliveryState.DELIVERED
    assert list(archive.documents()) == ["inc-2"]


def test_an_index_that_may_not_be_written_to_is_tried_again(archive: Archive) -> None:
    archive.tell(incident(id="inc-1"))
    block = f"/{archive.index}/_settings"
    archive.node.call("PUT", block, {"index.blocks.read_only_allow_delete": True})  # as a full disk does
    receipt = archive.tell(incident(id="inc-1", revision=3))
    assert receipt.state is DeliveryState.RETRY_LATER and "block" in receipt.why
    archive.node.call("PUT", block, {"index.blocks.read_only_allow_delete": None})
    assert archive.tell(incident(id="inc-1", revision=3)).state is DeliveryState.DELIVERED


def test_what_is_over_is_removed_after_its_time_and_what_is_open_stays(archive: Archive) -> None:
    archive.tell(incident(id="inc-open"))
    archive.tell(
        incident(id="inc-over", status="resolved", resolved_at=NOW), IncidentChange(incident(id="inc-over"), Reason.OPENED)
    )
    archive.documents(), archive.documents(archive.changes_index)
    archive.retention_s = 3600.0
    archive.restart()
    archive.now += timedelta(hours=2)
    archive.tell(incident(id="inc-new", status="resolved", resolved_at=NOW))
    assert sorted(archive.documents()) == ["inc-new", "inc-open"]
    assert archive.documents(archive.changes_index) == {}


def test_a_test_message_leaves_nothing(archive: Archive) -> None:
    assert archive.receiver.deliver(Notification(incident(id="test-1"), Reason.TEST)).state is DeliveryState.DELIVERED
    assert archive.documents() == {}


def test_the_template_of_others_does_not_matter(archive: Archive) -> None:
    body = {
        "index_patterns": [f"{archive.index}*"],
        "priority": 300,
        "template": {"mappings": {"properties": {"event": {"type": "keyword"}}}},
    }
    archive.node.call("PUT", f"/_index_template/{archive.index}-others", body)
    try:
        assert archive.tell(incident(id="inc-1")).state is DeliveryState.DELIVERED
        assert archive.documents()["inc-1"]["event"]["kind"] == "alert"  # type: ignore[index]
    finally:
        archive.node.call("DELETE", f"/_index_template/{archive.index}-others")


def test_a_document_is_found_by_what_people_look_for(archive: Archive) -> None:
    archive.tell(replace(incident(id="inc-1"), labels={"cluster": "prod", "broker": "3", "topic": "a"}))
    archive.documents()
    asked = {"query": {"bool": {"filter": [{"term": {field: value}} for field, value in {
        "kafka.broker.id": "3",
        "kafka.topic.name": "a",
        "labels.cluster": "prod",
        "rule.id": "connect-record-too-large-client",
        "tocsin.incident.is_open": True,
        "event.severity": 5,
    }.items()]}}}  # fmt: skip
    try:
        found = archive.node.call("POST", f"/{archive.index}/_search", asked)
    except HTTPError as error:
        raise AssertionError(error.read()) from error
    (hit,) = found["hits"]["hits"]
    assert hit["_source"]["event"]["url"] == PAGE.url
