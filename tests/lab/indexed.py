"""The act of the lab with Elasticsearch: logs in, incidents out, Kibana one click away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from engine.model.incidents import Incident
from tests.lab.acts import DRAINED_WITHIN_S, clusters_and_sources, incidents_in, stories_of, undelivered, unlike_samples
from tests.lab.running import say, show, tocsin, write_config
from tests.servers.elasticsearch import ElasticsearchNode, elasticsearch_node
from tests.servers.indexing import SHAPES, Index, lines_of
from tests.servers.search_home import SearchHome
from tests.standins.slack import SlackStandIn

INDEX = "tocsin-incidents"
PAGES, KIBANA = "https://tocsin.example", "https://kibana.example"
SHOWN = 3  # incidents whose links are printed


def indexed_stories(home: SearchHome, folder: Path) -> list[str]:
    """Play the stories of the samples over an Elasticsearch of their own."""
    say(f"starting {home.version}")
    with elasticsearch_node(home, folder / "elasticsearch") as node:
        return play_indexed_stories(node, folder)


def play_indexed_stories(node: ElasticsearchNode, folder: Path) -> list[str]:
    """Index the logs of the samples as shippers do, let tocsin drain the indices, and compare Slack and the index of incidents
    with what the samples say."""
    with SlackStandIn() as slack:
        parts = _over_elasticsearch(node)
        archive = {"name": "archive", "elasticsearch": {"url": node.url, "index": INDEX, "changes": f"{INDEX}-changes"}}
        links = {"web": {"public_url": PAGES}, "kibana": {"url": KIBANA, "version": "9.2"}}
        config = write_config(folder, slack, {**parts, **links}, [archive])
        say(f"tocsin run -c {config} --once")
        with tocsin("-c", config, "--once") as running:
            code = running.ended(DRAINED_WITHIN_S)
        if code != 1:
            return [f"tocsin ended with {code}, not with 1 (incidents found)"]
        show(slack)
        incidents = incidents_in(folder)
        errors = [*unlike_samples(incidents, parts["sources"]), *undelivered(incidents, slack)]
        return [*errors, *_unlike_documents(node, incidents)]


def _over_elasticsearch(node: ElasticsearchNode) -> dict[str, Any]:
    """Index a story after the other; return the clusters and sources of samples/tocsin.yml with an index for each folder."""
    configuration = clusters_and_sources()
    sources = []
    for source, story, shape in zip(configuration["sources"], stories_of(), cycle(SHAPES), strict=False):
        index = Index(node, f"logs-{story.name}")
        lines = list(chain.from_iterable(lines_of(story)))
        index.write(map(SHAPES[shape], lines))
        say(f"{len(lines)} lines of {story.name} are documents of {shape} in the index {index.name}")
        options = {name: source[name] for name in ("labels", "timezone", "start")}
        sources.append({"type": "elasticsearch", "url": node.url, "indices": [index.name], **options})
    return {"clusters": configuration["clusters"], "sources": sources}


def _unlike_documents(node: ElasticsearchNode, incidents: Sequence[Incident]) -> list[str]:
    """Print some documents of incidents with their links; return how they differ from the incidents of the store."""
    node.call("POST", f"/{INDEX}/_refresh")
    hits = node.call("GET", f"/{INDEX}/_search?size=1000")["hits"]["hits"]
    documents: dict[str, Mapping[str, Any]] = {hit["_id"]: hit["_source"] for hit in hits}
    say(f"the index {INDEX} holds {len(documents)} documents:")
    for incident in incidents[:SHOWN]:
        _print(documents.get(incident.id, {}))
    errors = []
    for incident in incidents:
        document = documents.get(incident.id)
        if document is None:
            errors.append(f"no document tells of: {incident.title}")
        elif document["event"]["sequence"] != incident.revision or document["message"] != incident.title:
            errors.append(f"the document of {incident.id} is of another revision: {document['message']}")
        elif not all(event["origin"].startswith("elasticsearch:logs-") for event in document["tocsin"]["incident"]["evidence"]):
            errors.append(f"not every line of {incident.id} names its document")
        elif document["event"].get("url") != f"{PAGES}/incidents/{incident.id}":
            errors.append(f"the document of {incident.id} does not lead to its page")
    return errors


def _print(document: Mapping[str, Any]) -> None:
    print(f"  {document.get('message', 'nothing')}")
    for kind, url in document.get("tocsin", {}).get("incident", {}).get("links", {}).items():
        print(f"    {kind}: {url}", flush=True)
