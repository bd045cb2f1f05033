"""The oldest Elasticsearch and both OpenSearch that are supported: read by every strategy, and written to."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from connectors.elasticsearch import by_time, timed
from connectors.elasticsearch import source as source_module
from connectors.elasticsearch.connection import ElasticsearchConnection
from connectors.elasticsearch.incidents.receiver import open_receiver
from engine.model.incidents import Incident
from engine.model.notifications import DeliveryState, IncidentChange, Notification, Reason
from tests.servers.batches import Reader
from tests.servers.elasticsearch import ElasticsearchNode, elasticsearch_node
from tests.servers.indexing import Index, filebeat
from tests.servers.jars import NoJars
from tests.servers.search_home import OLD_OPENSEARCH, OLDEST, OPENSEARCH, SearchVersion, search_home
from tests.servers.test_elasticsearch_source import numbered, texts
from tests.unit.cli.incidents import incident

pytestmark = pytest.mark.long  # three more servers to fetch and start: make soak


@pytest.fixture(scope="module", params=[OLDEST, OLD_OPENSEARCH, OPENSEARCH], ids=str)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchNode]:
    version: SearchVersion = request.param
    try:
        home = search_home(version)
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(missing))
    with elasticsearch_node(home, tmp_path_factory.mktemp(version.name)) as running:
        yield running


@pytest.mark.parametrize("by", ["sequence", "ingested", "timestamp"])
def test_every_strategy_reads_it(node: ElasticsearchNode, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)
    monkeypatch.setattr(timed, "PAGE", 7)
    index = Index(node, shards=2, refresh_interval="30s")
    for part in (0, 1):
        documents = [{**filebeat(line), "event": {"ingested": line.read_at}} for line in numbered(50, 50 * part)]
        index.write(documents, index=f"{index.name}-{part}")
        index.call("POST", "_refresh", index=f"{index.name}-{part}")
    found = index.source().look()
    assert (found.choice.strategy, str(found.cluster.server)) == ("sequence", str(node.home.version))
    reader = Reader(index.source(read_by=by), 30).drain()
    assert sorted(texts(reader)) == sorted(f"line {n}" for n in range(100))
    assert reader.contiguous()
    index.write(map(filebeat, numbered(1, 100)), index=f"{index.name}-1")
    if by == "sequence":
        assert texts(reader.drain())[-1] == "line 100", "that was not refreshed"


def test_a_snapshot_that_is_restored_over_an_index_is_read_anew(node: ElasticsearchNode) -> None:
    index = Index(node)
    index.say("old")
    index.snapshot()
    index.say("gone")
    reader = Reader(index.source()).drain()
    index.restore()
    index.say("new")
    source_module._MEMORIES.clear()
    assert texts(reader.drain()) == ["old", "gone", "old", "new"]


def test_incidents_are_written_to_it(node: ElasticsearchNode) -> None:
    receiver = open_receiver(ElasticsearchConnection((node.url,)), "tocsin-incidents", "tocsin-changes", 3600.0)
    assert receiver.deliver(Notification(incident(id="test-1"), Reason.TEST)).state is DeliveryState.DELIVERED
    for told in (incident(id="inc-1", revision=1), incident(id="inc-1", revision=2)):
        assert receiver.deliver(_notification(told)).state is DeliveryState.DELIVERED
    for name, ids in (("tocsin-incidents", ["inc-1"]), ("tocsin-changes", ["inc-1-1", "inc-1-2"])):
        node.call("POST", f"/{name}/_refresh")
        hits = node.call("GET", f"/{name}/_search?size=10")["hits"]["hits"]
        assert sorted(hit["_id"] for hit in hits) == ids


def _notification(told: Incident) -> Notification:
    return Notification(told, Reason.UPDATED, changes=(IncidentChange(told, Reason.UPDATED),))
