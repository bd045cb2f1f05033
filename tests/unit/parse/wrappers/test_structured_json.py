"""What shippers write around a line, and what ingest pipelines make of it."""

import json

import pytest

from engine.model.records import RawLine, Record
from engine.parse import unwrap_line
from tests.unit.parse.reading import FORMATS

ABOUT = {"@timestamp": "2022-10-05T08:05:40Z", "host": {"name": "kafka-1"}, "log": {"offset": 3, "file": {"path": "/a.log"}}}


def one(document: dict[str, object]) -> Record:
    return unwrap_line(RawLine("f.log", 0, json.dumps(document).encode()), FORMATS)


@pytest.mark.parametrize("line", ["", " ", "\tat a.b.C.d(C.java:1)", "Caused by: java.io.IOException: ", "error: \n"])
def test_a_line_that_begins_nothing_stays_one_in_its_envelope(line: str) -> None:
    record = one({**ABOUT, "message": line})
    assert (record.text, record.starts, record.fields) == (line.rstrip("\n"), False, {})


def test_a_document_without_any_message_is_text() -> None:
    text = json.dumps({**ABOUT, "message": None, "event": {"kind": "metric"}})
    assert one(json.loads(text)).text == text


def test_the_class_of_a_broker_line_that_elastics_pipeline_took_apart_is_its_logger() -> None:
    document = {
        "@timestamp": "2022-10-05T08:05:40Z",
        "log": {"level": "INFO"},
        "message": "[KafkaServer id=1] started",
        "kafka": {"log": {"class": "kafka.server.KafkaServer", "component": "KafkaServer id=1"}},
    }
    assert one(document).fields == {"level": "INFO", "logger": "kafka.server.KafkaServer"}
