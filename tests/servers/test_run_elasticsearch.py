"""`tocsin run` over a real Elasticsearch: what shippers indexed gives the incidents of the files that they read."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain, cycle, zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.origins import origin_path
from engine.store import Store
from tests.rulepack.playing import SAMPLES, unlike
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.indexing import SHAPES, Index, Line, filebeat, lines_of
from tests.servers.test_kill import Place, running, until
from tests.servers.test_run_kafka import tocsin
from tests.servers.topics import Topics
from tests.spark.finals import STORIES

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime")]


def in_turn(story: Path) -> list[Line]:
    """Return the lines of a story, one of each file in turn, as several shippers write them."""
    return [line for lines in zip_longest(*lines_of(story)) for line in lines if line is not None]


def index_story(index: Index, story: Path, shape: str) -> None:
    lines = in_turn(story)
    index.write(map(SHAPES[shape], lines), ids=[f"{line.host}/{line.file}/{line.number}" for line in lines])


def written(folder: Path, clusters: Mapping[str, Any], sources: Sequence[Any], **spark: Any) -> Path:
    path = folder / "tocsin.yml"
    settings = {"clusters": clusters, "sources": sources, "spark": spark, "store": "sqlite:///state.db"}
    path.write_text(yaml.safe_dump(settings))
    return path


def indexed(node: ElasticsearchNode, shards: tuple[int, ...] = (1,)) -> tuple[Mapping[str, Any], list[Any]]:
    """Index every story as one shipper or another does, into indices of so many shards in turn; return the clusters and sources
    of a configuration that reads them."""
    samples = yaml.safe_load((SAMPLES / "tocsin.yml").read_text())
    sources = []
    for number, (story, shape, sample) in enumerate(zip(STORIES, cycle(SHAPES), samples["sources"], strict=False)):
        index = Index(node, shards=shards[number % len(shards)])
        index_story(index, story, shape)
        common = {name: sample[name] for name in ("labels", "timezone", "start")}
        sources.append({"type": "elasticsearch", "url": node.url, "indices": [f"{index.name}*"], **common})
    return samples["clusters"], sources


def incidents_in(folder: Path) -> list[Incident]:
    with closing(Store.open(f"sqlite:///{folder}/state.db")) as store:
        return [incident for incident in store.incidents() if incident.status not in ("merged", "retracted")]


def differences(incidents: Sequence[Incident], sources: Sequence[Any]) -> list[str]:
    """Return in what the incidents are not those of the stories."""
    own = [[i for i in incidents if i.labels["cluster"] == source["labels"]["cluster"]] for source in sources]
    return [f"{story.name}: {text}" for story, some in zip(STORIES, own, strict=True) for text in unlike(some, story)]


def test_stories_that_shippers_indexed_give_the_nine_incidents_of_their_files(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    clusters, sources = indexed(elasticsearch, shards=(1, 2))
    done = tocsin("-c", written(tmp_path, clusters, sources, batch_lines=200), "--once")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("read by _seq_no (no late document is missed)") == len(STORIES)
    incidents = incidents_in(tmp_path)
    assert differences(incidents, sources) == []
    assert len(incidents) == 9
    for evidence in chain.from_iterable(incident.evidence for incident in incidents):
        index, id_ = origin_path(evidence.origin, "elasticsearch")
        document = elasticsearch.call("GET", f"/{index}/_doc/{quote(id_, safe='')}")["_source"]
        line = document.get("message") or document["log"]
        is_status = evidence.source_id.endswith(".json")  # of which the trace is the text
        assert is_status or line.strip()[-40:] in evidence.text, "the document of an evidence holds its first line"


def test_a_run_that_is_killed_between_reading_and_its_checkpoint_finds_the_same(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    clusters, sources = indexed(elasticsearch)
    written(tmp_path, clusters, sources, batch_lines=40, trigger="200ms")
    place = Place(tmp_path)
    with running(place) as process:
        until(lambda: place.logged("offsets") > max(1, place.logged("commits")), process, place)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert place.logged("offsets") > place.logged("commits"), "it was not killed in a batch"
    with running(place, "--once") as process:
        assert process.wait(240) in (0, 1), place.said()
    assert differences(incidents_in(tmp_path), sources) == []


@pytest.mark.long
def test_a_run_that_reads_otherwise_than_the_one_before_says_so_and_goes_on(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    story = next(story for story in STORIES if story.name.startswith("2-"))
    index = Index(elasticsearch)
    index_story(index, story, "Filebeat")
    about = {"type": "elasticsearch", "url": elasticsearch.url, "indices": [index.name], "start": "earliest"}
    source = {**about, "labels": {"cluster": "default"}, "timezone": "Asia/Seoul"}
    for settings in ({}, {"read_by": "timestamp", "overlap": "1s"}):
        done = tocsin("-c", written(tmp_path, {}, [{**source, **settings}]), "--once")
    assert "read by @timestamp (as configured)" in done.stderr
    assert "earlier runs read it by _seq_no; it changes to @timestamp" in done.stderr
    assert "`start` applies to a first run only; these continue where they ended: 'elasticsearch default" in done.stderr
    assert unlike(incidents_in(tmp_path), story) == []


def test_the_same_documents_through_kafka_and_through_elasticsearch_give_the_same_incidents(
    elasticsearch: ElasticsearchNode, topics: Topics, tmp_path: Path
) -> None:
    sources: list[Mapping[str, Any]] = []
    carriers: list[str] = []
    about = {"timezone": "Asia/Seoul", "start": "earliest"}
    for story in STORIES:
        documents = [filebeat(line) for line in in_turn(story)]
        index, topic = Index(elasticsearch), topics.make()
        index.write(documents)
        topics.write(topic, (json.dumps(document, ensure_ascii=False) for document in documents), key="worker")
        carriers += (topic, index.name)
        kafka = {"type": "kafka", "bootstrap_servers": topics.address, "topics": [topic], **about}
        indices = {"type": "elasticsearch", "url": elasticsearch.url, "indices": [index.name], **about}
        sources.append({**kafka, "labels": {"cluster": f"{story.name}-by-kafka"}})
        sources.append({**indices, "labels": {"cluster": f"{story.name}-by-index"}})
    done = tocsin("-c", written(tmp_path, {}, sources), "--once")
    assert done.returncode == 1, done.stderr
    texts: dict[str, list[str]] = {source["labels"]["cluster"]: [] for source in sources}
    for incident in incidents_in(tmp_path):
        texts[incident.labels["cluster"]].append(_bare(incident, *carriers))
    for story in STORIES:
        by_kafka, by_index = (sorted(texts[f"{story.name}-{way}"]) for way in ("by-kafka", "by-index"))
        assert by_kafka == by_index
        assert by_kafka


def _bare(incident: Incident, *carriers: str) -> str:
    """Return all of an incident but its ids, its documents, and the names of what its lines came through."""
    evidence = tuple(replace(event, event_id="", origin="") for event in incident.evidence)
    course = tuple(replace(course, event_id="") for course in incident.course)
    text = repr(replace(incident, id="", revision=0, opened_at=None, evidence=evidence, course=course))
    return re.sub("|".join((*carriers, "by-kafka", "by-index")), "…", text)
