"""`tocsin prove` beside a run over a real broker and a real Elasticsearch: through topics and indices to a receiver."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct

from connectors.elasticsearch.connection import ElasticsearchConnection
from connectors.elasticsearch.proving import put_document
from engine.cli.main import main
from engine.errors import SourceError
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.indexing import Index
from tests.servers.topics import Topics
from tests.spark.test_run import WITHIN_S, tocsin, wait
from tests.standins.http import HttpStandIn, StandInReply, TakenRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(900)]

AT = "2026-01-01T00:00:00Z"


class Hook(HttpStandIn):
    """A receiver of type webhook."""

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        return StandInReply(200)


class Proving(Struct, frozen=True):
    """A run at work over the sources by their names, and what its receivers were told."""

    config: Path
    sources: Mapping[str, str]
    ops: Hook
    pager: Hook


@pytest.fixture(scope="module")
def proving(broker: Any, elasticsearch: ElasticsearchNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proving]:
    folder, topics = tmp_path_factory.mktemp("proving"), Topics(broker.address)
    names = {
        "topic": topics.make(partitions=3),
        "compacted": topics.make(cleanup_policy="compact"),
        "stream": stream(elasticsearch),
        "alias": alias(elasticsearch),
        "strict": strict(elasticsearch),
        "query": selected(elasticsearch),
        "by-time": selected(elasticsearch),
    }
    sources = [source(kind, name, topics.address, elasticsearch.url) for kind, name in names.items()]
    with Hook() as ops, Hook() as pager:
        receivers = [{"name": name, "webhook": {"url": hook.address}} for name, hook in (("pager", pager), ("ops", ops))]
        config = folder / "tocsin.yml"
        settings = {"sources": sources, "receivers": receivers, "route": {"receiver": "pager"}}
        more = {"store": "sqlite:///state.db", "spark": {"trigger": "200ms"}}
        config.write_text(yaml.safe_dump({**settings, **more}))
        with tocsin("-c", config) as process:
            wait(process, folder / "state.db", lambda store: store.statuses().notifier() is not None and store.batches() > 1)
            yield Proving(config, names, ops, pager)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=WITHIN_S)
        assert "Traceback" not in err
    topics.close()


def source(kind: str, name: str, address: str, url: str) -> dict[str, Any]:
    if kind in ("topic", "compacted"):
        labels = {"cluster": "prod", "broker": "{key}"}
        return {"type": "kafka", "bootstrap_servers": address, "topics": [name], "labels": labels}
    settings: dict[str, Any] = {"type": "elasticsearch", "url": url, "indices": [f"{name}*"], "labels": {"cluster": kind}}
    if kind == "query":
        settings["query"] = {"bool": {"filter": [{"term": {"event.dataset": "kafka.log"}}, {"exists": {"field": "message"}}]}}
    if kind == "by-time":
        settings.update(read_by="timestamp", overlap="1s")
    return settings


def stream(node: ElasticsearchNode) -> str:
    """Return a data stream with a document of Elastic Agent."""
    index = Index(node, stream=True)
    index.say("hello")
    return index.name


def alias(node: ElasticsearchNode) -> str:
    """Return an alias that is written to, of indices into which Fluent Bit writes."""
    index = Index(node)
    for number in (1, 2):
        name = f"{index.name}0-00000{number}"
        index.write([{"@timestamp": AT, "log": "hello", "stream": "stdout"}], index=name)
    name = f"fluent-{index.name}"
    adding = [{"add": {"index": f"{index.name}0-00000{n}", "alias": name, "is_write_index": n == 2}} for n in (1, 2)]
    node.call("POST", "/_aliases", {"actions": adding})
    return name


def strict(node: ElasticsearchNode) -> str:
    """Return an index that takes the fields of its mapping only."""
    index = Index(node)
    properties = {"@timestamp": {"type": "date"}, "message": {"type": "text"}}
    node.call("PUT", f"/{index.name}", {"mappings": {"dynamic": "strict", "properties": properties}})
    return index.name


def selected(node: ElasticsearchNode) -> str:
    """Return an index that has logs of several kinds."""
    index = Index(node)
    properties = {"event": {"properties": {"dataset": {"type": "keyword"}}}}
    node.call("PUT", f"/{index.name}", {"mappings": {"properties": properties}})
    index.say("hello", event={"dataset": "kafka.log"})
    return index.name


@pytest.fixture
def prove(proving: Proving, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    def run(kind: str, *more: str) -> tuple[int, Any]:
        name = proving.sources[kind]
        code = main(["prove", "-c", str(proving.config), "--source", name, "--format", "json", *more])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, json.loads(out) if out else err

    return run


@pytest.mark.parametrize("kind", ["topic", "compacted", "stream", "alias", "strict", "query", "by-time"])
def test_a_line_comes_through_to_the_receiver_that_was_named_and_to_nobody_else(
    proving: Proving, prove: Callable[..., tuple[int, Any]], kind: str
) -> None:
    known = len(proving.ops.calls)
    code, outcome = prove(kind, "--receiver", "ops")
    assert (code, outcome["stopped"]) == (0, None), outcome
    assert [stage["name"] for stage in outcome["stages"]] == ["put", "judged", "told", "resolved"]
    assert proving.sources[kind] in outcome["stages"][0]["message"]
    assert len(proving.ops.calls) == known + 2
    assert proving.pager.calls == []


def test_a_query_that_selects_no_such_document_is_told_and_none_is_left(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    index = Index(elasticsearch)
    index.say("hello")
    connection = ElasticsearchConnection((elasticsearch.url,))
    query = {"range": {"log.offset": {"gte": 0}}}
    with pytest.raises(SourceError, match=r"the `query` of the source does not select"):
        put_document(connection, index.name, "tocsin-abc", AT, "a line", query)
    index.call("POST", "_refresh")
    assert index.call("GET", "_count")["count"] == 1
