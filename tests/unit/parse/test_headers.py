"""The shipped layouts: each reads its examples, and what a header says reaches the event."""

from __future__ import annotations

import pytest

from engine.model.rules import Format
from engine.parse.headers import Header, header_book, level_of
from tests.unit.parse.reading import FORMATS, documents

BOOK = header_book(FORMATS)
EXAMPLES = [(name, example) for name, document in documents().items() for example in document["examples"]]


def read(line: str) -> Header:
    header = BOOK.read(line)
    assert header is not None
    return header


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_every_layout_is_the_one_that_reads_its_examples(name: str, example: str) -> None:
    assert read(example).format.name == name


@pytest.mark.parametrize("name", documents())
def test_a_layout_is_called_as_its_file_and_has_examples(name: str) -> None:
    assert documents()[name]["name"] == name
    assert documents()[name]["examples"]


def test_a_broker_line() -> None:
    header = read("[2022-10-05 17:05:39,869] INFO [GroupMetadataManager brokerId=1] Removed 0 (kafka.coordinator.group.GMM)")
    assert (header.time, header.level) == ("2022-10-05 17:05:39,869", "INFO")
    assert header.logger == "kafka.coordinator.group.GMM"
    assert header.message == "[GroupMetadataManager brokerId=1] Removed 0"


@pytest.mark.parametrize("scope", ["task-0", "task-0|offsets", "worker"])
def test_connect_names_connector_and_task_in_its_mdc(scope: str) -> None:
    header = read(f"[2023-02-03 02:05:02,285] ERROR [cdc-source|{scope}] x failed (org.apache.kafka.connect.runtime.W:406)")
    task = {"task": "0"} if "task" in scope else {}
    assert header.labels == {"connector": "cdc-source", **task}
    assert header.message == "x failed"
    assert header.logger == "org.apache.kafka.connect.runtime.W"


def test_a_broker_prefix_in_brackets_is_not_taken_for_connects_mdc() -> None:
    header = read("[2023-02-03 02:05:02,285] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)")
    assert header.labels == {}
    assert header.message == "[KafkaServer id=1] started"


def test_words_in_parentheses_at_the_end_are_no_logger() -> None:
    header = read("[2023-02-03 02:05:02,285] WARN Connection refused (timeout)")
    assert (header.logger, header.message) == ("", "Connection refused (timeout)")


def test_spring_boot_old_and_new() -> None:
    old = read("2022-04-14 03:14:15.332  INFO 1 --- [ntainer#1-0-C-1] o.s.k.l.Container : g: assigned: [t-0]")
    new = read("2024-04-14T03:14:15.332+09:00  INFO 1 --- [orders] [ntainer#1-0-C-1] o.s.k.l.Container  : g: assigned: [t-0]")
    for header in (old, new):
        assert header.thread == "ntainer#1-0-C-1"
        assert header.logger == "o.s.k.l.Container"
        assert header.message == "g: assigned: [t-0]"


def test_spring_boot_with_sleuth() -> None:
    header = read(
        "2022-04-14 03:14:15.332  WARN [orders,3a4f,9b,true] 7 --- [           main] o.a.k.clients.NetworkClient : lost"
    )
    assert (header.level, header.thread, header.message) == ("WARN", "main", "lost")


def test_a_thread_at_the_end_or_before_the_class() -> None:
    old = read("2019-03-26 21:11:44,650 INFO [KafkaServer id=1] shutting down (kafka.server.KafkaServer) [kafka-shutdown-hook]")
    new = read("2025-06-30 10:53:55 ERROR [main] BrokerServer:72 - [BrokerServer id=2] Received a fatal error")
    assert (old.thread, old.logger, old.message) == (
        "kafka-shutdown-hook",
        "kafka.server.KafkaServer",
        "[KafkaServer id=1] shutting down",
    )
    assert (new.thread, new.logger, new.message) == ("main", "BrokerServer", "[BrokerServer id=2] Received a fatal error")


def test_logback_without_a_date_has_a_level_and_no_stamp() -> None:
    header = read("12:31:53.415 [main] WARN  com.example.App - lost")
    assert (header.time, header.level, header.thread, header.logger) == ("", "WARN", "main", "com.example.App")


@pytest.mark.parametrize(
    "line",
    [
        "\tat org.apache.kafka.connect.runtime.WorkerTask.run(WorkerTask.java:244)",
        "Caused by: java.io.IOException: No space left on device",
        "org.apache.kafka.common.errors.TimeoutException: Expiring 1 record(s)",
        "\tbatch.size = 16384",
        "",
        '{"name":"cdc-source"}',
        "ERROR: relation does not exist",
    ],
)
def test_what_begins_no_event(line: str) -> None:
    assert BOOK.find(line) is None
    assert BOOK.read(line) is None


def test_any_line_with_a_stamp_begins_an_event_but_vouches_for_nothing() -> None:
    assert BOOK.find("2022-10-05 17:05:39 something else") is not None
    assert not BOOK.knows("2022-10-05 17:05:39 something else")
    assert BOOK.knows("[2022-10-05 17:05:39,869] INFO x (a.B)")


def test_the_lowest_rank_wins_whatever_the_order_of_the_formats() -> None:
    one, two = Format("one", "^a(?P<message>.*)", rank=1), Format("two", "^a", rank=2, labels={"x": "y"})
    for formats in ((one, two), (two, one)):
        found = header_book(formats).find("abc")
        assert found is one


def test_a_format_gives_its_own_labels() -> None:
    header = header_book((Format("f", r"^(?P<pod>[\w-]+)!", labels={"container": "kafka"}),)).read("broker-0! up")
    assert header is not None
    assert header.labels == {"container": "kafka", "pod": "broker-0"}


def test_without_formats_nothing_has_a_header() -> None:
    assert header_book(()).read("[2022-10-05 17:05:39,869] INFO x (a.B)") is None


def test_levels_have_one_name() -> None:
    assert [level_of(word) for word in ("warning", "W", "4", "err", "SEVERE", "info", "")] == [
        "WARN", "WARN", "WARN", "ERROR", "FATAL", "INFO", "",
    ]  # fmt: skip


def test_characters_beyond_ascii_do_not_shift_the_groups() -> None:
    header = read("[2022-10-05 17:05:39,869] ERROR 고객 주문 실패 → 재시도 (com.example.주문.Order) (kafka.server.X)")
    assert (header.message, header.logger) == ("고객 주문 실패 → 재시도 (com.example.주문.Order)", "kafka.server.X")
