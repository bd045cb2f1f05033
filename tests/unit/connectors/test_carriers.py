"""The same documents by Kafka and by Elasticsearch give the same incidents, whatever the topic and the index are called."""

import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from msgspec import Raw
from msgspec.structs import replace

from connectors.elasticsearch.answers import DocumentHit
from connectors.elasticsearch.chunks import Chunking
from connectors.elasticsearch.documents import DocumentReader
from connectors.kafka import source
from connectors.kafka.offsets import OffsetRange
from connectors.kafka.source import KafkaSource
from engine.codec import plain
from engine.model.incidents import Incident
from engine.pipeline import replay
from engine.ports import Chunk
from tests.rulepack.playing import plan
from tests.servers.indexing import filebeat, lines_of
from tests.spark.finals import STORIES, labels

TOPICS = ("topic-of-logs", "team-a.logs", "9-topic")
INDICES = ("logs-of-kafka", ".ds-logs-2026.01.01-000001", "logs-*")


def by_kafka(monkeypatch: pytest.MonkeyPatch, topic: str, documents: Sequence[bytes]) -> list[Chunk]:
    """Return the chunks of the documents as the records of a topic."""
    messages = [
        Message(topic, 0, offset, key=b"worker", value=document, timestamp=(TIMESTAMP_CREATE_TIME, 1_780_000_000_000))
        for offset, document in enumerate(documents)
    ]
    monkeypatch.setattr(source, "reading", lambda *_: iter([messages]))
    kafka = KafkaSource("b:1", topic, labels("a"))
    return list(kafka.chunks({"ranges": plain([OffsetRange(0, 0, len(messages))]), "lost": []}))


def by_index(index: str, documents: Sequence[bytes]) -> list[Chunk]:
    """Return the chunks of the documents as those of an index."""
    hits = [DocumentHit(index, f"{index}-{number}", number, Raw(document)) for number, document in enumerate(documents)]
    return list(Chunking(index, 0).chunks(list(DocumentReader(index, labels("a")).lines(hits))))


def incidents_of(chunks: Sequence[Chunk], carrier: str) -> list[str]:
    """Return the final incidents, without ids, documents, and the name of what their lines came through."""
    lines = [line for chunk in chunks for line in chunk.lines()]
    finals: dict[str, Incident] = {incident.id: incident for incident in replay(lines, plan())}
    bare = [
        replace(
            incident,
            id="",
            opened_at=None,
            revision=0,
            evidence=tuple(replace(event, event_id="", origin="") for event in incident.evidence),
            course=tuple(replace(course, event_id="") for course in incident.course),
        )
        for incident in finals.values()
        if incident.status not in ("merged", "retracted")
    ]
    return sorted(repr(incident).replace(f"{carrier}/", "") for incident in bare)


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_the_incidents_do_not_depend_on_the_carrier(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for in_turn in zip_longest(*lines_of(story)) for line in in_turn if line is not None]
    documents = [json.dumps(filebeat(line), ensure_ascii=False).encode() for line in lines]
    expected = incidents_of(by_kafka(monkeypatch, TOPICS[0], documents), TOPICS[0])
    assert expected
    for topic in TOPICS[1:]:
        assert incidents_of(by_kafka(monkeypatch, topic, documents), topic) == expected
    for index in INDICES:
        assert incidents_of(by_index(index, documents), index) == expected
