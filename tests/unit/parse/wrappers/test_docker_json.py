"""Docker's own rows, and documents that hold what such a row holds and more."""

import json

from engine.model.records import RawLine, Record
from engine.parse import unwrap_line
from tests.unit.parse.reading import FORMATS

LINE = "[2022-10-05 17:05:39,869] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"


def one(document: dict[str, object]) -> Record:
    return unwrap_line(RawLine("f.log", 0, json.dumps(document).encode()), FORMATS)


def test_a_row_without_a_line_end_goes_on_in_the_next() -> None:
    assert one({"log": LINE, "stream": "stdout", "time": "2022-10-05T08:05:40Z", "attrs": {"tag": "x"}}).partial


def test_a_document_of_a_shipper_with_the_same_fields_is_a_whole_line() -> None:
    document = {"@timestamp": "2022-10-05T08:05:40Z", "log": LINE, "stream": "stdout", "time": "2022-10-05T08:05:40Z"}
    for more in ({"kubernetes": {"pod_name": "kafka-0"}}, {"_p": "F"}):
        record = one({**document, **more})
        assert (record.text, record.partial, record.starts) == (LINE, False, False)
