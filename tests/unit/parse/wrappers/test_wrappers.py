"""Wrappers: each comes off by itself and inside others, and a line that bears none is left alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from engine.model.records import Progress, RawLine, Record, Tick
from engine.parse import unwrap, unwrap_line
from engine.parse.wrappers import by_first_character
from tests.unit.parse.reading import FORMATS, event, events

BROKER = "[2022-10-05 17:05:39,869] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"


def one(text: str, **labels: str) -> Record:
    return unwrap_line(RawLine("f.log", 7, text.encode(), 3, labels=labels), FORMATS)


def docker(line: str, time: str = "2025-02-17T09:35:27.681757986Z") -> str:
    return json.dumps({"log": line, "stream": "stdout", "time": time})


def test_a_plain_line_keeps_everything() -> None:
    assert one(BROKER, cluster="c") == Record("f.log", 7, BROKER, 3, labels={"cluster": "c"})


def test_wrappers_are_found_by_scanning_their_folder() -> None:
    modules = {unwrap.__module__.rpartition(".")[2] for found in by_first_character().values() for unwrap in found}
    assert {
        "compose",
        "connect_status",
        "container_stamp",
        "desktop_stamp",
        "docker_json",
        "journal",
        "kibana",
        "structured_json",
    } <= modules


def test_dockers_json_file() -> None:
    record = one(docker(BROKER + "\n"))
    assert (record.text, record.partial) == (BROKER, False)
    assert record.at == datetime(2025, 2, 17, 9, 35, 27, 681757, tzinfo=UTC)


def test_a_line_that_docker_split_is_one_again() -> None:
    long = "[2022-10-05 17:05:39,869] WARN " + "x" * 40_000 + " (kafka.server.X)"
    rows = [docker(long[:16384]), docker(long[16384:32768]), docker(long[32768:] + "\n"), docker(BROKER + "\n")]
    first, second = events("\n".join(rows))
    assert first.text == long
    assert first.logger == "kafka.server.X"
    assert second.text == BROKER


def test_docker_logs_with_stamps() -> None:
    record = one(f"2025-02-20T09:47:42.251096468Z {BROKER}")
    assert record.text == BROKER
    assert record.at == datetime(2025, 2, 20, 9, 47, 42, 251096, tzinfo=UTC)


def test_container_runtime_files_mark_partial_lines() -> None:
    assert one(f"2025-02-20T09:47:42.251096468Z stdout F {BROKER}").text == BROKER
    assert one("2025-02-20T09:47:42.251096468Z stderr P begin").partial


def test_spring_boots_own_stamp_is_no_wrapper() -> None:
    line = "2024-05-25T13:14:17.891123456Z  INFO 6 --- [main] o.a.k.Client : up"
    assert one(line).text == line


def test_a_desktop_stamp_comes_off_only_before_another_stamp_or_a_trace() -> None:
    assert one(f"2024-12-30 23:29:07 {BROKER}").text == BROKER
    trace = "org.apache.kafka.common.InvalidRecordException: One or more records have been rejected"
    assert one(f"2024-12-30 23:29:07 {trace}").text == trace
    own = "2021-07-06 21:53:51 INFO  AbstractOperator:255 - Reconciliation is in progress"
    assert one(own).text == own


@pytest.mark.parametrize("stamp", ["Oct  5 17:05:40", "Oct 15 17:05:40", "2022-10-05T17:05:40.123456+00:00"])
def test_the_journal_of_a_machine_names_the_host(stamp: str) -> None:
    found = event(f"{stamp} broker-1 kafka-server-start.sh[4711]: {BROKER}")
    assert found.text == BROKER
    assert found.labels["host"] == "broker-1"
    assert found.timestamp == datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)


def test_the_journals_stamp_counts_where_it_has_a_year() -> None:
    trace = "broker-1 kafka[4711]: java.lang.OutOfMemoryError: Java heap space"
    assert event(f"Oct  5 17:05:40 {trace}").timestamp is None
    assert event(f"2022-10-05T17:05:40+00:00 {trace}").timestamp == datetime(2022, 10, 5, 17, 5, 40, tzinfo=UTC)


def journal_row(message: object, **fields: str) -> str:
    return json.dumps({"__REALTIME_TIMESTAMP": "1664989540000000", "_HOSTNAME": "broker-1", "MESSAGE": message, **fields})


def test_a_message_of_the_journal_that_has_several_values_is_all_of_them() -> None:
    assert one(journal_row(["first", list(b"se\xffcond")])).text == "first\nse\ufffdcond"


@pytest.mark.parametrize("message", [None, 7, {"a": 1}, [None], [["x", 1]], [300]])
def test_a_message_of_the_journal_that_is_no_text_stays_a_row(message: object) -> None:
    row = journal_row(message)
    assert one(row).text == row


@pytest.mark.parametrize("part", [{"CONTAINER_PARTIAL_MESSAGE": "true"}, {"_LINE_BREAK": "line-max"}])
def test_a_line_that_the_journal_has_in_parts_is_one_again(part: dict[str, str]) -> None:
    begin, end = BROKER[:40], BROKER[40:]
    (whole,) = events("\n".join((journal_row(begin, **part), journal_row(end))))
    assert whole.text == BROKER


def test_a_stack_trace_in_the_journal_is_one_event_in_one_entry_or_in_many() -> None:
    trace = f"{BROKER.replace('INFO', 'ERROR')}\njava.io.IOException: No space left on device\n\tat a.B.c(B.java:1)"
    (together,) = events(journal_row(trace))
    (apart,) = events("\n".join(map(journal_row, trace.split("\n"))))
    assert together.text == apart.text == trace
    assert together.exception == apart.exception == ("java.io.IOException",)


def test_a_container_of_compose_is_a_source_of_its_own() -> None:
    record = one(f"kafka_1           | {BROKER}", cluster="c")
    assert (record.source_id, record.text) == ("f.log#kafka_1", BROKER)
    assert record.labels == {"cluster": "c", "container": "kafka_1"}


def test_indentation_behind_composes_bar_is_kept() -> None:
    assert one("kafka-1  |     Cleaned 0.0 MB").text == "    Cleaned 0.0 MB"
    assert one("\x1b[36mkafka-1  |\x1b[0m up").text == "up"


def test_interleaved_containers_do_not_mix() -> None:
    pasted = "\n".join(
        [
            f"a_1  | {BROKER}",
            f"b_1  | {BROKER.replace('id=1', 'id=2')}",
            "a_1  | java.io.IOException: No space left on device",
            "b_1  | \tat kafka.Log.append(Log.scala:1)",
            "no prefix",
        ]
    )
    by_source = {e.source_id: e.text.split("\n")[-1] for e in events(pasted)}
    assert by_source == {
        "server.log#a_1": "java.io.IOException: No space left on device",
        "server.log#b_1": "\tat kafka.Log.append(Log.scala:1)",
        "server.log": "no prefix",
    }


def test_an_exit_is_an_event_of_its_container() -> None:
    started, exited = events(f"kafka_1  | {BROKER}\nkafka_1 exited with code 137\n")
    assert (exited.source_id, exited.text) == (started.source_id, "kafka_1 exited with code 137")
    assert exited.labels["container"] == "kafka_1"


@pytest.mark.parametrize("line", ["[main | x] text", "%7|159|X| y", "orders | 0 | 12 in a container"])
def test_a_bar_in_a_line_is_not_always_composes(line: str) -> None:
    inside = unwrap_line(RawLine("f.log#kafka_1", 0, line.encode()), FORMATS)
    assert (inside.source_id, inside.text) == ("f.log#kafka_1", line)


def test_a_document_behind_pod_and_container_is_read() -> None:
    line = 'kowl03-7f55bfcc8d-hbd52 kowl {"level":"warn","ts":"2021-09-15T16:22:01.871Z","msg":"read from broker errored"}'
    found = event(line)
    assert (found.level, found.message, found.timestamp) == (
        "WARN",
        "read from broker errored",
        datetime(2021, 9, 15, 16, 22, 1, 871000, tzinfo=UTC),
    )


def test_milliseconds_behind_a_comma_are_no_column_of_a_row() -> None:
    line = '2025-02-03 22:51:15,385 INFO  [parallel-3] audit: {"username":"Unknown","operation":"validateConfig"}'
    assert (one(line).text, event(line).level) == (line, "INFO")


def test_the_stamp_of_the_container_tells_the_year() -> None:
    line = "2023-09-14T08:29:13.353630439Z E0914 08:29:13.353559       1 kafka_exporter.go:430] Cannot get current offset"
    assert event(line, taken=datetime(2026, 1, 1, tzinfo=UTC)).timestamp == datetime(2023, 9, 14, 8, 29, 13, 353559, tzinfo=UTC)


def test_a_kibana_row_starts_an_event_and_its_own_stamp_wins() -> None:
    row = "Apr 14, 2022 @ 03:14:15.000 2022-04-14 03:14:15.332  INFO 1 --- [ntainer#1-0-C-1] o.s.k.C : g: assigned: [t-1]"
    assert one(row).starts
    assert event(row).timestamp == datetime(2022, 4, 14, 3, 14, 15, 332000, tzinfo=UTC)


def test_a_kibana_row_without_a_stamp_of_its_own_has_the_rows() -> None:
    row = "Apr 14, 2022 @ 03:43:58.000 Caused by: org.apache.kafka.clients.consumer.CommitFailedException: Offset commit"
    found = event(row, timezone="Asia/Seoul")
    assert found.timestamp == datetime(2022, 4, 13, 18, 43, 58, tzinfo=UTC)
    assert found.exception == ("org.apache.kafka.clients.consumer.CommitFailedException",)
    assert "timezone" not in found.labels


def test_rows_in_any_order_are_the_same_events() -> None:
    rows = [
        f"Apr 14, 2022 @ 03:14:{s}.000 2022-04-14 03:14:{s}.332 INFO 1 --- [c-1] o.s.k.C : revoked {s}" for s in (13, 14, 15)
    ]
    forward, backward = events("\n".join(rows)), events("\n".join(reversed(rows)))
    assert {e.event_id for e in forward} == {e.event_id for e in backward}


LOGSTASH = {
    "@timestamp": "2022-06-14T15:59:11.165Z",
    "message": "Consumer exception",
    "logger_name": "dev.example.Consumer",
    "thread_name": "vert.x-0",
    "level": "ERROR",
    "stack_trace": "org.apache.kafka.clients.consumer.CommitFailedException: Offset commit\n\tat a.B.c(B.java:1)\n",
}


def test_a_logstash_document_is_a_whole_event() -> None:
    found = event(json.dumps(LOGSTASH))
    assert (
        found.text
        == "Consumer exception\norg.apache.kafka.clients.consumer.CommitFailedException: Offset commit\n\tat a.B.c(B.java:1)"
    )
    assert (found.message, found.level, found.logger, found.thread) == (
        "Consumer exception",
        "ERROR",
        "dev.example.Consumer",
        "vert.x-0",
    )
    assert found.timestamp == datetime(2022, 6, 14, 15, 59, 11, 165000, tzinfo=UTC)
    assert found.exception == ("org.apache.kafka.clients.consumer.CommitFailedException",)


@pytest.mark.parametrize("nested", [True, False])
def test_an_ecs_document_dotted_or_nested(nested: bool) -> None:
    flat = {
        "@timestamp": "2022-06-14T15:59:11.165Z",
        "message": "m",
        "log.level": "warn",
        "log.logger": "a.B",
        "error.stack_trace": "a.b.CError: x",
    }
    deep = {
        "@timestamp": flat["@timestamp"],
        "message": "m",
        "log": {"level": "warn", "logger": "a.B"},
        "error": {"stack_trace": "a.b.CError: x"},
    }
    found = event(json.dumps(deep if nested else flat))
    assert (found.level, found.logger, found.text) == ("WARN", "a.B", "m\na.b.CError: x")


def test_a_shippers_envelope_leaves_lines_to_be_joined() -> None:
    trace = [BROKER, "java.io.IOException: No space left on device", "\tat a.B.c(B.java:1)"]
    found = event("\n".join(json.dumps({"@timestamp": "2022-10-05T17:05:40Z", "message": line}) for line in trace))
    assert found.text == "\n".join(trace)
    assert found.level == "INFO"


def test_a_torn_document_is_read_as_far_as_it_goes() -> None:
    whole = json.dumps(LOGSTASH)
    assert event(whole[1:]).message == "Consumer exception"
    cut = event(whole[: whole.index("Offset commit") + 6])
    assert cut.exception == ("org.apache.kafka.clients.consumer.CommitFailedException",)
    assert cut.timestamp is not None


def test_wrappers_nest() -> None:
    inner = json.dumps({"@timestamp": "2022-10-05T17:05:40Z", "message": BROKER})
    found = event(f"kafka_1  | {docker(inner + chr(10))}")
    assert found.text == BROKER
    assert found.source_id == "server.log#kafka_1"
    assert found.timestamp == datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"log":1,"time":2}', '{"message":[]}', '{"log":', "[1]", '{"message":' * 5000, '{"_source":{}}']
)
def test_documents_of_other_shapes_are_text(text: str) -> None:
    assert one(text).text == text


def test_progress_and_ticks_pass_through() -> None:
    others = [Progress("f.log", 1, 1, True), Tick(datetime(2022, 1, 1, tzinfo=UTC))]
    assert list(unwrap(others, FORMATS)) == others


def test_the_name_of_a_program_among_several_comes_off_before_json_only() -> None:
    assert one('[0] {"level":"ERROR","message":"x"}').text == "x"
    assert one("[0] started").text == "[0] started"


@pytest.mark.parametrize(
    "prefix",
    [
        "INFO|5652/0|Service org.apache.kafka|22-01-19 10:44:46|",
        "2024-05-02T10:15:08.8011234Z ",
        "2018-10-25T22:34:19.635139+00:00 app[web.1]: ",
        "2024-05-02 12:15:08.801\t",
        "2019/12/18 上午9:43:17",
        "kafka-0 kafka ",
        "kafka-controller-0 \u203a kafka ",
        "shop kafka-controller-0 kafka ",
        "[docker] STDOUT: ",
        "[Worker-0e0766492fd1ececf] ",
        "Fri Oct  9 19:21:29 UTC 2015: ",
    ],
)
def test_what_other_programs_set_before_each_line_comes_off_its_trace_too(prefix: str) -> None:
    trace = "java.io.IOException: No space left on device"
    assert [one(prefix + line).text for line in (BROKER, trace, "\tat kafka.log.Log.append(Log.scala:9)")] == [
        BROKER,
        trace,
        "\tat kafka.log.Log.append(Log.scala:9)",
    ]


@pytest.mark.parametrize("prefix", ["2026-06-21 20:50:53 source ERROR ", "2023-11-09 13:14:31 source > "])
def test_airbyte_repeats_its_stamp_before_each_line_of_a_trace(prefix: str) -> None:
    lines = (
        "java.io.EOFException: Failed to read",
        "\tat java.base/java.lang.Thread.run(Thread.java:833)",
        "Caused by: java.io.IOException",
    )
    assert [one(prefix + line).text for line in lines] == [prefix + lines[0], *lines[1:]]


@pytest.mark.parametrize(
    "text", ["kafka-0 kafka is up", "INFO | a | b | c | text", "2024-05-02T10:15:08.8011234Z Running tests", "STDOUT: hello"]
)
def test_the_same_words_before_other_text_stay(text: str) -> None:
    assert one(text).text.endswith(text.rpartition("| ")[2])


def test_a_task_of_a_swarm_is_a_source_of_its_own() -> None:
    record = one(f"shop_kafka.1.x2lq3@node-1    | {BROKER}")
    assert (record.source_id, record.text) == ("f.log#shop_kafka.1.x2lq3@node-1", BROKER)


def test_the_code_of_an_answer_stands_behind_its_message() -> None:
    assert one('{"error_code":40403,"message":"Schema not found"}').text == "Schema not found; error code: 40403"


def test_an_error_stands_above_the_trace_of_where_it_was_logged() -> None:
    zap = (
        '{"level":"fatal","ts":1623072056.85,"msg":"Unable to create consumer","error":"kafka: EOF",'
        '"stacktrace":"main.main\\n\\tmain.go:75"}'
    )
    found = event(zap)
    assert found.text == "Unable to create consumer\nkafka: EOF\nmain.main\n\tmain.go:75"
    assert event(zap[1:]) == found  # its first brace lost
    assert event(zap[: zap.index("\\n")]).text == "Unable to create consumer\nkafka: EOF\nmain.main"


@pytest.mark.parametrize("key", ["sarama_error", "cause", "lastError", "kafka.error_message", "rootCause", "deliveryErr"])
def test_an_error_may_stand_under_a_name_of_the_programs_own(key: str) -> None:
    assert event(f'{{"level":"warn","msg":"no leader","{key}":"kafka: EOF"}}').text == "no leader\nkafka: EOF"
    assert event(f'{{"level":"warn","msg":"no leader: kafka: EOF","{key}":"kafka: EOF"}}').text == "no leader: kafka: EOF"
    assert event(f'{{"level":"warn","msg":"no leader","{key}":7}}').text == "no leader"


@pytest.mark.parametrize("key", ["because", "errors_total", "terror", "error_count", "causes"])
def test_other_names_tell_no_error(key: str) -> None:
    assert event(f'{{"level":"warn","msg":"no leader","{key}":"kafka: EOF"}}').text == "no leader"


def test_what_a_shipper_says_of_its_own_errors_is_no_part_of_the_line() -> None:
    assert one('{"message":"plain","parse_error":"no match"}').text == "plain"


def test_a_broken_document_is_read_whatever_it_begins_with() -> None:
    first, second = events(
        '{"level":"ERROR","timestamp":"2022-07-19T09:52:20.557Z","logger":"kafkajs","message":"[Connection] Connection error",'
        '"stack":"Error:\n'
        'afterConnect (node:net:1187:16)"}\n{"level":"info","time":1663651683,"msg":"next", "cut'
    )
    assert (first.level, first.logger, second.level, second.message) == ("ERROR", "kafkajs", "INFO", "next")
    assert second.timestamp == datetime(2022, 9, 20, 5, 28, 3, tzinfo=UTC)


def test_mongodbs_letter_is_a_level() -> None:
    found = event(
        '{"t":{"$date":"2023-07-19T09:52:20.557+00:00"},"s":"W","c":"NETWORK","id":1,"ctx":"l","msg":"Connection ended"}'
    )
    assert (found.level, found.timestamp) == ("WARN", datetime(2023, 7, 19, 9, 52, 20, 557000, tzinfo=UTC))
    assert event('{"time":"2023-07-19T09:52:20Z","s":"Sum","msg":"x"}').level == ""


def test_rows_of_a_table_of_times_and_messages() -> None:
    azure = one(r"9/20/2022, 5:28:03.265 AM | %3\|1663651683.264\|FAIL\|rdkafka#consumer-1\| [thrd:k:9092/0]: x")
    assert azure.text == "%3|1663651683.264|FAIL|rdkafka#consumer-1| [thrd:k:9092/0]: x"
    assert azure.at == datetime(2022, 9, 20, 5, 28, 3, 265000, tzinfo=UTC)
    assert one("| 1731064812979 | START RequestId: a   |").text == "START RequestId: a"
    insights = one(f"| 2022-10-05 17:05:40.000 | {BROKER} |")
    assert (insights.text, insights.at) == (BROKER, datetime(2022, 10, 5, 17, 5, 40, tzinfo=UTC))
    for text in ("| @timestamp | @message |", "| --- | --- |", "9/20/2022, 5:28:03 AM ERROR a | b", "| 12 | x |"):
        assert one(text).text == text


def test_kail_names_the_container_of_each_line() -> None:
    record = one("shop/fluent-bit-rq45j[fluent-bit]: [2018/01/17 03:42:04] [error] [out_kafka] Receive failed: Disconnected")
    assert record.source_id == "f.log#fluent-bit-rq45j/fluent-bit"
    assert record.labels == {"pod": "fluent-bit-rq45j", "container": "fluent-bit"}
    assert record.text.startswith("[2018/01/17")
    assert one("postfix/smtpd[4711]: connect from k").source_id == "f.log"


def test_what_a_lambda_prints_as_json_is_read() -> None:
    document = '{"level":"WARN","timestamp":"2020-10-20T09:36:22.149Z","logger":"kafkajs","message":"Connection timeout"}'
    for stamp in (
        "2020-10-20T09:36:22.149Z\t792bad59-e2e3-43de-a089-46b2b98bf355\tERROR\t",
        "2020-10-20T09:36:22.149Z undefined INFO ",
    ):
        assert (event(stamp + document).level, event(stamp + document).message) == ("WARN", "Connection timeout")


@pytest.mark.parametrize(
    ("document", "message", "level", "logger"),
    [
        (
            '{"@t":"2021-05-12T10:11:12.1234567Z","@mt":"No {Topic}","@l":"Error","SourceContext":"A.B"}',
            "No {Topic}",
            "ERROR",
            "A.B",
        ),
        ('{"Timestamp":"2021-05-12T10:11:12Z ","LogLevel":"Warning","Category":"A.B","Message":"No"}', "No", "WARN", "A.B"),
        (
            '{"timestamp":"2021-05-12T10:11:12Z","jsonPayload":{"message":"No","level":"WARN"},"severity":"INFO"}',
            "No",
            "WARN",
            "",
        ),
        ('{"message":"outer","level":"INFO","result":{"message":"inner","level":"ERROR"}}', "outer", "INFO", ""),
    ],
)
def test_documents_of_net_and_of_clouds(document: str, message: str, level: str, logger: str) -> None:
    found = event(document)
    assert (found.message, found.level, found.logger) == (message, level, logger)


def test_a_line_in_a_clouds_envelope_is_a_line() -> None:
    for envelope in (
        {"insertId": "a", "textPayload": BROKER + chr(10), "timestamp": "2022-10-05T17:05:40Z", "severity": "ERROR"},
        {"content": {"timestamp": "2022-10-05T17:05:40Z", "message": BROKER, "service": "kafka"}},
        {"preview": False, "result": {"_raw": BROKER, "_time": "2022-10-05T17:05:40.000+00:00"}},
    ):
        found = event(json.dumps(envelope))
        assert (found.level, found.logger, found.message) == ("INFO", "kafka.server.KafkaServer", "[KafkaServer id=1] started")
    for prefix in ("   2022-10-05T17:05:40.12+0200 [APP/PROC/WEB/0] OUT ", "10/5/22 5:05:39.869 PM\t"):
        assert one(prefix + BROKER).text == BROKER


def test_the_level_of_java_util_logging_is_below() -> None:
    stamp = "May 12, 2021 10:11:12 AM org.apache.kafka.clients.NetworkClient process"
    found = event(f"{stamp}\nSEVERE: x\na.b.CException: y\n\tat a.B.c(B.java:1)")
    assert (found.level, found.message, found.exception) == ("FATAL", "x", ("a.b.CException",))
