"""The connection over real servers of two major versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from connectors.elasticsearch.connection import ElasticsearchConnection, TransportError, explained, is_passing, open_client
from tests.servers.elasticsearch import ElasticsearchNode, elasticsearch_node
from tests.servers.jars import NoJars
from tests.servers.search_home import OLD, search_home


def write_and_read(node: ElasticsearchNode, index: str) -> str:
    """Write a document, find it, and return the server's version."""
    client = open_client(ElasticsearchConnection((node.url,)))
    client.bulk(operations=[{"index": {"_index": index, "_id": "1"}}, {"n": 1}], refresh=True)
    hits = client.search(index=index, query={"match_all": {}})["hits"]["hits"]
    assert [hit["_source"] for hit in hits] == [{"n": 1}]
    version = str(client.info()["version"]["number"])
    client.close()
    return version


def test_the_newest_server_is_spoken_to(elasticsearch: ElasticsearchNode) -> None:
    assert write_and_read(elasticsearch, "tests-connection") == elasticsearch.version


@pytest.mark.slow
def test_an_older_major_version_is_spoken_to_and_what_it_holds_outlives_it(tmp_path: Path) -> None:
    try:
        home = search_home(OLD)
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(missing))
    with elasticsearch_node(home, tmp_path) as node:
        assert write_and_read(node, "tests-connection") == OLD.number
        node.kill()
        client = open_client(ElasticsearchConnection((node.url,)))
        with pytest.raises(TransportError) as raised:
            client.info()
        assert is_passing(raised.value) and "cannot be reached" in explained(raised.value, node.url)
        node.start()
        assert client.get(index="tests-connection", id="1")["_source"] == {"n": 1}
        client.close()
