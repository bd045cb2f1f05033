"""What becomes one event, what does not, and what bounds it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.model.records import Block, Progress, Record, Tick
from engine.parse import Assembler, assemble, join, settle
from engine.parse.open_block import BLOCK_BYTES, BLOCK_LINES
from tests.unit.parse.reading import FORMATS, event, events

HEAD = "[2023-02-03 02:05:02,285] ERROR [cdc-source|task-0] failed to send record to A.B.C:  (org.apache.kafka.connect.W:406)"
NEXT = "[2023-02-03 02:05:07,328] ERROR [cdc-source|task-0] Task is being killed (org.apache.kafka.connect.W:196)"
REASON = "org.apache.kafka.common.errors.RecordTooLargeException: The message is 1125872 bytes when serialized"
TRACE = [REASON, "\tat a.B.c(B.java:1)", "\t... 3 more", "Caused by: java.io.IOException: x", "\tat d.E.f(E.java:2)"]


def records(*texts: str, source_id: str = "f") -> list[Record]:
    return [Record(source_id, offset, text, offset + 1) for offset, text in enumerate(texts)]


def blocks(*texts: str) -> list[Block]:
    return [item for item in assemble(records(*texts), FORMATS) if isinstance(item, Block)]


def texts(block: Block) -> list[str]:
    return [record.text for record in block.records]


def test_the_reason_on_the_next_line_belongs_to_its_header() -> None:
    first, second = blocks(HEAD, REASON, NEXT)
    assert (texts(first), first.headed, first.cut) == ([HEAD, REASON], True, False)
    assert texts(second) == [NEXT]


def test_a_headed_event_takes_everything_up_to_the_next_header() -> None:
    (block,) = blocks(HEAD, "values:", "\tbatch.size = 16384", "", "a line at the margin", *TRACE)
    assert len(block.records) == 10


def test_a_bare_trace_is_one_event() -> None:
    (block,) = blocks(*TRACE)
    assert not block.headed


@pytest.mark.parametrize(
    "line",
    [
        "at a.B.c(B.java:1)",
        "    at a.B",
        "sun.nio.ch.A$1.accept(A.java:422)",
        "a.B.<init>(Native Method)",
        "Suppressed: a.B",
        'at [Source: (byte[])"x"; line: 1, column: 2]',  # where Jackson stood
        "... 12 more",
        "... 12 common frames omitted",
        "...",  # what was left out of a copied trace
        "[...]",
        '","worker_id":"w"}',
    ],
)
def test_what_continues_bare_text(line: str) -> None:
    assert len(blocks(REASON, line)) == 1


@pytest.mark.parametrize("line", [REASON, "at last it works", "attempt 2", "some text", "a.B.c(d)"])
def test_other_bare_lines_are_events_of_their_own(line: str) -> None:
    assert len(blocks("first", line)) == (1 if line.startswith("at last") else 2)


def test_blank_lines_part_bare_text_and_are_dropped() -> None:
    assert [texts(b) for b in blocks("", "a", " ", "\tb", "")] == [["a"], ["\tb"]]


def test_a_json_document_goes_on_until_its_braces_balance() -> None:
    document = ["{", ' "name": "x {",', "", ' "tasks": [{', '   "trace": "a\\"}"', " }]", "}"]
    first, second = blocks(*document, "after")
    assert texts(first) == document
    assert texts(second) == ["after"]


def test_a_document_with_real_line_ends_inside_a_string_is_one_event() -> None:
    alert = [
        '{"state":"FAILED","trace":"org.apache.kafka.connect.errors.ConnectException: x',
        "    at a.B",
        "Caused by: a.b.CException: y",
        '","worker_id":"w:8083","generation":79}',
    ]
    assert [texts(b) for b in blocks(*alert, *alert)] == [alert, alert]


def test_a_brace_alone_at_the_margin_ends_a_document_that_quotes_badly() -> None:
    document = ["{", ' "trace": "he said "x"', "}"]
    assert [texts(b) for b in blocks(*document, "after")] == [document, ["after"]]


def test_a_header_ends_a_document() -> None:
    assert [texts(b) for b in blocks("{", HEAD)] == [["{"], [HEAD]]


def test_every_line_of_kafka_topics_and_of_a_dump_is_an_event() -> None:
    describe = [
        "Topic:a\tPartitionCount:2\tReplicationFactor:1\tConfigs:",
        "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
        "\tTopic: a\tPartition: 1\tLeader: 2\tReplicas: 2\tIsr: 2",
    ]
    assert len(blocks(*describe)) == 3


def test_too_many_lines_cut_an_event_and_the_rest_is_bare() -> None:
    frames = ["\tat a.B.c(B.java:1)"] * (BLOCK_LINES + 5)
    first, second = blocks(HEAD, *frames)
    assert (len(first.records), first.cut) == (BLOCK_LINES, True)
    assert (len(second.records), second.headed, second.cut) == (6, False, False)


def test_too_many_bytes_cut_an_event() -> None:
    line = "é" * 5000
    first, *_ = blocks(HEAD, *[line] * 40)
    assert first.cut
    assert sum(len(text.encode()) + 1 for text in texts(first)) <= BLOCK_BYTES


def test_a_cut_event_says_so_in_its_text() -> None:
    found = events("\n".join([HEAD, *["x"] * BLOCK_LINES]))[0]
    assert found.cut
    assert found.text.endswith("[cut: the event goes on beyond 2000 lines or 256 KiB]")


def test_progress_and_ticks_pass_and_a_closed_source_is_flushed_first() -> None:
    progress, tick = Progress("f", 1, 1, True, closed=True), Tick(datetime(2022, 1, 1, tzinfo=UTC))
    stream = [*records("a"), *records("b", source_id="f#x"), *records("c", source_id="g"), progress, tick]
    assert [texts(i) if isinstance(i, Block) else i for i in assemble(stream, FORMATS)] == [["a"], ["b"], progress, tick, ["c"]]


def test_open_blocks_can_be_seen_and_flushed_by_source() -> None:
    assembler = Assembler(FORMATS)
    for record in (*records(HEAD), *records("b", source_id="g")):
        assert assembler.push(record) == []
    held = assembler.open_block("f")
    assert held is not None
    assert texts(held) == [HEAD]
    assert assembler.open_block("h") is None
    assert [texts(b) for b in assembler.flush("f")] == [[HEAD]]
    assert [texts(b) for b in assembler.flush()] == [["b"]]
    assert assembler.open_blocks() == {}


DUMP = [
    "Dumping /tmp/kafka-logs/account_event-0/00000000000000052262.log",
    "Starting offset: 52262",
    "| offset: 52659 CreateTime: 1664956976908 keysize: -1 valuesize: 157 sequence: -1 headerKeys: []",
    "baseOffset: 52660 lastOffset: 52660 count: 1 position: 90289 CreateTime: 1664965080597 size: 229 magic: 2 isvalid: true",
    "Dumping /tmp/kafka-logs/user-log-12/00000000000000000000.log",
    "| offset: 0 CreateTime: 1664965080597 keysize: -1 valuesize: 159 sequence: -1 headerKeys: []",
]


def test_the_records_of_a_dump_bear_the_topic_and_partition_above_them() -> None:
    found = events("\n".join(DUMP))
    assert [(e.labels["topic"], e.labels["partition"]) for e in found] == [("account_event", "0")] * 3 + [
        ("user-log", "12")
    ] * 2
    assert found[1].timestamp == datetime(2022, 10, 5, 8, 2, 56, 908000, tzinfo=UTC)


def test_a_dump_gives_no_labels_to_other_lines() -> None:
    *_, last = events("\n".join([*DUMP, HEAD]))
    assert "topic" not in last.labels


@pytest.mark.parametrize("cut", range(len(DUMP)))
def test_a_snapshot_goes_on_where_it_was_taken(cut: int) -> None:
    stream = records(*DUMP, HEAD, *TRACE, "", '{ "a":', "1", "}")
    whole, first, second = Assembler(FORMATS), Assembler(FORMATS), Assembler(FORMATS)
    expected = [b for r in stream for b in whole.push(r)] + whole.flush()
    found = [b for r in stream[:cut] for b in first.push(r)]
    second.restore(first.snapshot())
    found += [b for r in stream[cut:] for b in second.push(r)]
    assert found + second.flush() == expected


def test_fragments_of_different_sources_or_out_of_order_do_not_join() -> None:
    a, b = blocks("a", "b")
    other = Block(tuple(records("x", source_id="g")), headed=False)
    for tail, head in ((b, a), (a, a), (a, other)):
        with pytest.raises(ValueError, match="does not follow"):
            join(tail, head)


def test_a_head_without_what_came_before_is_bare_text() -> None:
    assembler = Assembler(FORMATS, mid_stream=True)
    stream = records("\tat a.B", "text", "", "more", HEAD)
    (head,) = [b for r in stream for b in assembler.push(r)]
    assert head.unsettled
    done, still_open = settle(head, FORMATS)
    assert [texts(b) for b in done] == [["\tat a.B"], ["text"]]
    assert still_open is not None
    assert texts(still_open) == ["more"]


def test_the_head_of_a_source_without_headers_stays_small() -> None:
    assembler = Assembler(FORMATS, mid_stream=True)
    done = [b for r in records(*["a plain line"] * (3 * BLOCK_LINES)) for b in assembler.push(r)]
    assert done[0].unsettled
    assert len(done[0].records) <= BLOCK_LINES + 1
    assert not any(b.unsettled for b in done[1:])


def test_a_block_of_one_line_is_the_event_as_printed() -> None:
    assert event(NEXT).text == NEXT
