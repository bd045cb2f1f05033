"""Columns say what the stages say: the same matches, spans and unknown errors, whatever layouts and wrappers are mixed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache import DiskCache
from engine.cli.unknown import ERROR_SIGN
from engine.columns import audit, reading
from engine.columns.audit import ReadFacts
from engine.columns.by_line import LineStages
from engine.columns.lines import to_us
from engine.columns.reading import LearntTexts, Reader
from engine.match import Matcher, redact
from engine.match.activity import ActivityTracker
from engine.model.matches import Match
from engine.model.records import Labels
from engine.parse import Assembler
from engine.ports import NO_INGEST_TIME, Chunk, RecordPositions
from engine.quarantine import Quarantine
from tests.hostile import HOSTILE
from tests.rulepack.playing import SAMPLES, plan
from tests.wrapping import DOCUMENTS, ROWS, mingled, wrapped

CAPTURED = Path(__file__).parents[2] / "captured"
LOGS = sorted([*SAMPLES.rglob("*.log*"), *CAPTURED.rglob("*.log")])
TAKEN = datetime(2027, 1, 1, tzinfo=UTC)
TAKEN_US, WRITTEN_US, DAY_US = to_us(TAKEN), to_us(datetime(2022, 10, 5, tzinfo=UTC)), 86_400_000_000
BAD = ("FATAL", "ERROR")

HEADS = (
    "[{iso},{ms}] INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets in {n} milliseconds. (k.c.g.G)",
    "[{iso},{ms}] INFO Rolled new log segment at offset {n} in 3 ms. (kafka.log.Log)",
    "[{iso},{ms}] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-{n} (k.s.ReplicaManager)",
    "[{iso},{ms}] WARN [Producer clientId=p-{n}] Connection to node {n} (kafka-2/10.0.0.2:9092) could not be established. "
    "Broker may not be available. (org.apache.kafka.clients.NetworkClient)",
    "{iso}.{ms} ERROR 1 --- [main] c.e.Consumer : Unknown trouble {n} with password={n}secret",
    "{iso}.{ms}  INFO 1 --- [main] o.a.k.c.Metadata : [Consumer clientId=c-{n}, groupId=billing] Cluster ID: X{n}",
    "{iso},{ms} INFO [main] o.a.k.c.u.AppInfoParser - Kafka version: 3.{n}.0",
    "{iso} {ms} 파티션을 읽을 수 없습니다 é {n}",
    "E1005 17:05:{s}.{ms}000   {n} consumer.go:12] Failed to commit {n}: i/o timeout",
    "%3|16649{n:08d}.{ms}|FAIL|rdkafka#producer-1| [thrd:b:9092/bootstrap]: b:9092/bootstrap: Connect to ipv4#10.0.0.{n}:9092 "
    "failed: Connection refused (after 0ms in state CONNECT)",
    "%6|16649{n:08d}.{ms}|FAIL|rdkafka#producer-1| [thrd:b:9092/bootstrap]: b:9092/bootstrap: Disconnected {n}",
    "ERROR no stamp {n} (org.apache.kafka.clients.NetworkClient)",
    '10.0.0.{n} - - [05/Oct/2022:17:05:{s} +0000] "GET /topics/{n} HTTP/1.1" 500 {n}',
)
BELOW = (
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set({n}) is insufficient",
    "\tat kafka.server.ReplicaManager.append(ReplicaManager.scala:{n})",
    "Caused by: java.lang.IllegalStateException: no {n}",
    "\tretries = {n}",
    "   ",
    "",
    "{{",
    "\x1b[31mred {n}\x1b[0m **bold** </span>",
    "windows {n}\r",
    "worker-1  | [{iso},{ms}] ERROR of another",
    '{{"level": "ERROR", "message": "[Consumer clientId=c, groupId=g] no {n}", "@timestamp": "{iso}.{ms}Z"}}',
    "  {iso},{ms} INFO behind blanks",
    "> [{iso},{ms}] INFO quoted {n}",
)


def chunks_of(data: bytes, steps: Sequence[int], labels: Labels, source_id: str = "a.log") -> Iterator[Chunk]:
    """Cut data into chunks of whole lines, of so many lines in turn."""
    lines, offset, number, turn = data.splitlines(keepends=True), 0, 1, 0
    while lines:
        some, lines = lines[: steps[turn % len(steps)]], lines[steps[turn % len(steps)] :]
        piece = b"".join(some)
        yield Chunk(source_id, offset, piece, number, TAKEN, labels)
        offset, number, turn = offset + len(piece), number + len(some), turn + 1


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ENOUGH", 2)


@cache
def _matcher() -> Matcher:
    return Matcher(plan(), DiskCache())


@cache
def _learnt() -> LearntTexts:
    """One for all: what it has learnt must not matter."""
    return LearntTexts(plan(), _matcher(), (ERROR_SIGN,))


def _stages(facts: ReadFacts) -> LineStages:
    return LineStages(plan(), _matcher(), Assembler(plan().formats), ActivityTracker(), facts.observe)


def by_columns(data: bytes, steps: Sequence[int] = (1 << 30,), labels: Labels = {"cluster": "x"}) -> Counter[str]:  # noqa: B006
    return _read([[chunk] for chunk in chunks_of(data, steps, labels)])


def _read(blocks: Iterable[Sequence[Chunk]]) -> Counter[str]:
    """Return the results of columns for these blocks."""
    facts = ReadFacts()
    stages = _stages(facts)
    reader = Reader(_learnt(), stages)
    for chunks in blocks:
        facts.take(reader.read(chunks))
    facts.take(stages.blocks(stages.assembler.flush()))
    stages.report()
    return facts.take(stages.activity.close()).facts()


def by_stages(data: bytes, labels: Labels = {"cluster": "x"}) -> Counter[str]:  # noqa: B006
    return _staged(chunks_of(data, (1 << 30,), labels))


def _staged(chunks: Iterable[Chunk]) -> Counter[str]:
    """Return the results of the stages of the pipeline."""
    return audit.by_stages(plan(), (line for chunk in chunks for line in chunk.lines()))


@pytest.mark.slow
@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_log_says_the_same(path: Path) -> None:
    data = path.read_bytes()
    assert by_columns(data) == by_stages(data)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([*ROWS, *DOCUMENTS]), max_size=2),
    st.sampled_from([0.0, 0.03]),
    st.lists(st.integers(20, 150), min_size=1, max_size=3),
    st.sampled_from(["UTC", "America/New_York"]),
)
def test_any_mixture_says_the_same(seed: int, wrappers: list[str], odd: float, steps: list[int], zone: str) -> None:
    random = Random(seed)
    histories = [wrapped(mixture(random, odd), wrappers, random, odd) for _ in range(2)]
    rows = islice(mingled(histories, random), 150)
    data = "\n".join(rows).encode("utf-8", "replace") + b"\n"
    labels = {"cluster": "x", "timezone": zone}
    assert by_columns(data, steps, labels) == by_stages(data, labels)


def mixture(random: Random, odd: float) -> Iterator[str]:
    """Lines of one source: one layout or many, times that go on, and some that go back or pause."""
    heads = random.sample(HEADS, random.choice([1, 2, len(HEADS)]))
    at = datetime(2022, 10, 30, 1, 20) if random.random() < 0.2 else datetime(2022, 10, 5, 17, 5)
    for _ in range(400):
        at += timedelta(
            seconds=random.choice([0.001, 0.4, 7, 70 if random.random() < 0.1 else 1, -90 if random.random() < odd else 1])
        )
        fill = {"iso": f"{at:%Y-%m-%d %H:%M:%S}", "ms": f"{at.microsecond // 1000:03d}", "s": f"{at:%S}"}
        yield random.choice(heads).format(n=random.choice([0, 1, 3, 7, 12, 345, 99999]), **fill)
        for _ in range(random.choice([0, 0, 0, 1, 3])):
            yield random.choice(BELOW if random.random() < 10 * odd else BELOW[:4]).format(n=random.randrange(2000), **fill)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_input_says_the_same(number: int) -> None:
    head = HEADS[1].format(iso="2022-10-05 17:05:00", ms="001", n=1, s="00")
    rows = [head, *([head, HOSTILE[number]] * 3), head]
    data = "\n".join(rows).encode("utf-8", "surrogatepass") + b"\n"
    assert by_columns(data) == by_stages(data)


def test_a_trace_within_a_document_and_one_below_it_are_events_of_their_own() -> None:
    """The text is the same, the first line is not, and so is not the id."""
    head = {"@timestamp": "2022-10-05T17:00:00.000Z", "log.level": "ERROR", "ecs.version": "1.2.0", "message": "not appended"}
    document = {**head, "log.logger": "kafka.server.ReplicaManager"}
    reason = "The size of the current ISR Set(0) is insufficient to satisfy the min.isr requirement of 2 for partition a-0"
    trace = f"org.apache.kafka.common.errors.NotEnoughReplicasException: {reason}"
    below = [json.dumps(document), trace]
    within = [json.dumps({**document, "error.stack_trace": trace})]
    data = "\n".join([*below, *within, *below, *within, ""]).encode()
    assert by_columns(data) == by_stages(data)


def test_a_part_of_a_line_goes_on_in_the_next_block() -> None:
    rows = list(
        wrapped(
            (HEADS[1].format(iso="2022-10-05 17:05:00", ms=f"{n:03d}", n=n, s="00") for n in range(400)), ("cri",), Random(1)
        )
    )
    rows[99] = rows[99].replace(" stdout F ", " stdout P ")
    data = "\n".join(rows).encode() + b"\n"
    assert by_columns(data, (100,)) == by_stages(data)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([*ROWS, *DOCUMENTS]), max_size=2),
    st.sampled_from([0.0, 0.03]),
    st.integers(20, 150),
)
def test_sources_that_interleave_are_read_together(seed: int, wrappers: list[str], odd: float, step: int) -> None:
    """Records of a partition: of each source some in turn, each with an ingest time and an origin of its own."""
    random = Random(seed)
    rows = {f"t/{name}": list(islice(wrapped(mixture(random, odd), wrappers, random, odd), 60)) for name in "abc"}
    chunks, position = [], 0
    while any(rows.values()):
        source_id = random.choice([name for name, left in rows.items() if left])
        lines, rows[source_id] = rows[source_id][:7], rows[source_id][7:]
        values = [line.encode("utf-8", "replace") + b"\n" for line in lines]
        begins = [sum(map(len, values[:n])) for n in range(len(values))]
        taken = [
            random.choice([NO_INGEST_TIME, TAKEN_US, WRITTEN_US + random.randrange(DAY_US), random.randrange(TAKEN_US)])
            for _ in values
        ]  # some before the stamp of their line, which is out of bounds then
        positions = range(position, position + len(values))
        records = RecordPositions(begins, positions, taken, [f"documents:i/{at}" for at in positions])
        labels = {"cluster": "x", "host": source_id}
        chunks.append(Chunk(source_id, position, b"".join(values), 0, None, labels, "t-0", position + len(values), records))
        position += len(values)
    assert _read([chunks[at : at + step] for at in range(0, len(chunks), step)]) == _staged(chunks)


def test_what_columns_fail_on_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = LineStages(plan(), _matcher(), Assembler(plan().formats), ActivityTracker(), quarantine=Quarantine(redact))
    reader = Reader(LearntTexts(plan(), _matcher()), stages)
    monkeypatch.setattr(reading, "events_of", lambda *_: 1 / 0)
    chunk = next(chunks_of((HEADS[2].format(iso="2022-10-05 17:05:00", ms="001", n=1, s="00") + "\n").encode() * 9, (9,), {}))
    assert [item for item in reader.read([chunk]) if isinstance(item, Match)]
    assert stages.counts.lines == 9
    stages.quarantine = None
    with pytest.raises(ZeroDivisionError):
        list(reader.read([chunk]))


def test_the_items_that_are_asked_for_come_with_the_matches() -> None:
    refused, unnamed = (
        "%3|1664989500.{n:03d}|FAIL|rdkafka#producer-1| [thrd:b:9092/bootstrap]: b:9092/bootstrap: Connect to "
        "ipv4#10.0.0.{n}:9092 failed: Connection refused (after 0ms in state CONNECT)",
        "[2022-10-05 17:05:39,{n:03d}] WARN [Producer clientId=p] Connection to node -1 (kafka-2/10.0.0.2:9092) could not be "
        "established. Broker may not be available. (org.apache.kafka.clients.NetworkClient)",
    )
    data = "".join(f"{line.format(n=n)}\n" for n in range(100, 140) for line in (refused, unnamed)).encode()
    facts = by_columns(data)
    assert facts == by_stages(data)
    assert any("items=('refused',)" in fact for fact in facts)
