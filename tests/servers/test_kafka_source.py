"""KafkaSource on a real broker: every committed record once, in order, whatever holes the log has; what is lost is said."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message

from connectors.kafka import cluster, open_source, reading
from connectors.kafka.offsets import RECORD_POSITIONS, LostOffsets, OffsetRange
from connectors.kafka.proving import put_line
from connectors.kafka.reading import RangeReader
from connectors.kafka.source import KafkaSource
from engine.cli.evidence_reading import InputReader
from engine.config import load
from engine.errors import SourceAway, SourceError, SourceMissing
from engine.model.incidents import Evidence
from engine.model.matches import Match
from engine.model.proof import Neighbours
from engine.parse.decoding import event_id
from engine.spark.slices import SliceFragments, scan, stages
from engine.spark.streams import Retraction, Streams
from tests.rulepack.playing import plan
from tests.servers.batches import Reader
from tests.servers.broker import Broker
from tests.servers.topics import Topics


@pytest.fixture
def source(topics: Topics) -> Callable[..., KafkaSource]:
    def opened(topic: str, **settings: Any) -> KafkaSource:
        return open_source({"bootstrap_servers": topics.address, "topic": topic, **settings})

    return opened


Open = Callable[..., KafkaSource]


def test_all_partitions_are_read_once_in_order_in_batches_of_any_size(topics: Topics, source: Open) -> None:
    topic = topics.make(partitions=3)
    for partition in range(3):
        topics.write(topic, (f"{partition}:{n}" for n in range(100)), partition=partition)
    for size in (1000, 37, None):
        reader = Reader(source(topic), size).drain()
        assert sorted(reader.lines()) == sorted((f"{topic}-{p}", f"{p}:{n}") for p in range(3) for n in range(100))
        assert reader.contiguous()
        assert all(progress.caught_up for progress in reader.source.progress(reader.at))
        offsets = [line.offset for line in reader.raw() if line.source_id == f"{topic}-1"]
        assert offsets == [n * RECORD_POSITIONS for n in range(100)]


def test_a_line_that_proves_the_way_is_read_from_the_stream_that_it_was_put_into(topics: Topics, source: Open) -> None:
    topic = topics.make(partitions=3)
    reader = Reader(source(topic))
    stream = put_line(topics.address, {"fetch.max.bytes": "1000000"}, topic, '{"message": "one"}')
    assert reader.drain().lines() == [(stream, '{"message": "one"}')]


def test_the_consumer_stays_and_hands_out_what_it_fetched_ahead(topics: Topics, source: Open) -> None:
    topic = topics.make(partitions=2)
    reader = Reader(source(topic), 10)
    for round_ in range(3):
        topics.write(topic, (f"{round_}:{n}" for n in range(50)), partition=round_ % 2)
        reader.drain()
    assert sorted(text for _, text in reader.lines()) == sorted(f"{r}:{n}" for r in range(3) for n in range(50))
    assert reader.contiguous()


def test_aborted_transactions_are_not_read_and_control_records_at_the_end_do_not_hang(topics: Topics, source: Open) -> None:
    topic = topics.make(partitions=2)
    topics.transaction(topic, ["a1", "a2"], commit=False)
    topics.transaction(topic, ["c1", "c2"], commit=True)
    topics.write(topic, ["plain"])
    topics.transaction(topic, ["a3", "a4"], commit=False)
    topics.transaction(topic, ["only aborted"], commit=False, partition=1)
    for size in (1, 4, None):
        reader = Reader(source(topic), size).drain()
        assert reader.lines() == [(f"{topic}-0", text) for text in ("c1", "c2", "plain")]
        assert reader.contiguous()
        assert [(each["at"], each["end"]) for each in reader.at.values()] == [(10, 10), (2, 2)]
    topics.write(topic, ["next"])
    assert reader.drain().lines()[-1] == (f"{topic}-0", "next")


def test_an_open_transaction_is_waited_for_and_nothing_behind_it_is_read(topics: Topics, source: Open) -> None:
    topic = topics.make()
    with topics.open_transaction(topic, ["in it"]):
        topics.write(topic, ["behind"])
        reader = Reader(source(topic)).drain()
        assert reader.lines() == []
    topics.until(lambda: bool(reader.drain().lines()))  # a broker says that a transaction is over, and then ends it
    assert [text for _, text in reader.lines()] == ["in it", "behind"]


def test_a_compacted_topic_has_holes_and_none_of_them_is_waited_for(topics: Topics, source: Open) -> None:
    topic = topics.make(cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01")
    for n in range(20):
        topics.write(topic, [f"old {n}"], key="a" if n % 4 else f"b{n}")
    topics.write(topic, ["last"], key="c")

    def compacted() -> bool:
        return len(Reader(source(topic)).drain().lines()) < 10

    topics.until(compacted)
    whole = Reader(source(topic)).drain()
    pieces = Reader(source(topic), 2).drain()
    assert pieces.lines() == whole.lines()
    assert whole.lines()[-1] == (f"{topic}/c", "last")
    assert {text for _, text in whole.lines()} >= {"old 0", "old 4", "old 8", "old 12", "old 16"}
    assert pieces.contiguous()
    assert whole.lost == pieces.lost == []


def test_partitions_added_while_nobody_looked_are_read_from_their_beginning(topics: Topics, source: Open) -> None:
    topic = topics.make()
    reader = Reader(source(topic, start="latest")).drain()
    topics.grow(topic, 3)
    topics.write(topic, ["first of a new one"], partition=2)
    topics.until(reader.batch)
    assert reader.drain().lines() == [(f"{topic}-2", "first of a new one")]


def test_a_record_of_five_megabytes_is_read_whole(topics: Topics, source: Open) -> None:
    topic = topics.make(max_message_bytes="8000000")
    big = "x" * 4_999_990 + " the end"
    topics.write(topic, ["before", f"{big}\nsecond line", "after"])
    reader = Reader(source(topic)).drain()
    assert [text for _, text in reader.lines()] == ["before", big, "second line", "after"]
    assert [line.offset for line in reader.raw()] == sorted({line.offset for line in reader.raw()})


def test_records_that_were_deleted_before_they_were_read_are_a_loss_and_the_rest_is_read(topics: Topics, source: Open) -> None:
    topic = topics.make(partitions=2)
    for partition in range(2):
        topics.write(topic, (str(n) for n in range(10)), partition=partition)
    reader = Reader(source(topic), 6)
    assert reader.batch()
    topics.cut(topic, 0, 7)
    topics.cut(topic, 1, 10)
    reader.source = source(topic, options={"client.id": "later"})  # a consumer that has fetched nothing ahead
    reader.drain()
    assert [text for s, text in reader.lines() if s == f"{topic}-0"] == ["0", "1", "2", "7", "8", "9"]
    assert [text for s, text in reader.lines() if s == f"{topic}-1"] == ["0", "1", "2"]
    assert sorted((loss.source_id, loss.lost_from, loss.lost_to) for loss in reader.lost) == [
        (f"{topic}-0", 3, 7),
        (f"{topic}-1", 3, 10),
    ]
    assert "begins at offset 7" in str(min(reader.lost, key=str))
    assert not reader.contiguous()


def test_records_deleted_after_a_batch_was_planned_are_a_loss_too(topics: Topics, source: Open) -> None:
    topic = topics.make()
    topics.write(topic, (str(n) for n in range(10)))
    opened = source(topic)
    (planned,) = opened.partitions(opened.initial(), opened.latest(opened.initial()))
    topics.cut(topic, 0, 8)
    reader = Reader(opened)
    assert [line.value for chunk in reader._chunks(planned) for line in chunk.lines()] == [b"8", b"9"]
    assert [(loss.lost_from, loss.lost_to) for loss in reader.lost] == [(0, 8)]


def test_a_topic_made_anew_is_a_loss_of_unknown_size_and_is_read_from_its_beginning(topics: Topics, source: Open) -> None:
    topic = topics.make()
    topics.write(topic, (str(n) for n in range(10)))
    reader = Reader(source(topic)).drain()
    topics.drop(topic)
    assert reader.batch() is False  # a topic that is gone has nothing new
    topics.make(name=topic)
    topics.write(topic, ["anew"])
    topics.until(reader.batch)
    assert reader.drain().lines()[-1] == (f"{topic}-0", "anew")
    (loss,) = reader.lost
    assert (loss.lost_from, loss.lost_to) == (10, 10)
    assert "created again" in str(loss)


def test_a_topic_made_anew_that_has_grown_past_what_was_read_is_noticed_and_read_from_its_beginning(
    topics: Topics, source: Open
) -> None:
    topic = topics.make(partitions=2)
    topics.write(topic, ["old 1", "old 2"])
    reader = Reader(source(topic)).drain()
    topics.drop(topic)
    topics.make(name=topic, partitions=2)
    topics.write(topic, (f"new {n}" for n in range(5)))
    topics.until(reader.batch)
    assert [text for _, text in reader.drain().lines()] == ["old 1", "old 2", *(f"new {n}" for n in range(5))]
    (loss,) = reader.lost
    assert (loss.lost_from, loss.lost_to) == (2, 2)
    assert "deleted and created again" in str(loss)


def test_the_start_is_the_beginning_the_end_or_a_time(topics: Topics, source: Open) -> None:
    topic = topics.make(partitions=2)
    topics.write(topic, ["old"])
    (line,) = Reader(source(topic)).drain().raw()
    assert line.ingested_at is not None
    assert Reader(source(topic, start="latest")).drain().lines() == []
    assert len(Reader(source(topic, start=line.ingested_at.isoformat())).drain().lines()) == 1
    assert Reader(source(topic, start="2100-01-01T00:00:00Z")).drain().lines() == []


def test_bounded_input_ends_where_it_ended_at_the_first_look(topics: Topics, source: Open) -> None:
    topic = topics.make()
    topics.write(topic, ["1", "2", "3"])
    reader = Reader(source(topic, final=True), 2)
    topics.write(topic, ["late"])
    assert [text for _, text in reader.drain().lines()] == ["1", "2", "3"]


def test_a_topic_that_is_not_there_is_told_and_a_run_without_end_waits_for_it(topics: Topics, source: Open) -> None:
    with pytest.raises(SourceMissing, match=r"^the topic nowhere does not exist on 127\.0\.0\.1:\d+$"):
        source("nowhere", final=True).initial()
    waiting = Reader(source("comes-later", start="latest")).drain()
    assert topics.names().isdisjoint({"nowhere", "comes-later"})  # looking makes none
    topics.write(topics.make(name="comes-later"), ["first"])
    topics.until(waiting.batch)
    assert waiting.lines() == [("comes-later-0", "first")]


def test_a_broker_that_refuses_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    closed = open_source({"bootstrap_servers": f"127.0.0.1:{port}", "topic": "logs"})
    for ask in (closed.initial, lambda: closed.latest({"0": {"at": 1, "end": 1}})):
        with pytest.raises(
            SourceAway, match=rf"no broker of 127\.0\.0\.1:{port} answers: .*Connection refused.*; check the address"
        ):
            ask()


def test_options_that_librdkafka_does_not_take_are_told(source: Open) -> None:
    with pytest.raises(SourceError, match=r"No such configuration property: .no\.such."):
        source("logs", options={"no.such": "1"}).initial()


def test_stack_traces_of_two_files_interleaved_over_records_and_batches_are_joined(topics: Topics, source: Open) -> None:
    topic = topics.make()
    header = (
        "[2022-10-05 17:05:0{n},000] ERROR [c-{n}|task-0] WorkerSourceTask{{id=c-{n}-0}} failed to send record to t: (o.a.k.c)"
    )
    rest = [
        "org.apache.kafka.common.errors.RecordTooLargeException: The message is 11{n} bytes when serialized which is larger"
        " than 10, which is the value of the max.request.size configuration.",
        "[2022-10-05 17:06:0{n},000] INFO [c-{n}|task-0] fine (o.a.k.c)",
    ]
    for text in (header, *rest):
        for n in (1, 2):
            topics.ship(topic, f"/logs/w{n}.log", [text.format(n=n)])
    found = {size: _matches(Reader(source(topic), size).drain()) for size in (1, 2, 5, None)}
    (first, second) = sorted(found[None], key=lambda match: match.source_id)
    assert (first.source_id, second.source_id) == (f"{topic}/h1:/logs/w1.log", f"{topic}/h1:/logs/w2.log")
    assert "111 bytes" in first.text
    assert "112 bytes" in second.text
    assert all(sorted(m.event_id for m in matches) == sorted(m.event_id for m in found[None]) for matches in found.values())


def _matches(reader: Reader) -> list[Match]:
    """What the slices of each batch and the state between them say in the end."""
    compiled = stages(plan())
    streams, said = Streams(compiled, {}), list[Any]()
    for batch in reader.batches:
        items = list(scan(batch, compiled))
        said += [*items, *streams.join(item for item in items if isinstance(item, SliceFragments))]
    for stream in list(streams.states):
        said += streams.close(stream)
    assert not any(isinstance(item, Retraction) for item in said)
    return [item for item in said if isinstance(item, Match) and not item.rule_id.startswith("component:")]


def _texts(reader: RangeReader, *wanted: OffsetRange) -> list[str | LostOffsets]:
    return [text for item in reader.read(wanted) for text in ([item] if isinstance(item, LostOffsets) else map(_text, item))]


def _text(message: Message) -> str:
    return message.value().decode()  # type: ignore[union-attr, return-value]


def test_what_was_fetched_past_a_range_is_kept_or_fetched_again_but_never_lost(topics: Topics) -> None:
    topic = topics.make(partitions=2)
    for partition in range(2):
        topics.write(topic, (str(n) for n in range(500)), partition=partition)
    for stashed in (0, 50, 10_000):
        reader = RangeReader(topics.address, {}, topic, stashed=stashed)
        found = [text for n in range(0, 500, 100) for text in _texts(reader, OffsetRange(0, n, n + 100))]
        assert found == [str(n) for n in range(500)]
        assert _texts(reader, OffsetRange(1, 7, 9), OffsetRange(0, 3, 5)) in (["7", "8", "3", "4"], ["3", "4", "7", "8"])
        reader.close()


def test_at_the_end_of_the_log_nothing_more_is_waited_for(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Asked:
        """A consumer that notes how many records it is asked for: it waits until it has as many."""

        def __init__(self, consumer: Consumer) -> None:
            self._consumer = consumer

        def consume(self, count: int, timeout: float) -> list[Message]:
            asked.append(count)
            return self._consumer.consume(count, timeout)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._consumer, name)

    topic = topics.make()
    topics.write(topic, (str(n) for n in range(250)))
    monkeypatch.setattr(reading, "client", lambda kind, settings: Asked(cluster.client(kind, settings)))
    reader = RangeReader(topics.address, {}, topic)
    assert len(_texts(reader, OffsetRange(0, 0, 250))) == 250
    assert asked[0] == reading.BATCH
    assert asked[-1] <= 50
    reader.close()


def test_a_planned_range_of_a_topic_that_was_deleted_is_not_taken_as_read(topics: Topics) -> None:
    topic = topics.make()
    topics.write(topic, ["1", "2"])
    topics.drop(topic)
    reader = RangeReader(topics.address, {}, topic, patience_s=3)
    with pytest.raises(SourceAway, match=f"the topic {topic} does not exist"):
        _texts(reader, OffsetRange(0, 0, 2))
    reader.close()


def test_a_broker_that_goes_and_comes_back_is_waited_for(broker: Broker, topics: Topics, source: Open) -> None:
    topic = topics.make()
    topics.write(topic, ["before"])
    reader = Reader(source(topic)).drain()
    broker.stop()
    assert reader.batch() is False
    broker.start()
    topics.write(topic, ["after"])
    topics.until(reader.batch)
    assert [text for _, text in reader.drain().lines()] == ["before", "after"]


def test_what_stands_around_a_line_is_read_again_until_its_records_are_deleted(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2)
    now = datetime.now(UTC).replace(microsecond=0)
    lines = [f"[{now:%Y-%m-%d %H:%M:%S},{n:03}] INFO line {n} (x)" for n in range(50)]
    topics.write(topic, lines, partition=1)
    topics.write(topic, ["of another partition"] * 50)
    config = tmp_path / "tocsin.yml"
    source = f"{{type: kafka, bootstrap_servers: '{topics.address}', topics: [{topic}], timezone: UTC, start: earliest}}"
    config.write_text(f"sources:\n  - {source}\nstore: sqlite:///{tmp_path}/tocsin.db\n")
    raw = Reader(open_source({"bootstrap_servers": topics.address, "topic": topic})).drain().raw()
    (own,) = [line for line in raw if line.value.decode() == lines[20]]
    when = now + timedelta(milliseconds=20)
    evidence = Evidence(event_id(own.source_id, when, lines[20], None), own.source_id, 0, when, lines[20])
    reader = InputReader(load(config))
    assert reader.may_read(evidence)
    assert reader.neighbours(evidence) == Neighbours(tuple(lines[15:20]), tuple(lines[21:26]))
    topics.cut(topic, partition=1, before=30)
    with pytest.raises(SourceMissing, match=r"does not hold that time any longer|not among the"):
        InputReader(load(config)).neighbours(evidence)
