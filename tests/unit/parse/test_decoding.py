"""Events: what they say, who said it, when, and which two are one. And that nothing at all makes the parser fail or crawl."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.records import Block, LogEvent, Progress, RawLine, Record, Tick
from engine.parse import assemble, decode, decode_block, unwrap
from engine.parse.decoding import UNKNOWN_TIME
from tests.unit.parse.reading import FORMATS, event, events

LINE = "[2022-10-05 17:05:39,869] INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets (kafka.coordinator.group.G)"
INGESTED = datetime(2022, 10, 6, tzinfo=UTC)


def at_offset(line: str, offset: int, source_id: str = "f") -> LogEvent:
    raw = RawLine(source_id, offset, line.encode(), ingested_at=INGESTED)
    (found,) = [e for e in decode(assemble(unwrap([raw], FORMATS), FORMATS), FORMATS) if isinstance(e, LogEvent)]
    return found


def test_an_event_as_printed_with_its_fields() -> None:
    found = event(f"{LINE}\njava.io.IOException: x", cluster="prod", broker="1")
    assert found.text == f"{LINE}\njava.io.IOException: x"
    assert found.message == "[GroupMetadataManager brokerId=1] Removed 0 expired offsets"
    assert (found.level, found.logger) == ("INFO", "kafka.coordinator.group.G")
    assert found.timestamp == found.at == datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)
    assert found.exception == ("java.io.IOException",)
    assert found.labels == {"cluster": "prod", "broker": "1", "source": "server.log"}
    assert (found.source_id, found.offset, found.number) == ("server.log", 0, 1)


def test_blanks_at_the_end_of_a_line_change_nothing() -> None:
    assert event(LINE + "  ").message == event(LINE).message
    assert event("[2022-10-05 17:05:39,869] INFO ProducerConfig values: ").message == "ProducerConfig values:"


def test_a_cluster_is_always_there_and_the_time_zone_never() -> None:
    found = event(LINE, timezone="Asia/Seoul")
    assert found.labels == {"cluster": "default", "source": "server.log"}
    assert found.timestamp == datetime(2022, 10, 5, 8, 5, 39, 869000, tzinfo=UTC)


def test_configured_labels_win_over_the_layouts() -> None:
    line = "[2023-02-03 02:05:02,285] ERROR [cdc-source|task-0] x (a.B)"
    assert event(line, connector="mine").labels == {
        "cluster": "default",
        "connector": "mine",
        "task": "0",
        "source": "server.log",
    }


def test_undated_text_is_placed_at_its_ingest_time() -> None:
    found = at_offset("some text", 0)
    assert (found.timestamp, found.at) == (None, INGESTED)
    assert event("some text").at == UNKNOWN_TIME


def test_a_stamp_that_is_no_time_leaves_the_event_undated() -> None:
    assert event(LINE.replace("2022-10", "2022-13")).timestamp is None


def test_a_trace_with_escaped_line_ends_reads_as_lines() -> None:
    found = event("a.b.DataException: ***\\n\\tat c.D.e(D.java:95)\\nCaused by: a.b.SerializationException: id -1\\n")
    assert found.text == "a.b.DataException: ***\n\tat c.D.e(D.java:95)\nCaused by: a.b.SerializationException: id -1"
    assert found.exception == ("a.b.DataException", "a.b.SerializationException")
    assert found.message == "a.b.DataException: ***"


def test_a_windows_path_is_no_escaped_trace() -> None:
    assert event("log.dirs = C:\\new\\tmp").text == "log.dirs = C:\\new\\tmp"


def test_the_same_line_read_twice_is_one_event() -> None:
    assert at_offset(LINE, 0).event_id == at_offset(LINE, 900).event_id


@pytest.mark.parametrize("line", [LINE.replace(",869", ""), "some text"])
def test_equal_lines_that_no_stamp_tells_apart_are_two_events(line: str) -> None:
    assert at_offset(line, 0).event_id != at_offset(line, 900).event_id
    assert at_offset(line, 900).event_id == at_offset(line, 900).event_id


def test_source_time_and_header_line_make_the_identity() -> None:
    ids = {at_offset(LINE, 0).event_id, at_offset(LINE, 0, "g").event_id}
    ids |= {at_offset(LINE.replace(",869", ",870"), 0).event_id, at_offset(LINE.replace("0 exp", "1 exp"), 0).event_id}
    assert len(ids) == 4
    assert all(len(id_) == 20 and int(id_, 16) >= 0 for id_ in ids)


@pytest.mark.parametrize("line", [LINE, LINE.replace(",869", ""), "Removed 0 expired offsets"])
def test_events_of_one_time_have_ids_in_an_order_that_names_and_positions_do_not_change(line: str) -> None:
    lines = [line.replace("0 exp", f"{number} exp") for number in range(50)]
    orders = {
        tuple(sorted(lines, key=lambda line: at_offset(line, offset + lines.index(line), source_id).event_id))
        for offset in (0, 900)
        for source_id in ("server.log", "/var/log/kafka/server.log", "logs-kafka/kafka-1:/var/log/kafka/server.log")
    }
    assert len(orders) == 1


def test_the_id_of_an_event_without_a_time_comes_behind_those_of_others() -> None:
    undated = [at_offset(f"Removed {number} expired offsets", 0).event_id for number in range(50)]
    dated = [at_offset(LINE.replace("0 exp", f"{number} exp"), 0).event_id for number in range(50)]
    assert min(undated) > max(dated)


def test_a_line_of_five_megabytes_is_one_cut_event() -> None:
    found = event(f"{LINE} ".encode() + b"x" * 5_000_000)
    assert found.cut
    assert found.level == "INFO"
    assert len(found.text) < 300_000
    assert "more bytes in this line]" in found.text[-60:]


def test_the_text_of_an_event_is_safe_to_carry() -> None:
    assert event(b"[2022-10-05 17:05:39,869] ERROR \x1b[31mbad\x1b[0m \x00\xff (a.B)").message == "bad \ufffd\ufffd"


def test_progress_and_ticks_pass_through() -> None:
    others = [Progress("f", 1, 1, True), Tick(INGESTED)]
    assert list(decode(others, FORMATS)) == others


def test_an_empty_file_has_no_events() -> None:
    assert events("") == []
    assert events("\n\n") == []


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    for found in events(data):
        assert found.text
        assert found.text.encode()
        assert found.labels["source"].startswith("server.log")


PIECES = (
    "{",
    "}",
    '"',
    "\\",
    ":",
    "\n",
    " | ",
    "kafka_1",
    "Apr 14, 2022 @ 03:14:15.000 ",
    '{"log":"',
    '{"message":"',
    LINE,
    "\\n\\tat ",
    "\x1b[3",
    "Caused by: a.B",
)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_no_mixture_of_layouts_makes_it_fail(pieces: list[str]) -> None:
    for found in events("".join(pieces)):
        assert len(found.event_id) == 20


@given(st.text(max_size=300), st.booleans(), st.booleans())
def test_any_block_decodes(text: str, headed: bool, unsettled: bool) -> None:
    block = Block((Record("f", 0, text.encode("utf-8", "replace").decode()),), headed, unsettled=unsettled)
    assert all(found.event_id for found in decode_block(block, FORMATS))


HOSTILE = {
    "one line": b"x" * 1000,
    "braces": b"{" * 1000,
    "brace lines": b"{\n" * 200,
    "open strings": b'{"' * 500,
    "causes": b"Caused by: " * 90,
    "classes": b"a.b.CException: " * 62,
    "packages": b"java.lang." * 100,
    "parentheses": b"(a.b " * 200,
    "stamps": b"[2022-10-05 17:05:39,869] " * 40,
    "escapes": b"\\n\\tat " * 140,
    "colours": b"\x1b[" * 500,
    "a torn document": b'{"@timestamp":"' + b'\\"message":"' * 80,
    "nested documents": b'{"message":' * 90,
    "frames": b"\tat a.b.c(D.java:1)\n" * 50,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_size_of_hostile_input_and_no_faster(name: str) -> None:
    def seconds(times: int) -> float:
        best = float("inf")
        for _ in range(2):
            started = time.process_time()
            events(HOSTILE[name] * times)
            best = min(best, time.process_time() - started)
        return best

    small, large = seconds(20), seconds(160)
    assert large < 8 * 4 * max(small, 0.002)  # eight times the bytes; a quadratic step would take sixty-four times as long
