"""One broker line in everything that shippers, viewers and chats put around lines: it is read as it was printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.parse.reading import event, events

LINE = '[2022-10-05 17:05:39,869] ERROR Error "append" on orders-0 (kafka.server.ReplicaManager)'
AT = datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)
QUOTED = LINE.replace('"', '""')
JSON = json.dumps(LINE)

WRAPPED = {
    "docker's rows": json.dumps({"log": LINE + "\n", "stream": "stdout", "time": "2025-02-17T09:35:27.681757986Z"}),
    "docker logs -t": f"2025-02-20T09:47:42.251096468Z {LINE}",
    "a container runtime": f"2025-02-20T18:47:42.251096468+09:00 stdout F {LINE}",
    "compose": f"kafka-1  | {LINE}",
    "compose around docker's stamp": f"kafka-1  | 2025-02-20T09:47:42.251096468Z {LINE}",
    "compose around JSON": f'kafka-1  | {{"@timestamp":"2025-02-20T09:47:42.251Z","message":{JSON}}}',
    "compose around docker around JSON": "kafka-1  | "
    + json.dumps({"log": f'{{"@timestamp":"2025-02-20T09:47:42.251Z","message":{JSON}}}\n', "time": "2025-02-17T09:35:27.6Z"}),
    "kubectl": f"[pod/kafka-0/kafka] {LINE}",
    "kubectl with stamps": f"[pod/kafka-0/kafka] 2025-02-20T09:47:42.251096468Z {LINE}",
    "journalctl": f"Oct  5 17:05:39 broker-1 kafka-server-start.sh[4711]: {LINE}",
    "journalctl with fractions": f"Oct 05 17:05:39.123456 broker-1 kafka[4711]: {LINE}",
    "journalctl -o short-iso": f"2022-10-05T17:05:39+0900 broker-1 kafka[4711]: {LINE}",
    "journalctl -o json": json.dumps(
        {"__REALTIME_TIMESTAMP": "1664989539869000", "_HOSTNAME": "broker-1", "MESSAGE": LINE, "PRIORITY": "6"}
    ),
    "journalctl -o json of bytes": json.dumps({"__REALTIME_TIMESTAMP": "1664989539869000", "MESSAGE": list(LINE.encode())}),
    "syslog with a priority": f"<134>Oct  5 17:05:39 broker-1 kafka[4711]: {LINE}",
    "RFC 5424": f"<134>1 2022-10-05T17:05:39.869Z broker-1 kafka 4711 - - {LINE}",
    "a priority alone": f"<130>{LINE}",
    "Kibana": f"Oct 6, 2022 @ 03:14:15.000 {LINE}",
    "Kibana's CSV": f'"Oct 6, 2022 @ 03:14:15.332","{QUOTED}"',
    "Kibana's CSV with a column between": f'"Oct 6, 2022 @ 03:14:15.332",broker-1,"{QUOTED}"',
    "Loki's CSV": f'"{{""app"":""kafka""}}",2022-10-06 17:05:39.869,"{QUOTED}",1665047139869000000,1665_a1b2',
    "CSV by milliseconds": f'1665047139869,"{QUOTED}"',
    "logcli": f'2022-10-06T17:05:39+09:00 {{app="kafka", pod="kafka-0"}} {LINE}',
    "Grafana's text": f"2022-10-06T08:05:39.869Z\t{LINE}",
    "Grafana's text before version 9": f"1665047139869000000\t{LINE}",
    "Grafana's JSON": f'{{"line":{JSON},"timestamp":"1665047139869000000","date":"2022-10-06T08:05:39.869Z","fields":{{}}}},',
    "an Elasticsearch hit": f'{{"_index":"logs","_source":{{"@timestamp":"2022-10-06T08:05:39.869Z","message":{JSON}}}}}',
    "a shipper that read the level": f'{{"@timestamp":"2022-10-06T08:05:39.869Z","log.level":"info","message":{JSON}}}',
    "a panel": f"2022-10-06 23:29:07 {LINE}",
    "an editor's line numbers": f"1461{LINE}",
    "grep -n": f"1461:{LINE}",
    "a quotation": f"> {LINE}",
    "a quotation in a quotation": f"> > {LINE}",
    "a list": f"- {LINE}",
    "code": f"`{LINE}`",
    "colours": f"\x1b[0m\x1b[31m{LINE}\x1b[0m",
    "Windows' line ends": f"{LINE}\r",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_line_inside_is_read(name: str) -> None:
    found = event(WRAPPED[name])
    assert (found.text, found.timestamp, found.level, found.logger) == (LINE, AT, "ERROR", "kafka.server.ReplicaManager")


# rows and documents that are events by themselves, marks that stand before the first line only, and escaped lines
WHOLE = ("CSV", "Kibana", "JSON", "json", "rows", "hit", "shipper", "list", "code")
LINE_BY_LINE = [name for name in WRAPPED if not any(word in name for word in WHOLE)]


@pytest.mark.parametrize("name", LINE_BY_LINE)
def test_a_trace_below_the_line_joins_it(name: str) -> None:
    trace = [LINE, "org.apache.kafka.common.errors.TimeoutException: x", "\tat a.B.c(B.java:1)"]
    assert event("\n".join(WRAPPED[name].replace(LINE, line) for line in trace)).text == "\n".join(trace)


def test_an_exported_row_may_be_empty() -> None:
    assert events('"Oct 6, 2022 @ 03:14:15.332",')[0].text == ""


def document(**fields: Any) -> str:
    return json.dumps(fields)


TRACE = "a.b.CException: boom\n\tat a.B.c(B.java:1)\n"
DOCUMENTS = {
    "ECS, dotted": document(
        **{"@timestamp": "2021-03-10T10:28:23.512Z", "log.level": "ERROR", "message": "x", "process.thread.name": "main"},
        **{"log.logger": "a.B", "error.type": "a.b.CException", "error.message": "boom", "error.stack_trace": TRACE},
    ),
    "ECS without a trace": document(
        **{"@timestamp": "2021-03-10T10:28:23.512Z", "message": "x", "process": {"thread": {"name": "main"}}},
        log={"level": "ERROR", "logger": "a.B"},
        error={"type": "a.b.CException", "message": "boom"},
    ),
    "GELF": document(
        version="1.1", host="h", short_message="x", full_message=TRACE, timestamp=1615372103.512, level=3,
        _thread_name="main", _logger_name="a.B",
    ),
    "GELF of Spring Boot": document(
        version="1.1", short_message="x", timestamp=1615372103.512, level=3, _level_name="ERROR",
        _process_thread_name="main", _log_logger="a.B", _error_stack_trace=TRACE,
    ),
    "Quarkus": document(
        timestamp="2021-03-10T19:28:23.512+09:00", loggerName="a.B", level="ERROR", message="x", threadName="main",
        exception={"exceptionType": "a.b.CException"}, stackTrace=": " + TRACE,
    ),
    "log4j2": document(
        timeMillis=1615372103512, thread="main", level="ERROR", loggerName="a.B", message="x",
        thrown={"name": "a.b.CException", "message": "boom", "extendedStackTrace": TRACE},
    ),
    "log4j2 without a trace": document(
        timeMillis=1615372103512, thread="main", level="ERROR", loggerName="a.B", message="x",
        thrown={"name": "a.b.CException", "localizedMessage": "boom"},
    ),
    "Connect through logstash's encoder": document(
        **{"@timestamp": "2021-03-10T10:28:23.512Z", "connector.context": "[cdc|task-0] "},
        message="x", logger_name="a.B", thread_name="main", level="ERROR", stack_trace=TRACE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_java_programs(name: str) -> None:
    found = event(DOCUMENTS[name])
    assert found.timestamp == datetime(2021, 3, 10, 10, 28, 23, 512000, tzinfo=UTC)
    assert (found.level, found.logger, found.thread, found.message) == ("ERROR", "a.B", "main", "x")
    assert found.exception == ("a.b.CException",)


def test_connects_context_says_whose_it_is() -> None:
    labels = event(DOCUMENTS["Connect through logstash's encoder"]).labels
    assert (labels["connector"], labels["task"]) == ("cdc", "0")


OTHERS = {
    "kafkajs": (
        document(
            level="ERROR", timestamp="2021-03-10T10:28:23.512Z", logger="kafkajs", message="x", stack="Error: boom\n at a"
        ),
        ("ERROR", "kafkajs", "x\nError: boom\n at a"),
    ),
    "kafkajs with its group": (
        document(level="ERROR", timestamp="2021-03-10T10:28:23.512Z", logger="kafkajs", message="x", groupId="dawn", error="y"),
        ("ERROR", "kafkajs", "x [groupId=dawn]\ny"),
    ),
    "kafkajs with the record that it handed over": (
        document(
            level="ERROR",
            timestamp="2021-03-10T10:28:23.512Z",
            logger="kafkajs",
            message="x",
            topic="dawn",
            partition=0,
            offset="358",
        ),
        ("ERROR", "kafkajs", "x\n[topic=dawn, partition=0, offset=358]"),
    ),
    "a message further in": (
        document(type="log", level="ERROR", time="2021-03-10T10:28:23.512Z", log={"message": "main - a.b.C - x"}),
        ("ERROR", "", "main - a.b.C - x"),
    ),
    "kafkajs with its broker": (
        document(level="ERROR", timestamp="2021-03-10T10:28:23.512Z", logger="kafkajs", message="x", broker="kafka-1:9092"),
        ("ERROR", "kafkajs", "x\n[broker=kafka-1:9092]"),
    ),
    "franz-go": (
        document(
            level="error",
            ts="2021-03-10T10:28:23.512Z",
            msg="unable to open connection to broker",
            addr="kafka-1:9092",
            broker=-2147483647,
            err="y",
        ),
        ("ERROR", "", "unable to open connection to broker\ny\n[broker=kafka-1:9092]"),
    ),
    "a server that listens": (
        document(level="error", ts="2021-03-10T10:28:23.512Z", msg="cannot listen", addr="0.0.0.0:8080", group="core"),
        ("ERROR", "", "cannot listen"),
    ),
    "python-json-logger": (
        document(
            asctime="2021-03-10 10:28:23,512", levelname="ERROR", name="kafka.conn", message="x", exc_info="kafka.errors.E: b"
        ),
        ("ERROR", "kafka.conn", "x\nkafka.errors.E: b"),
    ),
    "pino": (
        document(level=50, time=1615372103512, name="app", msg="x", err={"stack": "Error: b"}),
        ("ERROR", "app", "x\nError: b"),
    ),
    "zap": (document(level="error", ts=1615372103.512, msg="x", err="refused"), ("ERROR", "", "x\nrefused")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_documents_of_other_programs(name: str) -> None:
    line, expected = OTHERS[name]
    found = event(line)
    assert found.timestamp == datetime(2021, 3, 10, 10, 28, 23, 512000, tzinfo=UTC)
    assert (found.level, found.logger, found.text) == expected


def test_a_traceback_and_its_reason_are_one_event() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in b\n    c()\nkafka.errors.NoBrokersAvailable: none'
    first, second = events(f"{text}\nnext")
    assert (first.text, first.exception, second.text) == (text, ("kafka.errors.NoBrokersAvailable",), "next")


def test_an_exception_and_the_one_that_it_is_due_to_are_one_event() -> None:
    text = "a.StreamsException: Error sending to topic t for task 0_0 due to:\nb.TimeoutException: none\n\tat c.D.e(D.java:1)"
    first, second = events(f"{text}\nnext")
    assert (first.text, first.exception, second.text) == (text, ("a.StreamsException", "b.TimeoutException"), "next")


def test_the_exception_below_a_line_that_announces_it_is_part_of_it_with_a_blank_line_between_or_not() -> None:
    head = "[app-StreamThread-1] Failed to process stream task 1_0 due to the following error:"
    trace = "java.lang.ClassCastException: [B cannot be cast\n\tat c.D.e(D.java:1)"
    for between in ("\n", "\n\n"):
        found = events(f"{head}{between}{trace}\nnext")
        assert [(each.text, each.exception) for each in found] == [
            (f"{head}{between}{trace}", ("java.lang.ClassCastException",)),
            ("next", ()),
        ]
    assert [each.text.strip() for each in events(f"{head}\n\nnext")] == [head, "next"]


def test_a_trace_with_a_blank_line_below_each_of_its_lines_is_one_event() -> None:
    trace = (
        "Caused by: a.SerializationException: for id 1\n\nCaused by: b.C: -1\n\n\tat c.D.e(D.java:1)\n\n\tat c.D.f(D.java:2)"
    )
    first, second = events(f"{trace}\n\nnext")
    assert (first.text.strip(), first.exception[0], second.text) == (trace, "a.SerializationException", "next")


@pytest.mark.parametrize(
    "text",
    [
        'ERROR:  publication "p" does not exist\nCONTEXT:  slot "s", output plugin "pgoutput", in the change callback',
        "Connector configuration is invalid and contains the following 2 error(s):\nError a.B occurred: reset by peer",
    ],
)
def test_what_a_database_adds_and_what_is_not_valid_belong_to_their_line(text: str) -> None:
    assert [event.text for event in events(f"{text}\nnext")] == [text, "next"]


def test_a_jvms_fatal_error_is_one_event() -> None:
    report = (
        "# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at pc=0x0\n\nRegisters:\nRAX=0"
    )
    found = events(f"#\n{report}")[-1]
    assert (found.level, found.text) == ("FATAL", report)


@pytest.mark.parametrize("prefixes", [("kafka-1  | ", "kafka-2  | "), ("[pod/kafka-0/kafka] ", "[pod/kafka-1/kafka] ")])
def test_what_two_containers_print_at_once_does_not_mix(prefixes: tuple[str, str]) -> None:
    dump = ["[2022-10-05 17:05:39,869] INFO ProducerConfig values: ", *(f"\tsetting.{n} = {n}" for n in range(200)), " (a.B:1)"]
    found = events("\n".join(prefix + line for line in dump for prefix in prefixes))
    assert [event.text for event in found] == ["\n".join(dump)] * 2
    assert len({event.source_id for event in found}) == 2
