"""A scan that reads in columns finds what the reference pipeline finds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from connectors.files import read_chunks, read_path
from engine.cli.triage import OVER, PICKED, Triage, triage, worst_first
from engine.cli.unknown import UnknownEvents
from engine.columns import bounded, reading
from engine.correlate.correlator import TWICE, UNBOUND
from engine.incident import MemoryLedger
from engine.match import Matcher, redact
from engine.model.incidents import NotEvaluated
from engine.model.matches import COMPONENT_LINE, Match
from engine.model.records import LogEvent, Progress
from engine.model.rules import Plan
from engine.pipeline import replay
from engine.ports import Chunk
from tests.rulepack.playing import plan
from tests.unit.spark.test_slices import SAMPLES

pytestmark = pytest.mark.slow

STAMPS = (
    "[2022-10-05 {clock},{ms:03d}] ",
    "2022-10-05 {clock},{ms:03d} ",
    "2022-10-05 {clock}.{ms:03d}  ",
    "2022-10-05T{clock}.{ms:03d}Z ",
    "[2022-10-05T{clock}.{ms:03d}Z] ",
    "2022-10-05T{clock}.{ms:03d}+09:00  ",
    "2022-10-05 {clock} ",
    "[2022-10-05 {clock}] ",
)
EVENTS = (
    "INFO Rolled new log segment at offset 7 in 3 ms. (kafka.log.Log)",
    "INFO [GroupCoordinator 1]: Stabilized group billing generation 5 (kafka.coordinator.group.GroupCoordinator)",
    "INFO 1 --- [main] o.example.Orders : [Producer clientId=a] three orders were sent",
    "[main] INFO org.example.Orders - started",
    "WARN [main] org.example.Orders - slow\n\tat a.b.C.d(C.java:1)\n\t... 3 more",
    "INFO ConsumerConfig values: \n\tgroup.id = billing\n\tretries = 3\n",
)
ODD = (
    "ERROR [ReplicaManager broker=1] Error processing append operation on partition a-0 (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy"
    " the min.isr requirement of 2 for partition a-0",
    "ERROR something that no rule knows 17",
    "WARN of a disk error: Error of no rule",
    "host-1 kafka[4711]: [2022-10-05 10:00:00,000] ERROR Disk error (a.B)",
    "INFO a\nworker-1  | [2022-10-05 17:05:04,001] ERROR WorkerSourceTask{id=c-0} failed to send record to t: (o.a.k.c)",
    'INFO b\n{"level": "ERROR", "message": "[Consumer clientId=c, groupId=g] no", "time": "2022-10-05T18:00:00Z"}\nINFO c',
    "INFO d\n2022-10-05T10:00:00.000000000Z stdout P half of a line",
    "INFO \x1b[31mred\x1b[0m é 파티션",
    "INFO e\n  2022-10-05 17:09:00,000 FATAL behind blanks\r\n",
    "+09:00 INFO f",
    '[2022-10-05 10:00:01,000] a stamp behind a stamp and "quotes"',
    '{app="kafka"} [2022-10-05 10:00:02,000] ERROR of a query',
    "host-1 kernel: out of memory",
    'x,"y"',
)


@cache
def rules() -> Plan:
    return plan()


@pytest.fixture(autouse=True)
def small_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is read in columns, however little it is."""
    monkeypatch.setattr(bounded, "COLUMNS_FROM_BYTES", 0)
    monkeypatch.setattr(bounded, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(reading, "ENOUGH", 2)


def told(found: Triage) -> tuple[object, ...]:
    stats = found.stats
    incidents = tuple(each for each in found.incidents if each.why != PICKED)  # scan's own, of what is minor to the pipeline
    return incidents, found.pending, found.unknown, found.blind, (stats.lines, stats.events, stats.matches)


def naive(items: list[Chunk | Progress]) -> tuple[object, ...]:
    """The answer of the reference pipeline in the words of `told`."""
    ledger, unknown, counts = MemoryLedger(), UnknownEvents(redact), [0, 0, 0]

    def observe(event: LogEvent, matches: list[Match]) -> None:
        counts[1] += 1
        counts[2] += sum(not match.rule_id.startswith(COMPONENT_LINE) for match in matches)
        unknown.observe(event, matches)

    lines = [line for item in items for line in (item.lines() if isinstance(item, Chunk) else [item])]
    counts[0] = sum(not isinstance(line, Progress) for line in lines)
    final = {each.id: each for each in replay(lines, rules(), ledger, observe)}
    over = sorted((each for each in final.values() if each.status not in OVER), key=worst_first)
    firing, pending = (tuple(each for each in over if each.pending is is_) for is_ in (False, True))
    return firing, pending, unknown.groups(), tuple(ledger.blinds()), tuple(counts)


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.log")), ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_sample_shows_the_same_when_it_is_read_in_columns(path: Path) -> None:
    items = list(read_chunks(str(path)))
    assert told(triage(items, rules(), [])) == naive(items)


@settings(
    max_examples=settings().max_examples * 3 // 20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.integers(0, 2**32),
    st.sampled_from(STAMPS),
    st.sampled_from([0, 10, 59, 200]),
    st.sampled_from([0.0, 0.03, 0.3]),
    st.sampled_from(["", "UTC", "Asia/Seoul", "Europe/Berlin"]),
    st.sampled_from(["\n", "\r\n"]),
)
@example(115, STAMPS[3], 0, 0.3, "", "\n")  # a wrapped line without a header goes on with the event before it
def test_any_log_shows_the_same_in_columns(seed: int, layout: str, pause: int, odd: float, zone: str, end: str) -> None:
    data = end.join(islice(log(Random(seed), layout, pause, odd), 120)).encode()
    labels = {"timezone": zone} if zone else {}
    at = data.find(b"\n", len(data) // 2) + 1
    chunks = [
        Chunk("a.log", 0, data[:at], 1, None, labels),
        Chunk("a.log", at, data[at:], data[:at].count(b"\n") + 1, None, labels),
    ]
    items: list[Chunk | Progress] = [*chunks, Progress("a.log", len(data), len(data), caught_up=True)]
    assert told(triage(items, rules(), [])) == naive(items)


def log(random: Random, layout: str, pause: int, odd: float) -> Iterator[str]:
    """Lines in `layout`, `pause` seconds at most between two events, `odd` of them strange or out of order."""
    at = 0.0
    while True:
        at += random.uniform(0, pause)
        moment = max(at + random.uniform(-90, 90), 0) if random.random() < odd else at
        minutes, seconds = divmod(int(moment), 60)
        clock = f"{minutes // 60 % 24:02d}:{minutes % 60:02d}:{seconds:02d}"
        stamp = layout.format(clock=clock, ms=int(moment * 1000) % 1000)
        yield from (stamp + random.choice(ODD if random.random() < odd else EVENTS)).split("\n")


@pytest.mark.parametrize("layout", STAMPS)
def test_quiet_events_are_not_read_one_by_one(layout: str) -> None:
    data = "\n".join(islice(log(Random(1), layout, 10, 0.0), 500)).encode()
    read = bounded.Bounded(rules(), Matcher(rules()), lambda event, matches: None)
    list(read.read([Chunk("a.log", 0, data, 1)]))
    assert read.lines == 500
    assert read.unobserved > 200


def test_a_large_file_is_read_in_chunks_that_leave_no_line_out(tmp_path: Path) -> None:
    lines = [f"line {number} " + "x" * (number % 300) for number in range(20_000)]
    path = tmp_path / "a.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    chunks = [item for item in read_chunks(str(path)) if isinstance(item, Chunk)]
    assert len(chunks) > 1
    assert [line.value.decode() for line in read_path(str(path)) if not isinstance(line, Progress)] == lines
    assert [line.number for chunk in chunks for line in chunk.lines()] == list(range(1, 20_001))


def same(lines: list[str], labels: dict[str, str]) -> tuple[object, ...]:
    """Return what is told of a log, which is the same when it is read in columns."""
    data = "".join(f"{line}\n" for line in lines).encode()
    items: list[Chunk | Progress] = [
        Chunk("a.log", 0, data, 1, None, labels),
        Progress("a.log", len(data), len(data), caught_up=True),
    ]
    found = told(triage(items, rules(), []))
    assert found == naive(items)
    return found


def whys(found: tuple[object, ...]) -> list[str]:
    """Return why something in it is not judged."""
    return [blind.why for blind in cast(tuple[NotEvaluated, ...], found[3])]


@pytest.mark.parametrize("logger", [" (com.example.Orders)", " (kafka.server.KafkaServer)", ""])
@pytest.mark.parametrize("before", ["", "he read "])
def test_what_is_quoted_first_does_not_hide_who_says_it_himself(before: str, logger: str) -> None:
    quoted = [f"{before}[KafkaServer id=1] order {n} is on its way{logger}" for n in range(5)]
    own = ["[KafkaServer id=1] starting (kafka.server.KafkaServer)", "[KafkaServer id=1] started (kafka.server.KafkaServer)"]
    between = [f"order {n} was placed" for n in range(200)]
    texts = [*quoted, *between, *own, *between]
    lines = [f"[2022-10-05 17:{n // 60:02d}:{n % 60:02d},000] INFO {text}" for n, text in enumerate(texts)]
    assert UNBOUND not in whys(same(lines, {})), "its log is bound to the broker"
    without = same([line for line in lines if not any(text in line for text in own)], {})
    assert (UNBOUND in whys(without)) == (bool(before) or "example" in logger)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
@pytest.mark.parametrize("step", [7, 50, 300])
def test_an_hour_that_comes_twice_is_said_of_a_log_that_is_read_in_columns(zone: str, step: int) -> None:
    begin = datetime(2022, 10, 29, 23, 30, tzinfo=UTC)  # half an hour before the first of the two hours
    times = [(begin + timedelta(seconds=second)).astimezone(ZoneInfo(zone)) for second in range(0, 3 * 3600, step)]
    found = same([f"[{at:%Y-%m-%d %H:%M:%S},000] INFO order was placed" for at in times], {"timezone": zone})
    assert (TWICE in whys(found)) == (zone != "UTC")
